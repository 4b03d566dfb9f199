// Backups beside a running engine, in three steps:
//
//   1. drain: everything appended before is in files. With joined commits once more, for the little
//      that came meanwhile, while new ones wait.
//   2. under archive_mutex_, for some milliseconds: RocksDB makes links to its files, in the
//      directory `backing-up` of the storage. From here on the content of the backup is fixed.
//   3. copy, at the given rate, without a lock; then the list of files, as the last step.
//
// Until the list says `complete`, nobody takes the directory for a backup. The links go at the end,
// or when the storage is opened the next time.
#include <rocksdb/utilities/checkpoint.h>

#include <filesystem>

#include "storage/archive/rocks_status.hpp"
#include "storage/backup/backup_files.hpp"
#include "storage/backup/backup_io.hpp"
#include "storage/backup/backup_list.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

namespace fs = std::filesystem;

class Storage::Impl::BackupMaking {
 public:
  BackupMaking(Impl& storage, const std::string& directory, const BackupOptions& options)
      : storage_(storage),
        env_(*storage.disk_.env()),
        directory_(directory),
        options_(options),
        // mo: acquire [storage.backup]: the one before has removed its links
        has_turn_(!storage.backing_up_.exchange(true, std::memory_order_acquire)) {}
  ~BackupMaking() {
    if (!has_turn_) return;
    // Links would keep the space of files that the storage has deleted. If one cannot be removed,
    // as for want of memory, the next backup or open tries again; without its list the backup is
    // none.
    try {
      static_cast<void>(storage_.remove_backup_links());
      if (is_made_ && !is_complete_) static_cast<void>(storage::remove_tree(env_, directory_));
    } catch (...) {
    }
    storage_.backing_up_.store(false, std::memory_order_release);  // mo: release [storage.backup]
  }
  BackupMaking(const BackupMaking&) = delete;
  BackupMaking& operator=(const BackupMaking&) = delete;

  /// All but the last step.
  [[nodiscard]] Status make() {
    if (!has_turn_) return Error{ErrorCode::refused, "a backup of this storage is running"};
    SEMEL_CHECK(check());
    SEMEL_CHECK(begin());
    // Before the offset up to which is drained is read: what was dropped by then is before it.
    const KeepsAll whole{storage_};
    SEMEL_CHECK(storage_.drain());
    SEMEL_CHECK(fix_whole_content());
    return fill();
  }
  /// `cold`: the directory below the backup with the copy of the cold store; empty: none.
  [[nodiscard]] Result<BackupReport> complete(const std::string& cold);

 private:
  [[nodiscard]] Status check();
  [[nodiscard]] Status choose_base();
  [[nodiscard]] Status begin();
  [[nodiscard]] Status fix_whole_content();
  [[nodiscard]] Status fix_content();
  [[nodiscard]] Status write_mark(storage::LogOffset drained);
  [[nodiscard]] Status fill();
  [[nodiscard]] Status list_tree(const std::string& name, int levels);
  [[nodiscard]] std::string links() const {
    return storage_.options_.directory + storage::backup_links;
  }

  Impl& storage_;
  rocksdb::Env& env_;
  const std::string& directory_;
  const BackupOptions& options_;
  const bool has_turn_;
  bool is_made_ = false;  // the directory
  bool is_complete_ = false;
  storage::BackupList list_;
  BackupReport report_;
  storage::BackupList base_;
  std::string base_directory_;  // empty: there is none
};

Status Storage::Impl::BackupMaking::check() {
  constexpr std::uint64_t least = std::uint64_t{64} << 10;
  if (options_.bytes_per_second != 0 && options_.bytes_per_second < least) {
    return Error{ErrorCode::bad_option,
                 "bytes_per_second = " + std::to_string(options_.bytes_per_second) + ", 0 or " +
                     std::to_string(least) + " and up"};
  }
  SEMEL_CHECK(storage_.check_backup_target(directory_));
  list_.storage_id = storage_.storage_id_;
  list_.unix_ms = storage_.clock_.unix_ms();
  return choose_base();
}

