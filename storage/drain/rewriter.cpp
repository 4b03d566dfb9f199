#include "storage/drain/rewriter.hpp"

#include <algorithm>
#include <string>

#include "semel/engine_host.hpp"
#include "storage/archive/rocks_guard.hpp"
#include "storage/log/mutation_codec.hpp"

namespace semel::storage {

namespace {

/// Collects live records for new files, about 64 MiB at a time.
class NewRecords {
 public:
  static constexpr std::size_t batch_bytes = std::size_t{64} << 20;

  NewRecords(const DurableClock& durable_clock, Timestamp now, Millis span,
             LogOffset offset) noexcept
      : durable_clock_(durable_clock), now_(now), span_(span), offset_(offset) {}

  void add(const Mutation& mutation) {
    buffer_.resize(encoded_bytes(mutation, now_));
    encode(mutation, durable_clock_, now_, buffer_.data());
    const SpanNumber span = span_of(durable_clock_.to_durable_ms(mutation.keep_until),
                                    durable_clock_.to_durable_ms(now_), span_);
    blobs_.add(span, offset_, buffer_);
    bytes_ += buffer_.size();
  }
  [[nodiscard]] bool is_full() const noexcept { return blobs_.bytes() >= batch_bytes; }
  [[nodiscard]] BlobSet& blobs() noexcept { return blobs_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  const DurableClock& durable_clock_;
  const Timestamp now_;
  const Millis span_;
  const LogOffset offset_;
  std::string buffer_;
  BlobSet blobs_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Status Rewriter::rewrite(Engine& engine) {
  // After this, everything appended so far is in files, before an offset at which a segment ends.
  // So no blob holds both void and valid mutations.
  SEMEL_CHECK(requests_.drain());
  const LogOffset floor = [&] {
    const base::MutexLock lock{files_.mutex};
    return files_.last_batch_end();
  }();
  NewRecords records{context_.durable_clock, context_.clock.now(), context_.options.span, floor};
  Status status = Done{};
  bool waited = false;
  const auto put = [&] {
    // The snapshot may contain changes of joined commits that are not written yet. They must not
    // reach the disk first: a crash would keep them without their effects.
    if (!waited) status = waiters_.wait(log_.tail(), Durability::synced);
    waited = true;
    if (!status) return;
    const base::MutexLock lock{files_.mutex};
    status = files_.archive().add(records.blobs(), 0);
    records.blobs().clear();
  };
  Status shown = engine.host().snapshot([&](const Mutation& mutation) {
    if (!status || engine_.is_ending()) return;
    try {
      records.add(mutation);
      if (records.is_full()) put();
    } catch (...) {
      status = Error{ErrorCode::storage_failed, no_memory};  // the older files still count
    }
  });
  if (!shown) return shown;
  if (engine_.is_ending()) return Error{ErrorCode::closing, "the engine ends"};
  if (status) put();
  if (!status) return status;
  const base::MutexLock lock{files_.mutex};
  SEMEL_CHECK(files_.make_void(floor, files_.archive().description().cold));
  // The ratio directly after a rewrite is the best possible: it must not trigger the next one.
  const auto live = static_cast<double>(std::max<std::uint64_t>(1, engine.stats().bytes_records));
  const double ratio = std::clamp(static_cast<double>(records.bytes()) / live, 1.0, 4.0);
  bytes_ratio_.store(ratio, std::memory_order_relaxed);  // mo: relaxed: a figure
  rewrites_.fetch_add(1, std::memory_order_relaxed);     // mo: relaxed: a statistic
  return Done{};
}

bool Rewriter::is_due(bool is_write_rate_low) const {
  if (!engine_.mutex.try_lock_shared()) return false;
  const base::SharedLock lock{engine_.mutex, std::adopt_lock};
  Engine* const engine = engine_.get();
  // Spills free space as well, and a snapshot would bring back all records that they moved.
  if (engine == nullptr || engine->host().cold_store() != nullptr) return false;
  const auto files = static_cast<double>(files_.bytes());
  const auto floor = static_cast<double>(context_.options.garbage_bytes);
  const double live = static_cast<double>(engine->stats().bytes_records) *
                      bytes_ratio_.load(std::memory_order_relaxed);  // mo: relaxed: a figure
  return files >= (is_write_rate_low ? 1.5 * live + floor / 8 : 2 * live + floor);
}

void Rewriter::start_if_due(bool is_write_rate_low) {
  // mo: acquire [storage.rewriting]: the last rewrite has ended
  if (rewriting_.load(std::memory_order_acquire)) return;
  join();
  if (!is_due(is_write_rate_low)) return;
  rewriting_.store(true, std::memory_order_relaxed);  // mo: relaxed: the thread begins after it
  try {
    thread_ = std::thread{[this] { run(); }};
  } catch (...) {
    // Neither memory nor a thread to be had: files keep their size until more was drained.
    rewriting_.store(false, std::memory_order_relaxed);  // mo: relaxed: of this thread again
    health_.count_starved();
  }
}

void Rewriter::run() noexcept {
  name_thread("semel:rewrite");
  try {
    const base::SharedLock lock{engine_.mutex};
    // On an error (no space, or a snapshot is running) it is tried again after more was drained.
    if (engine_.get() != nullptr) static_cast<void>(rewrite(*engine_.get()));
  } catch (...) {
    health_.count_starved();  // likewise; the older files still count
  }
  rewriting_.store(false, std::memory_order_release);  // mo: release [storage.rewriting]
}

}  // namespace semel::storage
