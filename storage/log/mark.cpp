#include "storage/log/mark.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>

namespace semel::storage {
namespace {

constexpr std::size_t slot_bytes = 4096;
constexpr std::size_t file_bytes = 2 * slot_bytes;

bool is_zero(const char* bytes, std::size_t count) noexcept {
  return std::all_of(bytes, bytes + count, [](char byte) { return byte == 0; });
}

/// The process, or the power, went while it was made: shorter, and nothing in it. Nothing was
/// written to the storage then.
bool is_half_made(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::array<char, file_bytes> bytes{};
  file.read(bytes.data(), bytes.size());
  const auto got = static_cast<std::size_t>(file.gcount());
  return file.eof() && got < file_bytes && is_zero(bytes.data(), got) && !file.bad();
}

}  // namespace

Result<std::unique_ptr<Mark>> Mark::open(Disk& disk, const std::string& path) {
  if (is_half_made(path)) {
    SEMEL_TRY(removed, disk.remove(path));
    static_cast<void>(removed);
  }
  int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno != ENOENT) return system_error(path);
    SEMEL_TRY(made, disk.create(path, file_bytes));
    descriptor = made;
  }
  struct stat info {};
  const bool right = fstat(descriptor, &info) == 0 && info.st_size == file_bytes;
  void* const memory =
      right ? mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
            : MAP_FAILED;
  if (memory == MAP_FAILED) {
    const Error error = right ? system_error("mapping " + path)
                              : Error{ErrorCode::storage_damaged,
                                      path + ", offset " + std::to_string(info.st_size) +
                                          ": has not " + std::to_string(file_bytes) + " bytes"};
    close(descriptor);
    return error;
  }
  return std::unique_ptr<Mark>{new Mark{disk, path, descriptor, static_cast<char*>(memory)}};
}

Mark::~Mark() {
  munmap(bytes_, file_bytes);
  close(descriptor_);
}

Mark::Found Mark::read(MarkContent& content) const noexcept {
  Found found = is_zero(bytes_, file_bytes) ? Found::empty : Found::damaged;
  for (std::size_t slot = 0; slot < 2; ++slot) {
    MarkContent here;
    std::memcpy(&here, bytes_ + slot * slot_bytes, sizeof here);
    if (here.magic != MarkContent::magic_value || here.digest != here.right_digest()) continue;
    if (found == Found::content && here.sequence <= content.sequence) continue;
    content = here;
    found = Found::content;
  }
  return found;
}

void Mark::write(MarkContent& content) noexcept {
  ++content.sequence;
  content.digest = content.right_digest();
  char* const slot = bytes_ + (content.sequence % 2) * slot_bytes;
  std::memcpy(slot, &content, sizeof content);
  // The next writing goes to the other slot and must not be seen before this one.
  std::atomic_signal_fence(std::memory_order_seq_cst);  // mo: compiler only: a kill sees the order
}

}  // namespace semel::storage