Status Storage::Impl::BackupMaking::choose_base() {
  base_directory_ = options_.base;
  if (!base_directory_.empty() && !storage::is_backup(base_directory_)) {
    auto newest = storage::newest_backup(base_directory_, storage_.storage_id_);
    if (!newest) return Error{ErrorCode::bad_option, "base: " + newest.error().detail};
    base_directory_ = *std::move(newest);
  }
  if (base_directory_.empty()) return Done{};
  auto base = storage::read_backup_list(base_directory_);
  if (!base) return Error{ErrorCode::bad_option, "base: " + base.error().detail};
  if (base->has_files && base->storage_id != storage_.storage_id_) {
    return Error{ErrorCode::bad_option, "base: " + base_directory_ + ": is of another storage"};
  }
  base_ = *std::move(base);
  return Done{};
}

/// From the first moment on the directory tells that it is a backup, and no complete one.
Status Storage::Impl::BackupMaking::begin() {
  SEMEL_CHECK(storage::make_new_directory(directory_));
  is_made_ = true;
  SEMEL_CHECK(storage::write_backup_list(env_, directory_, list_));
  SEMEL_CHECK(storage::make_directory(directory_ + "/log"));
  return storage::make_directory(directory_ + "/rocksdb");
}

/// A joined commit is in RocksDB before the log that it depends on is: a claim's namespace, its
/// grant. So the rest of the log is drained while no such commit is made.
Status Storage::Impl::BackupMaking::fix_whole_content() {
  if (storage_.joined_files().family() == nullptr) return fix_content();
  const storage::JoinedGate::Closed closed{storage_.joined_gate_};
  SEMEL_CHECK(storage_.drain());
  return fix_content();
}

Status Storage::Impl::BackupMaking::fix_content() {
  SEMEL_CHECK(storage_.remove_backup_links());
  SEMEL_CHECK(storage::make_new_directory(links()));
  const base::MutexLock lock{storage_.archive_mutex_};
  SEMEL_CHECK(storage_.archive_->check_room_for_flush());
  SEMEL_CHECK(storage_.archive_->guarded([&] {
    rocksdb::Checkpoint* made = nullptr;
    rocksdb::Status status = rocksdb::Checkpoint::Create(&storage_.archive_->database(), &made);
    const std::unique_ptr<rocksdb::Checkpoint> copier{made};
    // 0 flushes the memtables: RocksDB 7.8 does not sync all of a linked log.
    if (status.ok()) status = copier->CreateCheckpoint(links() + "/rocksdb", 0);
    return status.ok() ? Status{Done{}} : storage::error_of(status, links());
  }));
  list_.incarnation = storage_.archive_->description().incarnation;
  // mo: acquire [storage.drained]
  return write_mark(storage_.drained_.load(std::memory_order_acquire));
}

Status Storage::Impl::BackupMaking::write_mark(storage::LogOffset drained) {
  SEMEL_TRY(checkpoint, storage::Checkpoint::open(storage_.disk_, directory_ + "/mark"));
  storage::CheckpointContent content;
  content.storage_id = storage_.storage_id_;
  content.format = storage::format_version;
  content.segment_bytes = storage_.log_->segment_bytes();
  content.begin = content.tail = content.whole = content.synced = content.drained = drained;
  // A restored storage takes what had ended by this time for ended.
  const bool knows_holds = storage_.is_recovered() || storage_.last_anchor_.line_ms == 0;
  const storage::Anchor anchor = knows_holds ? storage_.anchor_now() : storage_.last_anchor_;
  content.line_ms = anchor.line_ms;
  content.engine_ms = anchor.engine_ms;
  content.unix_ms = anchor.unix_ms;
  anchor.boot_id.copy(content.boot_id, sizeof content.boot_id - 1);
  return checkpoint->write_and_sync(content);
}

Status Storage::Impl::BackupMaking::fill() {
  storage::BackupFiles files{env_, options_, std::move(base_), std::move(base_directory_)};
  SEMEL_CHECK(files.take_all(links() + "/rocksdb", directory_ + "/rocksdb", "rocksdb/"));
  SEMEL_CHECK(files.add_to_list(directory_, "mark"));
  list_.files = std::move(files.files());
  report_ = std::move(files.report());
  return Done{};
}

