// Backups beside a running engine. Words: a base is an older backup, links are names of one file,
// a list is the file `backup`, the target is the directory to make.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/write_batch.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "semel/rocksdb.hpp"
#include "semel/semel.hpp"
#include "semel/storage_tools.hpp"
#include "storage/backup/backup_files.hpp"
#include "storage/backup/backup_list.hpp"
#include "storage/backup/backup_pace.hpp"
#include "storage/log/directory.hpp"
#include "storage/log/disk.hpp"
#include "tests/storage/directory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

namespace semel::tests {

namespace fs = std::filesystem;

/// An engine on a storage, as one process has it.
struct Process {
  explicit Process(const std::string& directory, const Clock& clock, storage::Disk* disk = nullptr,
                   bool joins = false) {
    StorageOptions options{.directory = directory, .log_bytes = std::size_t{8} << 20};
    options.disk = disk;
    auto opened = joins ? open_storage(options, clock, {}) : Storage::open(options, clock);
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::logged,
                              .memory_bytes = std::size_t{256} << 20,
                              .first_version = storage->first_version()});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    auto report = storage->recover(*engine);
    if (!report) FAIL(report.error().message());
  }
  void set(const std::string& key, const std::string& value) {
    REQUIRE(engine->store().set(key, value).ok());
  }
  /// `count` records that no file system could store in less room.
  void fill(const std::string& prefix, int count) {
    for (int i = 0; i < count; ++i) set(prefix + std::to_string(i), std::string(1'000, 'v'));
  }
  [[nodiscard]] std::string get(const std::string& key) {
    return engine->store().get(key).value().value_or("-");
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
};

const BackupOptions copying{.copies = true};

inline bool exists(const std::string& path) {
  return fs::exists(fs::symlink_status(path));
}

inline bool has_links(const Directory& directory) {
  return exists(directory.path() + storage::backup_links);
}

inline std::vector<std::string> tables_of(const std::string& backup) {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator{backup + "/rocksdb"}) {
    if (file.path().extension() == ".sst") names.push_back(file.path().string());
  }
  return names;
}

inline ino_t inode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_ino;
}

/// Changes one byte in the middle, in a file of its own: other names keep the old one.
inline void damage(const std::string& path) {
  const std::string copy = path + ".damaged";
  fs::copy_file(path, copy);
  std::fstream file{copy, std::ios::in | std::ios::out | std::ios::binary};
  const auto at = static_cast<std::streamoff>(fs::file_size(copy) / 2);
  file.seekg(at);
  const int was = file.get();
  file.seekp(at);
  file.put(static_cast<char>(was ^ 1));
  file.close();
  fs::rename(copy, path);
}

inline void require_sound(const std::string& backup) {
  const auto check = verify_storage(backup);
  if (!check) FAIL(check.error().message());
  for (const StorageFinding& finding : check->findings) FAIL(finding.file + ": " + finding.what);
  REQUIRE(check->is_sound());
}

}  // namespace semel::tests
