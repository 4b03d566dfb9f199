// Operations on all files behind the log: rewriting, compaction.
#include <map>

#include "storage/log/mutation_codec.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

using storage::LogOffset;

namespace {

/// Collects live records for new files, about 64 MiB at a time.
class Rewriting {
 public:
  static constexpr std::size_t batch_bytes = std::size_t{64} << 20;

  Rewriting(const storage::DurableClock& durable_clock, Timestamp now, Millis span,
            LogOffset offset) noexcept
      : durable_clock_(durable_clock), now_(now), span_(span), offset_(offset) {}

  void add(const Mutation& mutation) {
    buffer_.resize(storage::encoded_bytes(mutation, now_));
    storage::encode(mutation, durable_clock_, now_, buffer_.data());
    const storage::SpanNumber span =
        storage::span_of(durable_clock_.to_durable_ms(mutation.keep_until),
                         durable_clock_.to_durable_ms(now_), span_);
    blobs_.add(span, offset_, buffer_);
    bytes_ += buffer_.size();
  }
  [[nodiscard]] bool is_full() const noexcept { return blobs_.bytes() >= batch_bytes; }
  [[nodiscard]] storage::BlobSet& blobs() noexcept { return blobs_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  const storage::DurableClock& durable_clock_;
  const Timestamp now_;
  const Millis span_;
  const LogOffset offset_;
  std::string buffer_;
  storage::BlobSet blobs_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Status Storage::Impl::rewrite(Engine& engine) {
  // After this, everything appended so far is in files, before an offset at which a segment ends.
  // So no blob holds both void and valid mutations.
  SEMEL_CHECK(drain());
  const LogOffset floor = [&] {
    const base::MutexLock lock{archive_mutex_};
    return batch_ends_.back();
  }();
  Rewriting rewriting{durable_clock_, clock_.now(), options_.span, floor};
  Status status = Done{};
  bool waited = false;
  const auto put = [&] {
    // The snapshot may contain changes of joined commits that are not written yet. They must not
    // reach the disk first: a crash would keep them without their effects.
    if (!waited) status = wait(newest(), Durability::synced);
    waited = true;
    if (!status) return;
    const base::MutexLock lock{archive_mutex_};
    status = archive_->add(rewriting.blobs(), 0);
    rewriting.blobs().clear();
  };
  Status shown = engine.snapshot([&](const Mutation& mutation) {
    // mo: relaxed: a wish to hurry
    if (!status || rewrite_ends_.load(std::memory_order_relaxed)) return;
    try {
      rewriting.add(mutation);
      if (rewriting.is_full()) put();
    } catch (...) {
      status = Error{ErrorCode::storage_failed, storage::no_memory};  // the older files still count
    }
  });
  if (!shown) return shown;
  if (rewrite_ends_.load(std::memory_order_relaxed)) {  // mo: relaxed: as above
    return Error{ErrorCode::closing, "the engine ends"};
  }
  if (status) put();
  if (!status) return status;
  const base::MutexLock lock{archive_mutex_};
  SEMEL_CHECK(make_void(floor, archive_->description().cold));
  // What is right after a rewrite must not be a reason for the next one.
  const auto live = static_cast<double>(std::max<std::uint64_t>(1, engine.stats().bytes_records));
  const base::MutexLock stats{mutex_};
  bytes_ratio_ = std::clamp(static_cast<double>(rewriting.bytes()) / live, 1.0, 4.0);
  ++rewrites_;
  return Done{};
}

/// Makes everything before `floor` void. A batch ends at `floor`. `cold` must have been there when
/// records are recovered: it may have the only copy.
Status Storage::Impl::make_void(LogOffset floor, const ColdMark& cold) {
  // A rewrite and a spill may overlap. The one with the larger floor has written again what counts.
  if (floor < archive_->description().floor) return Done{};
  storage::Description next = archive_->description();
  next.floor = floor;
  next.cold = cold;
  SEMEL_CHECK(archive_->describe(next));
  SEMEL_CHECK(archive_->forget_before(floor));
  SEMEL_CHECK(archive_->guarded([&] { return joined_files().forget_before(floor); }));
  floor_.store(floor, std::memory_order_relaxed);  // mo: relaxed: the log holds nothing before it
  return Done{};
}

std::uint64_t Storage::Impl::file_bytes() const {
  std::uint64_t joined = 0;
  const Status read = archive_->guarded([&]() -> Status {
    joined = joined_files().bytes();
    return Done{};
  });
  return archive_->bytes() + (read ? joined : 0);
}

void Storage::Impl::remember_map(const Mutation& mutation) {
  const base::MutexLock lock{map_mutex_};
  if (mutation.version < map_version_) return;
  map_version_ = mutation.version;
  map_ = mutation.value;
}

void Storage::Impl::spilled(Ticket cut, Ticket kept, const ColdMark& cold) {
  Mutation map;
  std::string value;
  {
    const base::MutexLock lock{map_mutex_};
    value = map_;
    map.type = Mutation::Type::db_map;
    map.version = map_version_;
    map.value = value;
  }
  if (!value.empty()) kept = std::max(kept, append({&map, 1}));
  // What stays must be on disk before the older copies become void. On an error nothing is
  // forgotten; the next spill tries again.
  if (!wait(kept, Durability::synced)) return;
  const base::MutexLock lock{archive_mutex_};
  LogOffset floor = 0;
  for (const LogOffset end : batch_ends_) {
    if (end <= cut) floor = std::max(floor, end);
  }
  if (floor > archive_->description().floor) static_cast<void>(make_void(floor, cold));
}

bool Storage::Impl::is_rewrite_due() const {
  // Spills free space as well, and a snapshot would bring back all records that they moved.
  if (engine_ == nullptr || engine_->has_cold_store()) return false;
  const auto files = static_cast<double>(file_bytes());
  const auto floor = static_cast<double>(options_.garbage_bytes);
  double live = static_cast<double>(engine_->stats().bytes_records);
  {
    const base::MutexLock lock{mutex_};
    live *= bytes_ratio_;
  }
  return files >= (calm_ ? 1.5 * live + floor / 8 : 2 * live + floor);
}

void Storage::Impl::rewrite_if_due() {
  // mo: acquire [storage.rewriting]: the last rewrite has ended
  if (rewriting_.load(std::memory_order_acquire)) return;
  if (rewriter_.joinable()) rewriter_.join();
  if (!engine_mutex_.try_lock_shared()) return;
  {
    const base::SharedLock engine{engine_mutex_, std::adopt_lock};
    if (!is_rewrite_due()) return;
  }
  rewriting_.store(true, std::memory_order_relaxed);  // mo: relaxed: the thread begins after it
  try {
    rewriter_ = std::thread{[this] { run_rewriter(); }};
  } catch (...) {
    // Neither memory nor a thread to be had: files keep their size until more was drained.
    rewriting_.store(false, std::memory_order_relaxed);  // mo: relaxed: of this thread again
    count_starved();
  }
}

void Storage::Impl::run_rewriter() noexcept {
  storage::name_thread("semel:rewrite");
  try {
    const base::SharedLock engine{engine_mutex_};
    // On an error (no space, or a snapshot is running) it is tried again after more was drained.
    if (engine_ != nullptr) static_cast<void>(rewrite(*engine_));
  } catch (...) {
    count_starved();  // likewise; the older files still count
  }
  rewriting_.store(false, std::memory_order_release);  // mo: release [storage.rewriting]
}

void Storage::Impl::engine_ends() noexcept {
  rewrite_ends_.store(true, std::memory_order_relaxed);  // mo: relaxed: a wish to hurry
  const base::ExclusiveLock lock{engine_mutex_};
  engine_ = nullptr;
}

Status Storage::Impl::drop_ended() {
  SEMEL_CHECK(drain());
  const base::MutexLock lock{archive_mutex_};
  const storage::SpanNumber running = storage::running_span(ended_now());
  SEMEL_CHECK(record_time());
  SEMEL_CHECK(archive_->compact(running));
  return archive_->guarded([&] { return joined_files().compact(running); });
}

}  // namespace semel