/// Files that another has copied or linked. Tables are not read: their database has checksums of
/// them.
Status Storage::Impl::BackupMaking::list_tree(const std::string& name, int levels) {
  SEMEL_TRY(names, storage::list_directory(directory_ + "/" + name));
  for (const std::string& each : names) {
    storage::BackupFile file;
    file.name = name + "/" + each;
    const std::string path = directory_ + "/" + file.name;
    std::error_code code;
    if (fs::is_directory(path, code)) {
      if (levels > 0) SEMEL_CHECK(list_tree(file.name, levels - 1));
      continue;
    }
    file.bytes = fs::file_size(path, code);
    if (code) return Error{ErrorCode::storage_failed, path + ": " + code.message()};
    if (!storage::is_immutable_file(each)) {
      SEMEL_TRY(digest, storage::digest_of_file(path));
      file.digest = digest;
    }
    ++report_.files;
    report_.bytes += file.bytes;
    list_.files.push_back(std::move(file));
  }
  return Done{};
}

Result<BackupReport> Storage::Impl::BackupMaking::complete(const std::string& cold) {
  if (!cold.empty()) SEMEL_CHECK(list_tree(cold, 1));
  list_.complete = true;
  SEMEL_CHECK(storage::write_backup_list(env_, directory_, list_));
  is_complete_ = true;
  return std::move(report_);
}

/// A name that the storage itself uses must not become a backup: a storage with an entry `backup`,
/// for one, is taken for a backup by the next open.
Status Storage::Impl::check_backup_target(const std::string& directory) const {
  if (directory.empty()) return Error{ErrorCode::bad_option, "the directory of the backup is ''"};
  std::error_code code;
  if (fs::exists(fs::symlink_status(directory, code))) {
    // What a process that was killed has left says so, and what to do.
    if (storage::is_backup(directory)) {
      const auto list = storage::read_backup_list(directory);
      if (!list) return list.error();
    }
    return Error{ErrorCode::storage_failed,
                 directory + ": is there already; choose another name, or remove it"};
  }
  fs::path target = fs::absolute(directory, code).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "backups/"
  const fs::path own = fs::canonical(options_.directory, code);
  if (!code) target = fs::canonical(target.parent_path(), code) / target.filename();
  if (code) {
    return Error{ErrorCode::storage_failed, target.parent_path().string() + ": " + code.message()};
  }
  const fs::path inside = target.lexically_relative(own);
  const std::string first = inside.empty() ? std::string{} : inside.begin()->string();
  if (first != "." && !storage::is_part_of_storage(first)) return Done{};
  return Error{ErrorCode::bad_option,
               directory + ": is the place of a part of the storage; choose another name"};
}

Status Storage::Impl::remove_backup_links() {
  return storage::remove_tree(*disk_.env(), options_.directory + storage::backup_links);
}

Result<BackupReport> Storage::Impl::backup(const std::string& directory,
                                           const BackupOptions& options) {
  // Only with a cold store: a rewrite of files, which there is none of then, holds the mutex long.
  if (is_recovered() && is_tiered_.load(std::memory_order_relaxed)) {  // mo: relaxed: set before
    const base::SharedLock engine{engine_mutex_};                      // it does not end meanwhile
    if (engine_ != nullptr) return backup_with(directory, *engine_->cold_store(), options);
  }
  {
    const base::MutexLock lock{archive_mutex_};
    SEMEL_CHECK(check_cold(nullptr));
  }
  BackupMaking making{*this, directory, options};
  SEMEL_CHECK(making.make());
  return making.complete({});
}

Result<BackupReport> Storage::Impl::backup(const std::string& directory, ColdStore& cold,
                                           const BackupOptions& options) {
  const base::SharedLock engine{engine_mutex_};  // that would write to its own store meanwhile
  if (engine_ != nullptr && engine_->cold_store() != &cold) {
    return Error{ErrorCode::bad_option, "another cold store than that of the engine"};
  }
  return backup_with(directory, cold, options);
}

/// The store is held still first: all that is in it was appended before, so it is in the files that
/// are copied then, and nothing becomes void without being in the copy of the store. The list comes
/// last: without the store a backup is not complete.
Result<BackupReport> Storage::Impl::backup_with(const std::string& directory, ColdStore& cold,
                                                const BackupOptions& options) {
  {
    const base::MutexLock lock{archive_mutex_};
    SEMEL_CHECK(check_cold(&cold));
  }
  BackupMaking making{*this, directory, options};
  bool called = false;
  SEMEL_CHECK(cold.backup(directory + "/cold", [&] {
    called = true;
    return making.make();
  }));
  if (called) return making.complete("cold");
  return Error{ErrorCode::storage_failed, directory + ": the cold store made no backup"};
}

}  // namespace semel
