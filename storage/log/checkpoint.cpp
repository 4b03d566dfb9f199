#include "storage/log/checkpoint.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>

namespace semel::storage {
namespace {

bool is_zero(std::string_view bytes) noexcept {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

/// True if the creation of the file was interrupted: it is too short, and zeros only. Nothing was
/// written to the storage by then.
bool is_half_made(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::array<char, SlotFile::file_bytes> bytes{};
  file.read(bytes.data(), bytes.size());
  const auto got = static_cast<std::size_t>(file.gcount());
  return file.eof() && got < SlotFile::file_bytes && is_zero({bytes.data(), got}) && !file.bad();
}

}  // namespace

Result<SlotFile> SlotFile::open(Disk& disk, const std::string& path) {
  if (is_half_made(path)) {
    SEMEL_CHECK(disk.remove(path));
  }
  int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno != ENOENT) return system_error(path);
    SEMEL_TRY(made, disk.create(path, file_bytes));
    descriptor = made;
  }
  SlotFile file{disk, path, descriptor};
  struct stat info {};
  const bool right = fstat(descriptor, &info) == 0 && info.st_size == file_bytes;
  if (!right) {
    return Error{ErrorCode::storage_damaged, path + ", offset " + std::to_string(info.st_size) +
                                                 ": does not have " + std::to_string(file_bytes) +
                                                 " bytes"};
  }
  // A killed process may have left a slot that is not on the disk; or its sync has failed.
  SEMEL_CHECK(disk.rewrite_file(path, 0));
  SEMEL_CHECK(file.sync_file());
  return file;
}

SlotFile::SlotFile(SlotFile&& other) noexcept
    : disk_(other.disk_),
      path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      is_newest_whole_(other.is_newest_whole_),
      is_synced_(other.is_synced_) {}

SlotFile::~SlotFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<std::string> SlotFile::read_file() const {
  std::string bytes(file_bytes, '\0');
  const ssize_t count = pread(descriptor_, bytes.data(), bytes.size(), 0);
  if (count < 0) return system_error("reading " + path_);
  bytes.resize(static_cast<std::size_t>(count));
  return bytes;
}

SlotFile::Found SlotFile::without_content(std::string_view bytes) noexcept {
  if (is_zero(bytes) && bytes.size() <= file_bytes) return Found::empty;
  const bool is_half = bytes.size() == file_bytes &&
                       (is_zero(bytes.substr(0, slot_bytes)) || is_zero(bytes.substr(slot_bytes)));
  return is_half ? Found::unfinished : Found::damaged;
}

bool SlotFile::write_slot(std::uint64_t sequence, std::string_view content) noexcept {
  // A killed process may leave the slot without its checksum; then the other one counts.
  if (!disk_->write_at(descriptor_, content, (sequence % 2) * slot_bytes)) {
    is_newest_whole_ = is_synced_;  // a part of it may be written: of the newest slot, or beside it
    return false;
  }
  is_newest_whole_ = true;
  is_synced_ = false;
  return true;
}

Status SlotFile::sync_file() {
  Status synced = disk_->sync(descriptor_, path_);
  if (synced && is_newest_whole_) is_synced_ = true;
  return synced;
}

}  // namespace semel::storage
