// What is done with the files behind the log as a whole: written anew, copied, made smaller.
#include <rocksdb/utilities/checkpoint.h>

#include <map>

#include "storage/archive/rocks_status.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

using storage::Place;

namespace {

/// Live records on their way into new files, some 64 MiB at a time.
class Rewriting {
 public:
  static constexpr std::size_t batch_bytes = std::size_t{64} << 20;

  Rewriting(const storage::TimeLine& line, Timestamp now, Millis span, Place place) noexcept
      : line_(line), now_(now), span_(span), place_(place) {}

  void add(const Mutation& mutation) {
    buffer_.resize(storage::encoded_bytes(mutation, now_));
    storage::encode(mutation, line_, now_, buffer_.data());
    const storage::SpanNumber span =
        storage::span_of(line_.to_line(mutation.keep_until), line_.to_line(now_), span_);
    blobs_.add(span, place_, buffer_);
  }
  [[nodiscard]] bool is_full() const noexcept { return blobs_.bytes() >= batch_bytes; }
  [[nodiscard]] storage::BlobSet& blobs() noexcept { return blobs_; }

 private:
  const storage::TimeLine& line_;
  const Timestamp now_;
  const Millis span_;
  const Place place_;
  std::string buffer_;
  storage::BlobSet blobs_;
};

}  // namespace

Status Storage::Impl::rewrite(Engine& engine) {
  // Everything appended before the cut is in the files then, below a place at which a segment ends;
  // so what counts and what does not are never in one blob.
  SEMEL_TRY(drained, drain());
  static_cast<void>(drained);
  const Place floor = [&] {
    const std::lock_guard lock{archive_mutex_};
    return batch_ends_.back();
  }();
  Rewriting rewriting{line_, clock_.now(), options_.span, floor};
  Status status = Done{};
  bool waited = false;
  const auto put = [&] {
    // The cut may show what joined commits have changed and not written yet. It must not reach the
    // disk before they have, or a crash would leave it there alone.
    if (!waited) status = wait(newest(), Durability::synced);
    waited = true;
    if (!status) return;
    const std::lock_guard lock{archive_mutex_};
    status = archive_->add(rewriting.blobs(), 0);
    rewriting.blobs().clear();
  };
  const Status shown = engine.snapshot([&](const Mutation& mutation) {
    // mo: relaxed: a wish to hurry
    if (!status || rewrite_ends_.load(std::memory_order_relaxed)) return;
    rewriting.add(mutation);
    if (rewriting.is_full()) put();
  });
  if (!shown) return shown;
  if (rewrite_ends_.load(std::memory_order_relaxed)) {  // mo: relaxed: as above
    return Error{ErrorCode::closing, "the engine ends"};
  }
  if (status) put();
  if (!status) return status;
  const std::lock_guard lock{archive_mutex_};
  SEMEL_TRY(made, make_void(floor));
  static_cast<void>(made);
  const std::lock_guard stats{mutex_};
  ++rewrites_;
  return Done{};
}

/// Under archive_mutex_: nothing before `floor`, where a batch ends, counts any more.
Status Storage::Impl::make_void(Place floor) {
  storage::Description next = archive_->description();
  next.floor = floor;
  SEMEL_TRY(described, archive_->describe(next));
  SEMEL_TRY(forgotten, archive_->forget_before(floor));
  SEMEL_TRY(joined, joined_files().forget_before(floor));
  static_cast<void>(described), static_cast<void>(forgotten), static_cast<void>(joined);
  floor_.store(floor, std::memory_order_relaxed);  // mo: relaxed: the log has nothing before it
  return Done{};
}

void Storage::Impl::note_map(const Mutation& mutation) {
  const std::lock_guard lock{map_mutex_};
  if (mutation.version < map_version_) return;
  map_version_ = mutation.version;
  map_ = mutation.value;
}

