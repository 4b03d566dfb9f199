// Joined commits: what one call changes goes to RocksDB together with the caller's effects, in one
// write, and not through the log. How the rest of the storage gets along with it: joins.hpp.
#include <algorithm>
#include <map>

#include "storage/archive/rocks_status.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

using storage::Join;

namespace {

constexpr std::string_view own_families[] = {"default", storage::journal_family,
                                             storage::joined_family};

bool is_own(std::string_view name) noexcept {
  return std::find(std::begin(own_families), std::end(own_families), name) !=
         std::end(own_families);
}

/// Looks where a batch writes to, before anything is decided: a write that RocksDB refuses
/// afterwards would leave a claim that is done in memory only.
class EffectsCheck final : public rocksdb::WriteBatch::Handler {
 public:
  explicit EffectsCheck(const storage::Archive& archive) noexcept : archive_(archive) {}

  rocksdb::Status PutCF(std::uint32_t id, const rocksdb::Slice&, const rocksdb::Slice&) override {
    return check(id);
  }
  rocksdb::Status PutEntityCF(std::uint32_t id, const rocksdb::Slice&,
                              const rocksdb::Slice&) override {
    return check(id);
  }
  rocksdb::Status DeleteCF(std::uint32_t id, const rocksdb::Slice&) override { return check(id); }
  rocksdb::Status SingleDeleteCF(std::uint32_t id, const rocksdb::Slice&) override {
    return check(id);
  }
  rocksdb::Status DeleteRangeCF(std::uint32_t id, const rocksdb::Slice&,
                                const rocksdb::Slice&) override {
    return check(id);
  }
  rocksdb::Status MergeCF(std::uint32_t id, const rocksdb::Slice&, const rocksdb::Slice&) override {
    return check(id);
  }
  void LogData(const rocksdb::Slice&) override {}

 private:
  rocksdb::Status check(std::uint32_t id) {
    const auto [known, is_new] = good_.try_emplace(id, false);
    if (is_new) {
      for (const rocksdb::ColumnFamilyHandle* family : archive_.families()) {
        if (family->GetID() == id) known->second = !is_own(family->GetName());
      }
    }
    if (known->second) return rocksdb::Status::OK();
    return rocksdb::Status::InvalidArgument("writes to the column family number " +
                                            std::to_string(id) +
                                            ", which is none that was named to open_storage");
  }

  const storage::Archive& archive_;
  std::map<std::uint32_t, bool> good_;
};

}  // namespace

// --- the way into the storage -------------------------------------------------------------------

Result<std::unique_ptr<Storage>> Storage::Impl::open_joined(
    const StorageOptions& options, const Clock& clock,
    std::vector<rocksdb::ColumnFamilyDescriptor> families) {
  for (std::size_t i = 0; i < families.size(); ++i) {
    const std::string& name = families[i].name;
    const auto bad = [&](const std::string& what) {
      return Error{ErrorCode::bad_option, "column family '" + name + "' " + what};
    };
    if (name.empty()) return bad("has no name");
    if (is_own(name)) return bad("is Semel's own");
    for (std::size_t j = 0; j < i; ++j) {
      if (families[j].name == name) return bad("is named twice");
    }
  }
  families.emplace_back(storage::joined_family, storage::joined_options());
  auto impl = std::make_unique<Impl>(options, clock);
  SEMEL_TRY(opened, impl->open(std::move(families)));
  static_cast<void>(opened);
  return std::unique_ptr<Storage>{new Storage{std::move(impl)}};
}

Ticket Storage::Impl::append_beside_joins(std::span<const Mutation> group) {
  if (Join* const own = joins_.own(); own != nullptr) return collect(*own, group);
  const Timestamp now = clock_.now();
  const auto encode = [&] {
    std::size_t bytes = 0;
    for (const Mutation& mutation : group) bytes += storage::encoded_bytes(mutation, now);
    std::string all(bytes, '\0');
    char* to = all.data();
    for (const Mutation& mutation : group) to = storage::encode(mutation, line_, now, to);
    return all;
  };
  switch (joins_.follow(group, now, encode)) {
    case storage::Joins::Follow::no:
      return or_failed(log_->append(group, line_, now));
    case storage::Joins::Follow::yes:
      return log_->tail();  // behind the join, and it ends when this is in the log
    case storage::Joins::Follow::full:
      break;
  }
  set_failed("a claim was changed too often while its joined commit was being written");
  return 0;
}

Ticket Storage::Impl::collect(Join& join, std::span<const Mutation> group) {
  const Timestamp now = clock_.now();
  const Ticket ticket = or_failed(log_->reserve());
  if (ticket == 0) {
    join.lost = true;
    return 0;
  }
  // The place of the reserved record itself: the one behind it is another's.
  const storage::Place place = ticket - storage::record_header_bytes;
  std::string bytes;
  for (const Mutation& mutation : group) {
    bytes.resize(storage::encoded_bytes(mutation, now));
    storage::encode(mutation, line_, now, bytes.data());
    join.blobs.add(
        storage::span_of(line_.to_line(mutation.keep_until), line_.to_line(now), options_.span),
        place, bytes);
  }
  joins_.add(join, ticket, group);
  return ticket;
}

bool Storage::Impl::defer(std::function<void()>& then) {
  Join* const own = joins_.any() ? joins_.own() : nullptr;
  if (own == nullptr) return false;
  own->afterwards.push_back(std::move(then));
  return true;
}

// --- the commit ---------------------------------------------------------------------------------

Status Storage::Impl::check_effects(const rocksdb::WriteBatch& effects) const {
  EffectsCheck check{*archive_};
  const rocksdb::Status status = effects.Iterate(&check);
  if (status.ok()) return Done{};
  return Error{ErrorCode::bad_option, "effects: " + status.ToString()};
}

