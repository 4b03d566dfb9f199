#include "storage/log/log_scan.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "storage/log/disk.hpp"

namespace semel::storage {

std::optional<LogDamage> read_into(int descriptor, const std::string& path, char* to,
                                   std::size_t bytes, ReadAt read_at) {
  constexpr std::size_t piece_max = std::size_t{1} << 20;
  constexpr std::size_t sector = 4096;  // the bytes skipped around an unreadable sector
  std::optional<LogDamage> damage;
  std::size_t piece = piece_max;
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t count =
        read_at(descriptor, to + at, std::min(piece, bytes - at), static_cast<off_t>(at));
    if (count > 0) {
      at += static_cast<std::size_t>(count);
      piece = piece_max;
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && piece > sector) {
      piece = sector;  // narrow it down
      continue;
    }
    const std::string why = count == 0 ? "the file has become shorter" : std::strerror(errno);
    if (!damage) damage = LogDamage{path, at, "cannot be read: " + why};
    if (count == 0) break;
    std::fill_n(to + at, std::min(sector, bytes - at), '\0');
    at += sector;
  }
  return damage;
}

Result<SegmentFile> SegmentFile::open(const std::string& path, ReadAt read_at) {
  return read(path, std::numeric_limits<std::size_t>::max(), read_at);
}

Result<SegmentFile> SegmentFile::open_header(const std::string& path) {
  return read(path, segment_header_bytes, pread);
}

Result<SegmentFile> SegmentFile::read(const std::string& path, std::size_t bytes_max,
                                      ReadAt read_at) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error(path);
  struct stat info {};
  if (fstat(descriptor, &info) != 0) {
    const Error error = system_error(path);
    close(descriptor);
    return error;
  }
  const auto file_bytes = static_cast<std::size_t>(info.st_size);
  if (file_bytes < segment_header_bytes) {
    close(descriptor);
    return LogDamage{path, file_bytes, "the file ends in its header"}.error();
  }
  const std::size_t size = std::min(file_bytes, bytes_max);
  // Not from the heap: a thread's heap would keep it.
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    const Error error = system_error("memory for " + path);
    close(descriptor);
    return error;
  }
  std::optional<LogDamage> unreadable =
      read_into(descriptor, path, static_cast<char*>(memory), size, read_at);
  close(descriptor);
  return SegmentFile{
      path, {static_cast<const char*>(memory), size}, file_bytes, std::move(unreadable)};
}

