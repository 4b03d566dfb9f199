#include "storage/backup/backup_files.hpp"

#include <rocksdb/file_system.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>

#include "storage/archive/rocks_status.hpp"
#include "storage/log/signal.hpp"

namespace semel::storage {
namespace {

/// A table's last block but two has its properties, with ids that RocksDB gives to no other table.
constexpr std::uint64_t tail_bytes = std::uint64_t{64} << 10;
/// So much is on its way to the disk at most: others' syncs wait for no more.
constexpr std::uint64_t unsynced_bytes_max = std::uint64_t{1} << 20;
constexpr Millis look_again{50};  // for a wish to cancel

rocksdb::EnvOptions file_options() {
  rocksdb::EnvOptions options;
  options.use_mmap_reads = options.use_mmap_writes = false;
  options.strict_bytes_per_sync = true;  // RangeSync waits for the range before
  return options;
}

/// Gives the file to `visit` piece by piece, until that fails.
Status read_pieces(rocksdb::Env& env, const std::string& path, std::size_t piece_bytes,
                   const std::function<Status(std::string_view)>& visit) {
  std::unique_ptr<rocksdb::SequentialFile> file;
  rocksdb::Status status = env.NewSequentialFile(path, &file, file_options());
  std::string buffer(piece_bytes, '\0');
  while (status.ok()) {
    rocksdb::Slice piece;
    status = file->Read(buffer.size(), &piece, buffer.data());
    if (!status.ok()) break;
    if (piece.empty()) {
      // A backup must not push what others use out of the page cache; an error costs only that.
      static_cast<void>(file->InvalidateCache(0, 0));
      return Done{};
    }
    SEMEL_CHECK(visit({piece.data(), piece.size()}));
  }
  return error_of(status, path);
}

}  // namespace

bool is_immutable_file(const std::string& name) {
  return name.ends_with(".sst") || name.ends_with(".blob");
}

Status BackupFiles::take_all(const std::string& from, const std::string& to,
                             const std::string& prefix) {
  std::vector<std::string> names;
  rocksdb::Status status = env_.GetChildren(from, &names);
  std::vector<BackupFile> files;
  for (const std::string& name : names) {
    if (name == "." || name == ".." || !status.ok()) continue;
    BackupFile& file = files.emplace_back();
    file.name = prefix + name;
    status = env_.GetFileSize(from + "/" + name, &file.bytes);
    bytes_total_ += file.bytes;
  }
  if (!status.ok()) return error_of(status, from);
  std::sort(files.begin(), files.end(),
            [](const BackupFile& a, const BackupFile& b) { return a.name < b.name; });
  for (BackupFile& file : files) {
    const std::string name = "/" + file.name.substr(prefix.size());
    SEMEL_CHECK(take(from + name, to + name, std::move(file)));
  }
  return sync_backup_directory(env_, to);
}

Status BackupFiles::take(const std::string& from, const std::string& to, BackupFile file) {
  const bool may_link = is_immutable_file(file.name);
  bool linked = false;
  if (may_link && !options_.copies) {
    // An error is another disk, or a file system without links.
    linked = env_.LinkFile(from, to).ok();
    if (linked) report_.bytes_linked += file.bytes;
  }
  if (may_link && !linked && !base_.files.empty()) {
    SEMEL_TRY(shared, link_from_base(from, to, file));
    linked = shared;
    if (linked) report_.bytes_shared += file.bytes;
  }
  if (!linked) {
    SEMEL_TRY(digest, copy(from, to));
    file.digest = digest;
    report_.bytes_copied += file.bytes;
  }
  ++report_.files;
  report_.bytes += file.bytes;
  files_.push_back(std::move(file));
  return announce();
}

Result<bool> BackupFiles::link_from_base(const std::string& from, const std::string& to,
                                         BackupFile& file) {
  const auto older =
      std::find_if(base_.files.begin(), base_.files.end(), [&](const BackupFile& other) {
        return other.name == file.name && other.bytes == file.bytes && other.digest;
      });
  if (older == base_.files.end()) return false;
  const std::string path = base_directory_ + "/" + older->name;
  std::string tail;
  // Read it all: damage would otherwise get into every later backup.
  const auto digest = read_slowly(path, tail);
  if (!digest.ok() && (digest.error().code == ErrorCode::refused ||
                       digest.error().code == ErrorCode::callback_threw)) {
    return digest.error();
  }
  if (!digest.ok() || *digest != *older->digest) {
    report_.damaged_in_base.push_back(path);
    return false;
  }
  std::ifstream now{from, std::ios::binary};
  const std::uint64_t begin = file.bytes - tail.size();
  std::string present(tail.size(), '\0');
  now.seekg(static_cast<std::streamoff>(begin));
  now.read(present.data(), static_cast<std::streamsize>(present.size()));
  if (!now || present != tail) return false;
  if (!env_.LinkFile(path, to).ok()) return false;
  file.digest = older->digest;
  return true;
}

Result<std::uint64_t> BackupFiles::read_slowly(const std::string& path, std::string& tail) {
  Digest digest;
  SEMEL_CHECK(read_pieces(env_, path, pace_.piece_bytes(), [&](std::string_view piece) {
    digest.add(piece);
    tail += piece;
    if (tail.size() > 2 * tail_bytes) tail.erase(0, tail.size() - tail_bytes);
    return wait_after(piece.size());
  }));
  if (tail.size() > tail_bytes) tail.erase(0, tail.size() - tail_bytes);
  return digest.value();
}

Result<std::uint64_t> BackupFiles::copy(const std::string& from, const std::string& to) {
  std::unique_ptr<rocksdb::WritableFile> copy;
  rocksdb::Status status = env_.NewWritableFile(to, &copy, file_options());
  if (!status.ok()) return error_of(status, to);
  Digest digest;
  std::uint64_t written = 0;
  std::uint64_t sent = 0;
  SEMEL_CHECK(read_pieces(env_, from, pace_.piece_bytes(), [&](std::string_view piece) -> Status {
    digest.add(piece);
    rocksdb::Status wrote = copy->Append({piece.data(), piece.size()});
    written += piece.size();
    if (wrote.ok() && written - sent >= unsynced_bytes_max) {
      wrote = copy->RangeSync(sent, written - sent);
      sent = written;
    }
    if (!wrote.ok()) return error_of(wrote, to);
    moving_ = written;
    return wait_after(piece.size());
  }));
  moving_ = 0;
  status = copy->Fsync();
  if (status.ok()) static_cast<void>(copy->InvalidateCache(0, 0));
  if (status.ok()) status = copy->Close();
  if (!status.ok()) return error_of(status, to);
  return digest.value();
}

Status BackupFiles::add_to_list(const std::string& directory, const std::string& name) {
  BackupFile file;
  file.name = name;
  const rocksdb::Status status = env_.GetFileSize(directory + "/" + name, &file.bytes);
  if (!status.ok()) return error_of(status, directory + "/" + name);
  SEMEL_TRY(digest, digest_of_file(directory + "/" + name));
  file.digest = digest;
  ++report_.files;
  report_.bytes += file.bytes;
  files_.push_back(std::move(file));
  return Done{};
}

Status BackupFiles::wait_after(std::uint64_t bytes) {
  const Millis until = watch_.passed() + pace_.after(bytes, watch_.passed());
  const Signal never;
  for (;;) {
    SEMEL_CHECK(announce());
    const Millis left = until - watch_.passed();
    if (left <= Millis{0}) return Done{};
    never.wait(never.seen(), std::min(left, look_again));
  }
}

Status BackupFiles::announce() {
  if (!options_.progress) return Done{};
  try {
    if (options_.progress({report_.bytes + moving_, bytes_total_})) return Done{};
  } catch (...) {
    return Error{ErrorCode::callback_threw, "the callback for a backup's progress"};
  }
  return Error{ErrorCode::refused, "the backup was cancelled"};
}

}  // namespace semel::storage