Result<JoinedOutcome> Storage::Impl::complete_joined(Claims& claims, const OwnerCall& call,
                                                     const rocksdb::WriteBatch& effects,
                                                     Durability level) {
  if (level != Durability::logged && level != Durability::synced) {
    return Error{ErrorCode::bad_option,
                 "level = " + std::to_string(static_cast<unsigned>(level)) + ", logged or synced"};
  }
  if (joined_files().family() == nullptr) {
    return Error{ErrorCode::bad_option, options_.directory + ": was not opened by open_storage"};
  }
  SEMEL_TRY(checked, check_effects(effects));
  static_cast<void>(checked);
  // A write that meets a full disk stops RocksDB, and with it the storage, until the next open.
  constexpr std::size_t margin = std::size_t{4} << 20;
  const std::size_t bytes = effects.GetDataSize() + call.payload.size();
  if (disk_.bytes_free(options_.directory) < bytes + margin) {
    return Error{ErrorCode::storage_failed,
                 options_.directory + ": no space for " + std::to_string(bytes) + " bytes"};
  }
  JoinedOutcome outcome;
  Join join;
  if (!joins_.begin(join)) {
    return Error{ErrorCode::bad_option, "this thread is in a joined commit already"};
  }
  outcome.owner = claims.complete(call);
  SEMEL_TRY(ended, end_join(join, effects, level));
  static_cast<void>(ended);
  outcome.written = join.ticket != 0;
  if (outcome.written || outcome.owner.error != ErrorCode::ok) return outcome;
  // It rests on what others have done.
  SEMEL_TRY(seen, wait(newest(), std::max(level, join.level)));
  static_cast<void>(seen);
  return outcome;
}

Status Storage::Impl::end_join(Join& join, const rocksdb::WriteBatch& effects, Durability level) {
  joins_.leave(join);
  level = std::max(level, join.level);
  Status status = Done{};
  if (join.lost) {
    status =
        Error{ErrorCode::outcome_unknown, options_.directory + ": the storage is being closed"};
  } else if (join.ticket != 0) {
    status = write_join(join, effects, level);
  }
  // Before anybody who waits for the join is let go.
  if (!status) set_failed(status.error().detail);
  // What failed is not to be synced: RocksDB's log must not be touched any more.
  const bool synced = !status || level == Durability::synced;
  joins_.end(join, synced, [&](Bytes mutations, Timestamp when) {
    if (!status) return;
    std::vector<Mutation> group;
    while (!mutations.empty()) {
      // We wrote these bytes.
      if (!storage::decode(mutations, line_, when, group.emplace_back())) return;
    }
    static_cast<void>(log_->append(group, line_, when));  // 0: closing, and nobody waits any more
  });
  answer_waiting();
  for (const std::function<void()>& then : join.afterwards) then();
  return status;
}

Status Storage::Impl::write_join(const Join& join, const rocksdb::WriteBatch& effects,
                                 Durability level) {
  // mo: acquire [storage.failed]
  if (failed_.load(std::memory_order_acquire)) {
    const std::lock_guard lock{mutex_};
    return Error{ErrorCode::outcome_unknown, failure_};
  }
  // A copy, which has no limit of its own, and leaves the caller's as it is.
  rocksdb::WriteBatch batch{effects.Data()};
  rocksdb::ColumnFamilyHandle* const family = joined_files().family();
  rocksdb::Status status;
  for (const auto& [span, blobs] : join.blobs.spans()) {
    for (const storage::BlobSet::Blob& blob : blobs) {
      if (status.ok()) status = batch.Put(family, blob.key.bytes(), blob.bytes);
    }
  }
  rocksdb::WriteOptions options;
  options.sync = level == Durability::synced;
  const std::uint64_t before = archive_->database().GetLatestSequenceNumber();
  if (status.ok()) status = archive_->database().Write(options, &batch);
  if (!status.ok()) {
    return Error{ErrorCode::outcome_unknown,
                 storage::error_of(status, options_.directory + "/rocksdb").detail};
  }
  // Ours has at least these numbers. The newest may be another's, and not synced.
  if (options.sync) reached_sequence(before + batch.Count());
  return Done{};
}

void Storage::Impl::reached_sequence(std::uint64_t sequence) noexcept {
  // mo: relaxed: what is compared is the word itself. release: the syncing thread puts it into the
  //     mark, which says what is on the disk.
  std::uint64_t before = rocks_sequence_.load(std::memory_order_relaxed);
  while (before < sequence &&
         !rocks_sequence_.compare_exchange_weak(before, sequence, std::memory_order_release,
                                                std::memory_order_relaxed)) {
  }
}

void Storage::Impl::want_joined(Ticket ticket) {
  if (joins_.unsynced_before(ticket) && joins_.want_sync()) sync_wanted_.raise();
}

// --- semel/rocksdb.hpp --------------------------------------------------------------------------

Result<std::unique_ptr<Storage>> open_storage(
    const StorageOptions& options, const Clock& clock,
    std::vector<rocksdb::ColumnFamilyDescriptor> families) {
  return Storage::Impl::open_joined(options, clock, std::move(families));
}

rocksdb::DB& database(Storage& storage) noexcept {
  return StorageAccess::impl(storage).archive().database();
}

rocksdb::ColumnFamilyHandle* family(Storage& storage, const std::string& name) noexcept {
  return is_own(name) ? nullptr : StorageAccess::impl(storage).archive().family(name);
}

Result<JoinedOutcome> complete_joined(Storage& storage, Claims& claims, const OwnerCall& call,
                                      const rocksdb::WriteBatch& effects, Durability level) {
  return StorageAccess::impl(storage).complete_joined(claims, call, effects, level);
}

}  // namespace semel