SegmentFile::SegmentFile(std::string path, std::string_view bytes, std::size_t file_bytes,
                         std::optional<LogDamage> unreadable) noexcept
    : path_(std::move(path)),
      bytes_(bytes),
      file_bytes_(file_bytes),
      unreadable_(std::move(unreadable)) {
  std::memcpy(&header_, bytes_.data(), sizeof header_);
}
SegmentFile::SegmentFile(SegmentFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      file_bytes_(other.file_bytes_),
      unreadable_(std::move(other.unreadable_)),
      header_(other.header_) {}
SegmentFile::~SegmentFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

std::optional<LogDamage> SegmentFile::check_header(std::uint64_t number,
                                                   std::uint64_t storage_id) const {
  const auto damage = [&](std::string what) { return LogDamage{path_, 0, std::move(what)}; };
  if (unreadable_) return unreadable_;
  if (!header_.is_valid()) {
    return damage("the header does not have its checksum");
  }
  if (header_.number != number) {
    return damage("is segment " + std::to_string(header_.number) + ", not " +
                  std::to_string(number));
  }
  if (header_.storage_id != storage_id) return damage("belongs to another storage");
  if (header_.bytes != file_bytes_) {
    return LogDamage{
        path_, file_bytes_,
        "has " + std::to_string(file_bytes_) + " of " + std::to_string(header_.bytes) + " bytes"};
  }
  return std::nullopt;
}

namespace {

class Scanner {
 public:
  Scanner(std::string_view segment, const SegmentHeader& header, const std::string& path,
          const ScanRules& rules, bool go_on) noexcept
      : segment_(segment),
        header_(header),
        path_(path),
        rules_(rules),
        unit_(record_unit_of(header)),
        bytes_min_(record_bytes_min_of(header)),
        begin_(header.number * header.bytes),
        go_on_(go_on) {}

  ScanReport run(const VisitRecord& visit) {
    while (at_ + bytes_min_ <= segment_.size() && offset() < rules_.stop &&
           (report_.damage.empty() || go_on_)) {
      const FoundRecord found = record_at(segment_, header_, at_);
      switch (found.is) {
        case FoundRecord::Is::zeros:
          skip_zeros();
          break;
        case FoundRecord::Is::nothing:
          damaged("no record begins here");
          break;
        case FoundRecord::Is::begun:
          pass_begun(found);
          break;
        case FoundRecord::Is::wrong:
          damaged("a record does not have its checksum");
          break;
        case FoundRecord::Is::whole:
          take(found, visit);
          break;
      }
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] LogOffset offset() const noexcept { return begin_ + at_; }
  [[nodiscard]] bool must_be_whole() const noexcept {
    return offset() >= rules_.whole_from && offset() < rules_.whole_to;
  }

  void take(const FoundRecord& found, const VisitRecord& visit) {
    ++report_.records;
    report_.end = offset() + found.bytes;
    if (found.type != RecordType::filler) {
      const bool is_near = found.type == RecordType::near;
      visit({offset(), found.type, found.payload, is_near ? &header_.base : nullptr});
    }
    at_ += found.bytes;
    is_lost_ = in_damage_ = false;
  }

  void pass_begun(const FoundRecord& found) {
    // Behind damage only a complete record shows where the next one begins: a head is a short
    // check, and what it says might be true by chance.
    if (must_be_whole() || is_lost_) return damaged("a record has no seal");
    ++report_.unfinished;
    at_ += found.bytes;
  }

  void skip_zeros() {
    // A range reserved across the boundary may have ended one unit into this segment.
    if (must_be_whole() && at_ != segment_header_bytes) {
      return damaged("a record is missing");
    }
    at_ += unit_;
    if (must_be_whole()) return;
    // Up to where zeros may be damage.
    std::size_t to = segment_.size();
    if (rules_.whole_from > offset()) to = std::min<std::size_t>(to, rules_.whole_from - begin_);
    std::uint64_t word = 0;
    for (; at_ + sizeof word <= to; at_ += sizeof word) {
      std::memcpy(&word, segment_.data() + at_, sizeof word);
      if (word != 0) return;
    }
  }

  void damaged(const char* what) {
    if (offset() >= rules_.sound_to) {
      report_.bytes_skipped += unit_;
    } else if (!in_damage_) {  // one finding for adjacent damage
      report_.damage.push_back({path_, at_, what});
      in_damage_ = true;
    }
    is_lost_ = true;
    at_ += unit_;
  }

  const std::string_view segment_;
  const SegmentHeader& header_;
  const std::string& path_;
  const ScanRules& rules_;
  const std::size_t unit_;
  const std::size_t bytes_min_;
  const LogOffset begin_;
  const bool go_on_;
  std::size_t at_ = segment_header_bytes;
  bool in_damage_ = false;  // it has been reported
  bool is_lost_ = false;    // not at the end of a record
  ScanReport report_;
};

}  // namespace

ScanReport scan(std::string_view segment, const SegmentHeader& header, const std::string& path,
                const ScanRules& rules, bool go_on, const VisitRecord& visit) {
  return Scanner{segment, header, path, rules, go_on}.run(visit);
}

LogOffset first_gap(std::string_view segment, const SegmentHeader& header, LogOffset from) {
  const LogOffset begin = header.number * header.bytes;
  std::size_t at = from - begin;
  while (at + record_bytes_min_of(header) <= segment.size()) {
    const FoundRecord found = record_at(segment, header, at);
    const std::size_t next = at + record_unit_of(header);
    // A range reserved across the boundary may have ended one unit into this segment.
    if (found.is == FoundRecord::Is::zeros && at == segment_header_bytes &&
        record_at(segment, header, next).has_head()) {
      at = next;
      continue;
    }
    if (found.is != FoundRecord::Is::whole) return begin + at;
    at += found.bytes;
  }
  return begin + segment.size();
}

std::optional<std::string> PartCollector::add(Bytes payload) {
  if (payload.size() < part_header_bytes) return std::nullopt;
  LogOffset first = 0;
  std::uint32_t index = 0;
  std::uint32_t count = 0;
  std::memcpy(&first, payload.data(), sizeof first);
  std::memcpy(&index, payload.data() + 8, sizeof index);
  std::memcpy(&count, payload.data() + 12, sizeof count);
  if (first < from_) return std::nullopt;
  const base::MutexLock lock{mutex_};
  Group& group = groups_[first];
  group.parts[index] = payload.substr(part_header_bytes);
  if (group.parts.size() != count) return std::nullopt;
  std::string all;
  for (const auto& [number, part] : group.parts) all += part;
  groups_.erase(first);
  return all;
}

LogOffset PartCollector::oldest() const {
  const base::MutexLock lock{mutex_};
  return groups_.empty() ? std::numeric_limits<LogOffset>::max() : groups_.begin()->first;
}

std::size_t PartCollector::unfinished() const {
  const base::MutexLock lock{mutex_};
  return groups_.size();
}

}  // namespace semel::storage