void Storage::Impl::spilled(Ticket cut, Ticket kept) {
  Mutation map;
  std::string value;
  {
    const std::lock_guard lock{map_mutex_};
    value = map_;
    map.type = Mutation::Type::db_map;
    map.version = map_version_;
    map.value = value;
  }
  if (!value.empty()) kept = std::max(kept, append({&map, 1}));
  // What stays must be on the disk before what it stands for is void. If it cannot be, or the
  // description cannot be written, nothing is forgotten, and the next spill does it.
  if (!wait(kept, Durability::synced)) return;
  const std::lock_guard lock{archive_mutex_};
  Place floor = 0;
  for (const Place end : batch_ends_) {
    if (end <= cut) floor = std::max(floor, end);
  }
  if (floor > archive_->description().floor) static_cast<void>(make_void(floor));
}

void Storage::Impl::rewrite_if_worth_it() {
  // mo: acquire: the last one has let go of everything
  if (rewriting_.load(std::memory_order_acquire)) return;
  if (rewriter_.joinable()) rewriter_.join();
  const std::unique_lock lock{engine_mutex_, std::try_to_lock};
  // A spill makes room here, too; and a snapshot would bring everything back that it has moved.
  if (!lock || engine_ == nullptr || engine_->has_cold_store()) return;
  const std::uint64_t bytes = archive_->bytes() + joined_files().bytes();
  if (bytes < options_.garbage_bytes + 3 * engine_->stats().bytes_records) return;
  rewriting_.store(true, std::memory_order_relaxed);  // mo: relaxed: the thread begins after it
  rewriter_ = std::thread{[this] {
    {
      const std::lock_guard engine{engine_mutex_};
      // If it cannot be done now, for want of space or because a snapshot is running, it is tried
      // again when more was drained.
      if (engine_ != nullptr) static_cast<void>(rewrite(*engine_));
    }
    rewriting_.store(false, std::memory_order_release);  // mo: release: see above
  }};
}

void Storage::Impl::engine_ends() noexcept {
  rewrite_ends_.store(true, std::memory_order_relaxed);  // mo: relaxed: a wish to hurry
  const std::lock_guard lock{engine_mutex_};
  engine_ = nullptr;
}

Status Storage::Impl::drop_ended() {
  SEMEL_TRY(drained, drain());
  static_cast<void>(drained);
  const std::lock_guard lock{archive_mutex_};
  const storage::SpanNumber running = storage::running_span(line_now());
  SEMEL_TRY(compacted, archive_->compact(running));
  static_cast<void>(compacted);
  return joined_files().compact(running);
}

Status Storage::Impl::backup(const std::string& directory) {
  SEMEL_TRY(drained, drain());
  const std::lock_guard lock{archive_mutex_};
  SEMEL_TRY(made, storage::make_new_directory(directory));
  SEMEL_TRY(made_log, storage::make_directory(directory + "/log"));
  static_cast<void>(drained), static_cast<void>(made), static_cast<void>(made_log);
  rocksdb::Checkpoint* made_by_rocksdb = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(&archive_->database(), &made_by_rocksdb);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint{made_by_rocksdb};
  // With its memtable flushed: a linked log of RocksDB 7.8 is not synced as a whole.
  if (status.ok()) status = checkpoint->CreateCheckpoint(directory + "/rocksdb", 0);
  if (!status.ok()) return storage::error_of(status, directory);
  SEMEL_TRY(mark, storage::Mark::open(disk_, directory + "/mark"));
  storage::MarkContent content;
  content.storage_id = storage_id_;
  content.format = storage::format_version;
  content.segment_bytes = log_->segment_bytes();
  content.begin = content.tail = content.whole = content.synced = content.drained =
      drained_.load(std::memory_order_acquire);  // mo: acquire: see put_away()
  content.line_ms = static_cast<std::int64_t>(line_now());
  content.engine_ms = clock_.now().time_since_epoch().count();
  content.unix_ms = clock_.unix_ms();
  boot_id_.copy(content.boot_id, sizeof content.boot_id - 1);
  mark->write(content);
  return mark->sync();
}

}  // namespace semel
