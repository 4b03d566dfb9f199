#include "storage/storage_backup.hpp"

#include <rocksdb/utilities/checkpoint.h>

#include <filesystem>

#include "semel/engine_host.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/backup/backup_files.hpp"
#include "storage/backup/backup_io.hpp"
#include "storage/backup/backup_list.hpp"
#include "storage/log/directory.hpp"
#include "storage/storage_cold.hpp"

namespace semel::storage {

namespace fs = std::filesystem;

class Backups::Making {
 public:
  Making(Backups& of, const std::string& directory, const BackupOptions& options)
      : of_(of),
        env_(*of.context_.disk.env()),
        directory_(directory),
        options_(options),
        // mo: acquire [storage.backup]: the one before has removed its links
        has_turn_(!of.backing_up_.exchange(true, std::memory_order_acquire)) {}
  ~Making() {
    if (!has_turn_) return;
    // Links would keep the space of files that the storage has deleted. If one cannot be removed,
    // as for want of memory, the next backup or open tries again; without its list the backup is
    // none.
    try {
      static_cast<void>(of_.remove_links());
      if (is_made_ && !is_complete_) static_cast<void>(remove_tree(env_, directory_));
    } catch (...) {
    }
    of_.backing_up_.store(false, std::memory_order_release);  // mo: release [storage.backup]
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  /// All but the last step.
  [[nodiscard]] Status make() {
    if (!has_turn_) return Error{ErrorCode::refused, "a backup of this storage is running"};
    SEMEL_CHECK(check());
    SEMEL_CHECK(begin());
    // This must precede the read of the drained offset: everything dropped until now lies before
    // that offset.
    const LogToFiles::KeepsAll whole{of_.log_to_files_};
    SEMEL_CHECK(of_.requests_.drain());
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
  [[nodiscard]] Status write_mark(LogOffset drained);
  [[nodiscard]] Status fill();
  [[nodiscard]] Status list_tree(const std::string& name, int levels);
  [[nodiscard]] std::string links() const { return of_.context_.options.directory + backup_links; }

  Backups& of_;
  rocksdb::Env& env_;
  const std::string& directory_;
  const BackupOptions& options_;
  const bool has_turn_;
  bool is_made_ = false;  // the directory
  bool is_complete_ = false;
  BackupList list_;
  BackupReport report_;
  BackupList base_;
  std::string base_directory_;  // empty: there is none
};

Status Backups::Making::check() {
  constexpr std::uint64_t least = std::uint64_t{64} << 10;
  if (options_.bytes_per_second != 0 && options_.bytes_per_second < least) {
    return Error{ErrorCode::bad_option,
                 "bytes_per_second = " + std::to_string(options_.bytes_per_second) + ", 0 or " +
                     std::to_string(least) + " and up"};
  }
  SEMEL_CHECK(of_.check_target(directory_));
  list_.storage_id = of_.context_.storage_id;
  list_.unix_ms = of_.context_.clock.unix_ms();
  return choose_base();
}

Status Backups::Making::choose_base() {
  base_directory_ = options_.base;
  if (!base_directory_.empty() && !is_backup(base_directory_)) {
    auto newest = newest_backup(base_directory_, of_.context_.storage_id);
    if (!newest) return Error{ErrorCode::bad_option, "base: " + newest.error().detail};
    base_directory_ = *std::move(newest);
  }
  if (base_directory_.empty()) return Done{};
  auto base = read_backup_list(base_directory_);
  if (!base) return Error{ErrorCode::bad_option, "base: " + base.error().detail};
  if (base->has_files && base->storage_id != of_.context_.storage_id) {
    return Error{ErrorCode::bad_option, "base: " + base_directory_ + ": is of another storage"};
  }
  base_ = *std::move(base);
  return Done{};
}

/// From the first moment on the directory tells that it is a backup, and no complete one.
Status Backups::Making::begin() {
  SEMEL_CHECK(make_new_directory(directory_));
  is_made_ = true;
  SEMEL_CHECK(write_backup_list(env_, directory_, list_));
  SEMEL_CHECK(make_directory(directory_ + "/log"));
  return make_directory(directory_ + "/rocksdb");
}

/// A joined commit is in RocksDB before the log that it depends on is: a claim's namespace, its
/// grant. So the rest of the journal is drained while no such commit is made.
Status Backups::Making::fix_whole_content() {
  if (!of_.files_.has_joined()) return fix_content();
  const JoinedGate::Closed closed{of_.gate_};
  SEMEL_CHECK(of_.requests_.drain());
  return fix_content();
}

Status Backups::Making::fix_content() {
  SEMEL_CHECK(of_.remove_links());
  SEMEL_CHECK(make_new_directory(links()));
  const base::MutexLock lock{of_.files_.mutex};
  SEMEL_CHECK(of_.files_.archive().check_room_for_flush());
  SEMEL_CHECK(of_.files_.archive().guarded([&] {
    rocksdb::Checkpoint* made = nullptr;
    rocksdb::Status status = rocksdb::Checkpoint::Create(&of_.files_.archive().database(), &made);
    const std::unique_ptr<rocksdb::Checkpoint> copier{made};
    // 0 flushes the memtables: RocksDB 7.8 does not sync all of a linked log.
    if (status.ok()) status = copier->CreateCheckpoint(links() + "/rocksdb", 0);
    return status.ok() ? Status{Done{}} : error_of(status, links());
  }));
  list_.incarnation = of_.files_.archive().description().incarnation;
  return write_mark(of_.files_.drained());
}

Status Backups::Making::write_mark(LogOffset drained) {
  SEMEL_TRY(checkpoint, Checkpoint::open(of_.context_.disk, directory_ + "/mark"));
  CheckpointContent content;
  content.storage_id = of_.context_.storage_id;
  content.format = format_version;
  content.segment_bytes = of_.context_.segment_bytes();
  content.begin = content.tail = content.whole = content.synced = content.drained = drained;
  // In a restored storage, records whose end is before this time have ended.
  const bool knows_holds = of_.files_.is_recovered() || of_.files_.earlier().anchor.line_ms == 0;
  const Anchor anchor = knows_holds ? of_.context_.anchor_now() : of_.files_.earlier().anchor;
  content.line_ms = anchor.line_ms;
  content.engine_ms = anchor.engine_ms;
  content.unix_ms = anchor.unix_ms;
  anchor.boot_id.copy(content.boot_id, sizeof content.boot_id - 1);
  return checkpoint->write_and_sync(content);
}

Status Backups::Making::fill() {
  BackupFiles files{env_, options_, std::move(base_), std::move(base_directory_)};
  SEMEL_CHECK(files.take_all(links() + "/rocksdb", directory_ + "/rocksdb", "rocksdb/"));
  SEMEL_CHECK(files.add_to_list(directory_, "mark"));
  list_.files = std::move(files.files());
  report_ = std::move(files.report());
  return Done{};
}

/// Files that another has copied or linked. Tables are not read: their database has checksums of
/// them.
Status Backups::Making::list_tree(const std::string& name, int levels) {
  SEMEL_TRY(names, list_directory(directory_ + "/" + name));
  for (const std::string& each : names) {
    BackupFile file;
    file.name = name + "/" + each;
    const std::string path = directory_ + "/" + file.name;
    std::error_code code;
    if (fs::is_directory(path, code)) {
      if (levels > 0) SEMEL_CHECK(list_tree(file.name, levels - 1));
      continue;
    }
    file.bytes = fs::file_size(path, code);
    if (code) return Error{ErrorCode::storage_failed, path + ": " + code.message()};
    if (!is_immutable_file(each)) {
      SEMEL_TRY(digest, digest_of_file(path));
      file.digest = digest;
    }
    ++report_.files;
    report_.bytes += file.bytes;
    list_.files.push_back(std::move(file));
  }
  return Done{};
}

Result<BackupReport> Backups::Making::complete(const std::string& cold) {
  if (!cold.empty()) SEMEL_CHECK(list_tree(cold, 1));
  list_.complete = true;
  SEMEL_CHECK(write_backup_list(env_, directory_, list_));
  is_complete_ = true;
  return std::move(report_);
}

/// A name that the storage itself uses must not become a backup: a storage with an entry `backup`,
/// for one, is taken for a backup by the next open.
Status Backups::check_target(const std::string& directory) const {
  if (directory.empty()) return Error{ErrorCode::bad_option, "the directory of the backup is ''"};
  std::error_code code;
  if (fs::exists(fs::symlink_status(directory, code))) {
    // An incomplete backup of a killed process has an error of its own, with the remedy.
    if (is_backup(directory)) {
      const auto list = read_backup_list(directory);
      if (!list) return list.error();
    }
    return Error{ErrorCode::storage_failed,
                 directory + ": is there already; choose another name, or remove it"};
  }
  fs::path target = fs::absolute(directory, code).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "backups/"
  const fs::path own = fs::canonical(context_.options.directory, code);
  if (!code) target = fs::canonical(target.parent_path(), code) / target.filename();
  if (code) {
    return Error{ErrorCode::storage_failed, target.parent_path().string() + ": " + code.message()};
  }
  const fs::path inside = target.lexically_relative(own);
  const std::string first = inside.empty() ? std::string{} : inside.begin()->string();
  if (first != "." && !is_part_of_storage(first)) return Done{};
  return Error{ErrorCode::bad_option,
               directory + ": is the place of a part of the storage; choose another name"};
}

Status Backups::remove_links() const {
  return remove_tree(*context_.disk.env(), context_.options.directory + backup_links);
}

Result<BackupReport> Backups::make(const std::string& directory, const BackupOptions& options) {
  // Only with a cold store: a rewrite of files, which there is none of then, holds the mutex long.
  if (files_.is_recovered() && engine_.is_tiered()) {
    const base::SharedLock lock{engine_.mutex};  // keeps the engine alive during the backup
    Engine* const engine = engine_.get();
    if (engine != nullptr) return make_with(directory, *engine->host().cold_store(), options);
  }
  {
    const base::MutexLock lock{files_.mutex};
    SEMEL_CHECK(check_cold(files_, context_.options.directory, nullptr));
  }
  Making making{*this, directory, options};
  SEMEL_CHECK(making.make());
  return making.complete({});
}

Result<BackupReport> Backups::make(const std::string& directory, ColdStore& cold,
                                   const BackupOptions& options) {
  const base::SharedLock lock{engine_.mutex};  // an engine would write to its own store
  Engine* const engine = engine_.get();
  if (engine != nullptr && engine->host().cold_store() != &cold) {
    return Error{ErrorCode::bad_option, "another cold store than that of the engine"};
  }
  return make_with(directory, cold, options);
}

/// The store is held still first: all that is in it was appended before, so it is in the files that
/// are copied then, and nothing becomes void without being in the copy of the store. The list comes
/// last: without the store a backup is not complete.
Result<BackupReport> Backups::make_with(const std::string& directory, ColdStore& cold,
                                        const BackupOptions& options) {
  {
    const base::MutexLock lock{files_.mutex};
    SEMEL_CHECK(check_cold(files_, context_.options.directory, &cold));
  }
  Making making{*this, directory, options};
  bool called = false;
  SEMEL_CHECK(cold.backup(directory + "/cold", [&] {
    called = true;
    return making.make();
  }));
  if (called) return making.complete("cold");
  return Error{ErrorCode::storage_failed, directory + ": the cold store made no backup"};
}

}  // namespace semel::storage
