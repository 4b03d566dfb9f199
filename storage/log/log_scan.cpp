#include "storage/log/log_scan.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "storage/log/disk.hpp"

namespace semel::storage {

Result<SegmentFile> SegmentFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error(path);
  struct stat info {};
  if (fstat(descriptor, &info) != 0) {
    const Error error = system_error(path);
    close(descriptor);
    return error;
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size < segment_header_bytes) {
    close(descriptor);
    return LogDamage{path, size, "the file ends in its header"}.error();
  }
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  const Error error = memory == MAP_FAILED ? system_error("mapping " + path) : Error{};
  close(descriptor);
  if (memory == MAP_FAILED) return error;
  static_cast<void>(madvise(memory, size, MADV_SEQUENTIAL));  // advice only
  return SegmentFile{path, {static_cast<const char*>(memory), size}};
}

SegmentFile::SegmentFile(std::string path, std::string_view bytes) noexcept
    : path_(std::move(path)), bytes_(bytes) {
  std::memcpy(&header_, bytes_.data(), sizeof header_);
}
SegmentFile::SegmentFile(SegmentFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      header_(other.header_) {}
SegmentFile::~SegmentFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

std::optional<LogDamage> SegmentFile::check_header(std::uint64_t number,
                                                   std::uint64_t storage_id) const {
  const auto damage = [&](std::string what) { return LogDamage{path_, 0, std::move(what)}; };
  if (header_.magic != SegmentHeader::magic_value || header_.digest != header_.right_digest()) {
    return damage("the header does not have its checksum");
  }
  if (header_.number != number) {
    return damage("is segment " + std::to_string(header_.number) + ", not " +
                  std::to_string(number));
  }
  if (header_.storage_id != storage_id) return damage("belongs to another storage");
  if (header_.bytes != bytes_.size()) {
    return LogDamage{
        path_, bytes_.size(),
        "has " + std::to_string(bytes_.size()) + " of " + std::to_string(header_.bytes) + " bytes"};
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
    while (at_ + record_header_bytes <= segment_.size() && place() < rules_.stop &&
           (report_.damage.empty() || go_on_)) {
      const std::uint64_t head = word(at_);
      if (head == 0) {
        skip_zero();
      } else if (!is_head(salt_, place(), head) ||
                 at_ + record_bytes(payload_of(head)) > segment_.size()) {
        damaged("no record begins here");
      } else {
        take(head, visit);
      }
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] Place place() const noexcept { return begin_ + at_; }
  [[nodiscard]] bool must_be_whole() const noexcept {
    return place() >= rules_.whole_from && place() < rules_.whole_to;
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
      report_.end = place() + record_bytes(payload_of(head));
      if (type_of(head) != RecordType::filler) visit(place(), type_of(head), payload);
    }
    at_ += record_bytes(payload_of(head));
    in_damage_ = false;
  }

  void skip_zero() {
    // A record that crossed from the last segment may have ended eight bytes into this one.
    if (must_be_whole() && at_ != segment_header_bytes) {
      return damaged("a record is missing");
    }
    at_ += 8;
  }

  void damaged(const char* what) {
    if (place() >= rules_.sound_to) {
      report_.bytes_skipped += 8;
    } else if (!in_damage_) {  // one finding for a stretch of it
      report_.damage.push_back({path_, at_, what});
      in_damage_ = true;
    }
    at_ += 8;
  }

  const std::string_view segment_;
  const std::string& path_;
  const ScanRules& rules_;
  const std::uint64_t salt_;
  const Place begin_;
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

Place first_gap(std::string_view segment, const SegmentHeader& header, Place from) {
  const Place begin = header.number * header.bytes;
  const auto word = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, segment.data() + at, sizeof value);
    return value;
  };
  std::size_t at = from - begin;
  while (at + record_header_bytes <= segment.size()) {
    const std::uint64_t head = word(at);
    // A record that crossed from the last segment may have ended eight bytes into this one.
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
  Place first = 0;
  std::uint32_t index = 0;
  std::uint32_t count = 0;
  std::memcpy(&first, payload.data(), sizeof first);
  std::memcpy(&index, payload.data() + 8, sizeof index);
  std::memcpy(&count, payload.data() + 12, sizeof count);
  if (first < from_) return std::nullopt;
  const std::lock_guard lock{mutex_};
  Group& group = groups_[first];
  group.parts[index] = payload.substr(part_header_bytes);
  if (group.parts.size() != count) return std::nullopt;
  std::string all;
  for (const auto& [number, part] : group.parts) all += part;
  groups_.erase(first);
  return all;
}

Place PartCollector::oldest() const {
  const std::lock_guard lock{mutex_};
  return groups_.empty() ? std::numeric_limits<Place>::max() : groups_.begin()->first;
}

std::size_t PartCollector::unfinished() const {
  const std::lock_guard lock{mutex_};
  return groups_.size();
}

}  // namespace semel::storage
