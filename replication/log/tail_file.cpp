#include "replication/log/tail_file.hpp"

#include <cerrno>
#include <cstdio>
#include <utility>

namespace semel::replication {

using storage::Disk;
using storage::LogOffset;

namespace {

using File = storage::TwoSlots<TailContent>;

/// Without making it, as File::open() would.
Result<File::Found> read_content(const std::string& path, TailContent& content) {
  const auto close_file = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close_file)> file{std::fopen(path.c_str(), "re"),
                                                              close_file};
  if (file == nullptr) {
    if (errno == ENOENT) return File::Found::empty;
    return storage::system_error(path);
  }
  std::string bytes(File::file_bytes, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
  return File::read(bytes, content);
}

}  // namespace

Result<LogOffset> TailFile::read(const std::string& directory, std::uint64_t log_id) {
  const std::string path = directory + "/" + name;
  TailContent content;
  SEMEL_TRY(found, read_content(path, content));
  if (found == File::Found::damaged) {
    return Error{ErrorCode::storage_damaged,
                 path + ": how far the log was synced cannot be read; this node must join anew"};
  }
  return found == File::Found::content && content.log_id == log_id ? content.synced : 0;
}

Result<std::unique_ptr<TailFile>> TailFile::open(Disk& disk, const std::string& directory,
                                                 std::uint64_t log_id) {
  SEMEL_TRY(file, File::open(disk, directory + "/" + name));
  std::unique_ptr<TailFile> made{new TailFile{std::move(file)}};
  SEMEL_CHECK(made->file_->read(made->content_));  // the sequence goes on
  made->content_.log_id = log_id;
  return made;
}

Status TailFile::synced(LogOffset to, bool is_named) {
  content_.synced = to;
  if (is_named) return file_->write_and_sync(content_);
  // Where it fails, the file says less than it could.
  static_cast<void>(file_->write(content_));
  return Done{};
}

}  // namespace semel::replication
