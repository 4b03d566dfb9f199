#include "storage/log/segment.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/random.hpp"
#include "storage/log/log_scan.hpp"

namespace semel::storage {
namespace {

SegmentHeader with_salt(SegmentHeader header) {
  header.salt = base::random_number();
  header.digest = header.right_digest();
  return header;
}

/// Zeros and the header. By pages: see Disk::write_zeros().
Status write_fresh(Disk& disk, int descriptor, const std::string& path,
                   const SegmentHeader& header) {
  std::array<char, 4096> page{};
  static_assert(sizeof header <= page.size());
  for (std::uint64_t at = 0; at < header.bytes; at += page.size()) {
    if (at == 0) std::memcpy(page.data(), &header, sizeof header);
    if (!disk.write_at(descriptor, {page.data(), page.size()}, at)) {
      return system_error("writing zeros to " + path);
    }
    if (at == 0) page.fill('\0');
  }
  return Done{};
}

}  // namespace

Result<std::unique_ptr<Segment>> Segment::make(Disk& disk, const std::string& directory,
                                               const SegmentHeader& wanted, bool zeroed,
                                               Access access) {
  const SegmentHeader header = with_salt(wanted);
  // Before there is a file: then only that has to be undone where memory ends.
  std::unique_ptr<Segment> made{
      new Segment{header, directory + "/" + segment_name(header.number * header.bytes), access}};
  SEMEL_TRY(descriptor, disk.create(made->path_, header.bytes));
  made->descriptor_ = descriptor;
  Status status = Done{};
  try {
    status = made->fill(disk, zeroed);
  } catch (...) {
    static_cast<void>(disk.remove(made->path_));
    throw;
  }
  if (status) return made;
  static_cast<void>(disk.remove(made->path_));  // if it stays, the next open removes it
  return status.error();
}

/// Header and memory of a file that is new.
Status Segment::fill(Disk& disk, bool zeroed) {
  if (zeroed) SEMEL_CHECK(disk.write_zeros(descriptor_, path_, header_.bytes));
  const std::string_view header{reinterpret_cast<const char*>(&header_), sizeof header_};
  if (!disk.write_at(descriptor_, header, 0)) {
    return system_error("writing " + path_);
  }
  constexpr int both = PROT_READ | PROT_WRITE;
  void* const memory = is_mapped()
                           ? mmap(nullptr, header_.bytes, both, MAP_SHARED, descriptor_, 0)
                           : mmap(nullptr, header_.bytes, both, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_error("mapping " + path_);
  bytes_ = static_cast<char*>(memory);
  if (!is_mapped()) std::memcpy(memory, &header_, sizeof header_);
  return Done{};
}

Result<std::unique_ptr<Segment>> Segment::reuse(Disk& disk, std::unique_ptr<Segment> old,
                                                const std::string& directory,
                                                const SegmentHeader& wanted) {
  SEMEL_ASSERT(old->is_mapped() && old->is_complete() && old->header_.bytes == wanted.bytes);
  const SegmentHeader header = with_salt(wanted);
  std::unique_ptr<Segment> made;
  const auto remove_both = [&] {
    // A file that stays is removed by the next open.
    static_cast<void>(disk.remove(old->path()));
    if (made != nullptr) static_cast<void>(disk.remove(made->path()));
  };
  Status status = Done{};
  try {
    made.reset(new Segment{header, directory + "/" + segment_name(header.number * header.bytes),
                           Access::mapped});
    // Before the file gets its new name it must hold only zeros and the new header: a process may
    // be killed right after. Whole pages, by system calls: through the mapping the old page would
    // be read first, and a sector that cannot be read would end the process.
    status = write_fresh(disk, old->descriptor_, old->path(), header);
    if (status) status = disk.rename(old->path(), made->path());
  } catch (...) {
    remove_both();
    throw;
  }
  if (!status) {
    remove_both();
    return status.error();
  }
  made->descriptor_ = std::exchange(old->descriptor_, -1);
  made->bytes_ = std::exchange(old->bytes_, nullptr);
  return made;
}

Segment::~Segment() {
  if (bytes_ != nullptr) {
    // Piece by piece: unmapping all at once would block page faults of all threads until it ends.
    constexpr std::size_t piece = std::size_t{256} << 10;
    for (std::size_t at = 0; at < header_.bytes; at += piece) {
      static_cast<void>(
          madvise(bytes_ + at, std::min(piece, header_.bytes - at), MADV_DONTNEED));  // advice only
    }
    munmap(bytes_, header_.bytes);
  }
  if (descriptor_ >= 0) close(descriptor_);
}

Status Segment::sync(Disk& disk, LogOffset from, LogOffset to) {
  SEMEL_ASSERT(begin() <= from && from <= to && to <= end());
  if (!is_mapped()) return disk.sync(descriptor_, path_);
  // Unmap the written pages first. Otherwise the kernel write-protects them one by one and
  // interrupts every processor for each, which shows in the tail latency of claims. Piece by piece,
  // as above.
  constexpr std::size_t page = 4096;  // with larger pages the advice has no effect
  constexpr std::size_t piece = std::size_t{256} << 10;
  constexpr std::size_t worth_it = std::size_t{64} << 10;
  const std::size_t end = (to - begin()) / page * page;
  std::size_t at = (from - begin()) / page * page;
  while (to - from >= worth_it && at < end) {
    const std::size_t bytes = std::min(piece, end - at);
    static_cast<void>(madvise(bytes_ + at, bytes, MADV_DONTNEED));  // advice only
    at += bytes;
  }
  return disk.sync_part(bytes_, path_, from - begin(), to - begin());
}

bool Segment::write_record(LogOffset offset, std::size_t bytes, std::size_t seal_at,
                           std::string_view seal) noexcept {
  if (is_mapped()) return true;
  SEMEL_ASSERT(seal_at + seal.size() <= bytes && offset + bytes <= end());
  const std::uint64_t in_file = offset - begin();
  return write_all(descriptor_, {at(offset), bytes}, in_file) &&
         write_all(descriptor_, seal, in_file + seal_at);
}

Result<std::string_view> Segment::read(char* buffer) const {
  SEMEL_ASSERT(is_complete());
  if (!is_mapped()) return std::string_view{bytes_, header_.bytes};
  if (auto damage = read_into(descriptor_, path_, buffer, header_.bytes, pread)) {
    return damage->error();
  }
  return std::string_view{buffer, header_.bytes};
}

void Segment::touch() noexcept {
  populate(MADV_POPULATE_WRITE);
}

void Segment::map_pages() noexcept {
  populate(MADV_POPULATE_READ);
}

void Segment::populate(int advice) noexcept {
  if (!is_mapped()) return;
  // Best effort: on an older kernel writers take the page faults. Piece by piece: a thread that
  // maps memory waits until the call ends, and page faults of all threads wait behind it.
  constexpr std::size_t piece = std::size_t{128} << 10;
  for (std::size_t at = 0; at < header_.bytes; at += piece) {
    static_cast<void>(madvise(bytes_ + at, std::min(piece, header_.bytes - at), advice));
  }
}

}  // namespace semel::storage
