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
  constexpr std::size_t sector = 4096;  // what is left out around a sector that cannot be read
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
  if (header_.magic != SegmentHeader::magic_value || header_.digest != header_.right_digest()) {
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
        path_(path),
        rules_(rules),
        salt_(header.salt),
        begin_(header.number * header.bytes),
        go_on_(go_on) {}

  ScanReport run(const VisitRecord& visit) {
    while (at_ + record_header_bytes <= segment_.size() && offset() < rules_.stop &&
           (report_.damage.empty() || go_on_)) {
      const std::uint64_t head = word(at_);
      if (head == 0) {
        skip_zero();
      } else if (!is_head(salt_, offset(), head) ||
                 at_ + record_bytes(payload_of(head)) > segment_.size()) {
        damaged("no record begins here");
      } else {
        take(head, visit);
      }
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] LogOffset offset() const noexcept { return begin_ + at_; }
  [[nodiscard]] bool must_be_whole() const noexcept {
    return offset() >= rules_.whole_from && offset() < rules_.whole_to;
  }
  [[nodiscard]] std::uint64_t word(std::size_t at) const noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, segment_.data() + at, sizeof value);
    return value;
  }

  void take(std::uint64_t head, const VisitRecord& visit) {
    const Bytes payload = sealed_part(head, segment_.data() + at_ + record_header_bytes);
    const std::uint64_t seal = word(at_ + 8);
    if (seal == 0) {
      if (must_be_whole()) return damaged("a record has no seal");
      ++report_.unfinished;
    } else if (seal != seal_of(salt_, head, payload)) {
      return damaged("a record does not have its checksum");
    } else {
      ++report_.records;
      report_.end = offset() + record_bytes(payload_of(head));
      if (type_of(head) != RecordType::filler) visit(offset(), type_of(head), payload);
    }
    at_ += record_bytes(payload_of(head));
    in_damage_ = false;
  }

  void skip_zero() {
    // A range reserved across the boundary may have ended eight bytes into this segment.
    if (must_be_whole() && at_ != segment_header_bytes) {
      return damaged("a record is missing");
    }
    at_ += 8;
  }

  void damaged(const char* what) {
    if (offset() >= rules_.sound_to) {
      report_.bytes_skipped += 8;
    } else if (!in_damage_) {  // one finding for adjacent damage
      report_.damage.push_back({path_, at_, what});
      in_damage_ = true;
    }
    at_ += 8;
  }

  const std::string_view segment_;
  const std::string& path_;
  const ScanRules& rules_;
  const std::uint64_t salt_;
  const LogOffset begin_;
  const bool go_on_;
  std::size_t at_ = segment_header_bytes;
  bool in_damage_ = false;
  ScanReport report_;
};

}  // namespace

ScanReport scan(std::string_view segment, const SegmentHeader& header, const std::string& path,
                const ScanRules& rules, bool go_on, const VisitRecord& visit) {
  return Scanner{segment, header, path, rules, go_on}.run(visit);
}

LogOffset first_gap(std::string_view segment, const SegmentHeader& header, LogOffset from) {
  const LogOffset begin = header.number * header.bytes;
  const auto word = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, segment.data() + at, sizeof value);
    return value;
  };
  std::size_t at = from - begin;
  while (at + record_header_bytes <= segment.size()) {
    const std::uint64_t head = word(at);
    // A range reserved across the boundary may have ended eight bytes into this segment.
    if (head == 0 && at == segment_header_bytes &&
        is_head(header.salt, begin + at + 8, word(at + 8))) {
      at += 8;
      continue;
    }
    if (head == 0 || !is_head(header.salt, begin + at, head) ||
        at + record_bytes(payload_of(head)) > segment.size()) {
      return begin + at;
    }
    const Bytes payload = sealed_part(head, segment.data() + at + record_header_bytes);
    if (word(at + 8) != seal_of(header.salt, head, payload)) return begin + at;
    at += record_bytes(payload_of(head));
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
