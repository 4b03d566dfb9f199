#include "storage/log/checkpoint.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>

namespace semel::storage {
namespace {

constexpr std::size_t slot_bytes = 4096;
constexpr std::size_t file_bytes = 2 * slot_bytes;

bool is_zero(std::string_view bytes) noexcept {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

/// True if the creation of the file was interrupted: it is too short, and zeros only. Nothing was
/// written to the storage by then.
bool is_half_made(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::array<char, file_bytes> bytes{};
  file.read(bytes.data(), bytes.size());
  const auto got = static_cast<std::size_t>(file.gcount());
  return file.eof() && got < file_bytes && is_zero({bytes.data(), got}) && !file.bad();
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(Disk& disk, const std::string& path) {
  if (is_half_made(path)) {
    SEMEL_CHECK(disk.remove(path));
  }
  int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno != ENOENT) return system_error(path);
    SEMEL_TRY(made, disk.create(path, file_bytes));
    descriptor = made;
  }
  struct stat info {};
  const bool right = fstat(descriptor, &info) == 0 && info.st_size == file_bytes;
  if (!right) {
    const Error error{ErrorCode::storage_damaged,
                      path + ", offset " + std::to_string(info.st_size) + ": does not have " +
                          std::to_string(file_bytes) + " bytes"};
    close(descriptor);
    return error;
  }
  auto checkpoint = std::unique_ptr<Checkpoint>{new Checkpoint{disk, path, descriptor}};
  SEMEL_CHECK(checkpoint->sync());  // a killed process may have left a slot that is not
  return checkpoint;
}

Checkpoint::~Checkpoint() {
  close(descriptor_);
}

Result<Checkpoint::Found> Checkpoint::read(CheckpointContent& content) const {
  std::string bytes(file_bytes, '\0');
  const ssize_t count = pread(descriptor_, bytes.data(), bytes.size(), 0);
  if (count < 0) return system_error("reading " + path_);
  bytes.resize(static_cast<std::size_t>(count));
  return read(bytes, content);
}

Checkpoint::Found Checkpoint::read(std::string_view bytes, CheckpointContent& content) noexcept {
  if (is_zero(bytes) && bytes.size() <= file_bytes) return Found::empty;
  Found found = Found::damaged;
  for (std::size_t at = 0; at < file_bytes && at + sizeof content <= bytes.size();
       at += slot_bytes) {
    CheckpointContent here;
    std::memcpy(&here, bytes.data() + at, sizeof here);
    // A slot that was being written when its process ended does not have its checksum.
    if (here.magic != CheckpointContent::magic_value || here.digest != here.right_digest())
      continue;
    if (found == Found::content && here.sequence <= content.sequence) continue;
    content = here;
    found = Found::content;
  }
  if (found == Found::damaged && bytes.size() == file_bytes &&
      (is_zero(bytes.substr(0, slot_bytes)) || is_zero(bytes.substr(slot_bytes)))) {
    return Found::unfinished;
  }
  // The file is made with its size, so a half of it is damage even if the half is sound.
  return bytes.size() == file_bytes ? found : Found::damaged;
}

bool Checkpoint::write(CheckpointContent& content) noexcept {
  CheckpointContent next = content;
  next.sequence += is_synced_ ? 1 : 2;
  next.digest = next.right_digest();
  const auto at = static_cast<off_t>((next.sequence % 2) * slot_bytes);
  // A killed process may leave the slot without its checksum; then the other one counts.
  if (pwrite(descriptor_, &next, sizeof next, at) != sizeof next) {
    is_newest_whole_ = is_synced_;  // a part of it may be written: of the newest slot, or beside it
    return false;
  }
  is_newest_whole_ = true;
  is_synced_ = false;
  content = next;
  return true;
}

Status Checkpoint::sync() {
  Status synced = disk_.sync(descriptor_, path_);
  if (synced && is_newest_whole_) is_synced_ = true;
  return synced;
}

Status Checkpoint::write_and_sync(CheckpointContent& content) {
  return write(content) ? sync() : system_error("writing " + path_);
}

}  // namespace semel::storage
