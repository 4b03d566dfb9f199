#include "storage/log/log_walk.hpp"

#include <cstring>

namespace semel::storage {
namespace {

std::uint64_t word(std::string_view bytes, std::size_t at) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// True if a valid head is here whose record ends in the segment.
bool begins_record(const SegmentFile& file, std::size_t at) noexcept {
  const std::uint64_t head = word(file.bytes(), at);
  const LogOffset offset = file.header().number * file.header().bytes + at;
  return head != 0 && is_head(file.header().salt, offset, head) &&
         at + record_bytes(payload_of(head)) <= file.bytes().size();
}

SegmentWalk::Damage measure(const SegmentFile& file, const LogDamage& at) {
  SegmentWalk::Damage damage{at, 0, {}};
  const std::string_view bytes = file.bytes();
  // A valid head stands for one record, whatever its payload is.
  if (at.offset + record_header_bytes <= bytes.size() && begins_record(file, at.offset)) {
    damage.records = 1;
    damage.bytes = record_bytes(payload_of(word(bytes, at.offset)));
    return damage;
  }
  std::size_t last = at.offset;  // last word that is not zero
  for (std::size_t i = at.offset; i + record_header_bytes <= bytes.size(); i += 8) {
    if (i != at.offset && begins_record(file, i)) {
      damage.bytes = i - at.offset;
      return damage;
    }
    if (word(bytes, i) != 0) last = i;
  }
  damage.bytes = last + 8 - at.offset;
  return damage;
}

}  // namespace

Result<SegmentWalk> walk_segment(const std::string& path, const ScanRules& rules,
                                 PartCollector& parts,
                                 const std::function<void(LogOffset offset, Bytes group)>& visit) {
  SEMEL_TRY(file, SegmentFile::open(path));
  SegmentWalk walk;
  walk.bytes = file.bytes().size();
  walk.report = scan(file.bytes(), file.header(), file.path(), rules, true,
                     [&](LogOffset offset, RecordType type, Bytes payload) {
                       if (type != RecordType::part) {
                         visit(offset, payload);
                       } else if (const auto group = parts.add(payload)) {
                         visit(offset, *group);
                       }
                     });
  for (const LogDamage& damage : walk.report.damage) walk.damage.push_back(measure(file, damage));
  return walk;
}

}  // namespace semel::storage
