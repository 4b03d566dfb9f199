#include "storage/storage_impl.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

namespace semel {

namespace {

storage::Log::Setup log_setup(const storage::Context& context, const storage::Opened& opened) {
  const std::string& directory = context.options.directory;
  return {.directory = directory + "/log",
          .segment_bytes = context.segment_bytes(),
          .storage_id = context.storage_id,
          .first_number = opened.segment_number,
          .wait_at_most = context.options.confirm_within,
          .access = context.disk.maps_safely(directory) ? storage::Segment::Access::mapped
                                                        : storage::Segment::Access::written,
          .base = {context.first_version, context.durable_now()}};
}

}  // namespace

// --- begin and end ------------------------------------------------------------------------------

Result<std::unique_ptr<Storage>> Storage::Impl::open(
    const StorageOptions& options, const Clock& clock,
    std::vector<rocksdb::ColumnFamilyDescriptor> families) {
  storage::Context context{options, clock};
  SEMEL_TRY(opened, storage::open_directory(context, std::move(families)));
  const bool is_new = opened.is_new;
  auto impl = std::make_unique<Impl>(std::move(context), std::move(opened));
  SEMEL_CHECK(impl->start(is_new));
  return std::unique_ptr<Storage>{new Storage{std::move(impl)}};
}

Storage::Impl::Impl(storage::Context context, storage::Opened opened)
    : context_(std::move(context)),
      directory_lock_(std::move(opened.lock)),
      files_(context_, std::move(opened.archive), std::move(opened.earlier),
             std::move(opened.segments), opened.drained),
      log_(context_.disk, log_setup(context_, opened), drain_signal_),
      sync_(log_.tail()),
      health_(log_, sync_.signal(), drain_signal_, progress_, context_.options.confirm_within),
      waiters_(sync_, commits_, health_, progress_, context_.options.confirm_within),
      checkpoints_(context_, std::move(opened.checkpoint), files_, log_, sync_),
      syncer_(context_, log_, files_, commits_, sync_, health_, waiters_, checkpoints_),
      engine_(health_),
      requests_(log_, files_, drain_signal_, progress_),
      rewriter_(context_, log_, files_, engine_, requests_, waiters_, health_),
      drainer_(context_, log_, files_, sync_, health_, engine_, requests_, rewriter_, progress_,
               opened.has_reserve),
      joined_(context_, log_, files_, engine_, commits_, health_, waiters_),
      backups_(context_, files_, drainer_.log_to_files(), requests_, engine_, joined_.gate()) {}

Status Storage::Impl::start(bool is_new) {
  SEMEL_CHECK(checkpoints_.begin());
  // After the checkpoint: a journal without one counts as damage. Enough to accept new work at
  // once; the draining thread makes the other segments.
  SEMEL_CHECK(drainer_.begin_log(is_new));
  try {
    syncer_.start();
    drainer_.start();
  } catch (const std::system_error& error) {
    return Error{ErrorCode::no_thread, context_.options.directory + ": " + error.what()};
  }
  return Done{};
}

Storage::Impl::~Impl() {
  health_.close();
  drainer_.join();
  const bool began = syncer_.join();
  rewriter_.join();
  // The last round may have ended before the last old segment was drained. While one is left, the
  // checkpoint belongs to the earlier process, so the durable clock of this one is saved in the
  // description.
  if (began && !health_.has_failed()) {
    if (files_.has_old_segments()) {
      save_clock();
    } else {
      checkpoints_.end();
    }
  }
  log_.segments().remove_unused();
}

/// If it fails, the clock of the start counts.
void Storage::Impl::save_clock() noexcept {
  try {
    const base::MutexLock lock{files_.mutex};
    static_cast<void>(files_.record_time());
  } catch (...) {
  }
}

// --- callers ------------------------------------------------------------------------------------

Ticket Storage::Impl::append_group(std::span<const Mutation> group) {
  bool has_terms = false;
  bool has_large = false;
  for (const Mutation& mutation : group) {
    has_large = has_large || storage::DeltaChains::concerns(mutation);
    if (mutation.type == Mutation::Type::db_map) [[unlikely]]
      map_.remember(mutation);
    has_terms = has_terms || mutation.kind == Kind::name_space;
  }
  std::vector<Mutation> shorter;
  if (has_large && engine_.chains().shorten(group, shorter)) group = shorter;
  const Ticket end = commits_.any() ? joined_.append(group)
                                    : health_.fail_if_refused(log_.append(
                                          group, context_.durable_clock, context_.clock.now()));
  if (end == 0) [[unlikely]]
    engine_.chains().end();
  if (has_terms) [[unlikely]]
    joined_.note_terms(end);
  return end;
}

Ticket Storage::Impl::append(std::span<const Mutation> group) {
  try {
    return append_group(group);
  } catch (...) {
    engine_.lose();  // no memory
    if (storage::JoinedCommit* const own = commits_.own(); own != nullptr) own->lost = true;
    throw;
  }
}

void Storage::Impl::pace() {
  // A joined commit waits at its end, for all its changes.
  if (log_.extent().is_crowded() && !(commits_.any() && commits_.own() != nullptr))
    requests_.await_room(health_, context_.options.confirm_within);
}

void Storage::Impl::spilled(Ticket cut, Ticket kept, const ColdMark& cold) {
  Mutation map;
  std::string value;
  if (map_.read(map, value)) kept = std::max(kept, append({&map, 1}));
  // What stays must be on disk before the older copies become void. On an error nothing is
  // forgotten; the next spill tries again.
  if (!waiters_.wait(kept, Durability::synced)) return;
  const base::MutexLock lock{files_.mutex};
  const storage::LogOffset floor = files_.last_batch_end(cut);
  if (floor > archive().description().floor) static_cast<void>(files_.make_void(floor, cold));
}

Status Storage::Impl::drop_ended() {
  SEMEL_CHECK(requests_.drain());
  const base::MutexLock lock{files_.mutex};
  return files_.compact();
}

StorageStats Storage::Impl::stats() const {
  StorageStats stats;
  const storage::LogOffset tail = log_.tail();
  stats.bytes = tail - checkpoints_.log_begin();
  const storage::LogOffset synced = sync_.synced();
  stats.bytes_unsynced = tail > synced ? tail - synced : 0;
  stats.bytes_log = log_.segments().file_bytes();
  stats.accepting = !health_.has_failed() && log_.extent().accepts();
  stats.failed = health_.has_failed() || files_.archive().is_stuck();
  stats.trouble = health_.cause();
  if (stats.trouble.empty()) stats.trouble = requests_.trouble();
  stats.syncs = sync_.published_rounds();
  const storage::DrainCounts counts = drainer_.counts();
  stats.mutations_drained = counts.mutations;
  stats.mutations_ended = counts.ended;
  stats.mutations_superseded = counts.superseded;
  stats.rewrites = rewriter_.rewrites();
  stats.starved = health_.starved();
  stats.callbacks_threw = waiters_.callbacks_threw();
  if (!stats.accepting && stats.trouble.empty()) stats.trouble = "the log is full";
  stats.bytes_files = files_.bytes();
  stats.database = files_.archive().stats();
  return stats;
}

}  // namespace semel
