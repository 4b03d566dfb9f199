#include "storage/log/log_walk.hpp"

#include "storage/log/mutation_codec.hpp"

namespace semel::storage {
namespace {

SegmentWalk::Damage measure(const SegmentFile& file, const LogDamage& at) {
  SegmentWalk::Damage damage{at, 0, {}};
  const std::string_view bytes = file.bytes();
  const SegmentHeader& header = file.header();
  // A valid head stands for one record, whatever its payload is.
  if (const FoundRecord found = record_at(bytes, header, at.offset); found.has_head()) {
    damage.records = 1;
    damage.bytes = found.bytes;
    return damage;
  }
  const std::size_t unit = record_unit_of(header);
  std::size_t last = at.offset;  // last word that is not zero
  for (std::size_t i = at.offset; i + record_bytes_min_of(header) <= bytes.size(); i += unit) {
    const FoundRecord found = record_at(bytes, header, i);
    if (i != at.offset && found.is == FoundRecord::Is::whole) {
      damage.bytes = i - at.offset;
      return damage;
    }
    if (found.is != FoundRecord::Is::zeros) last = i;
  }
  damage.bytes = last + unit - at.offset;
  return damage;
}

/// Mutations in the full form, as in the database.
Bytes in_full(const LogRecord& record, std::string& buffer) {
  if (record.base == nullptr) return record.payload;
  buffer.clear();
  // An unreadable group: the first byte of a mutation, and no more.
  if (!widen(record.payload, *record.base, buffer)) buffer.push_back('\0');
  return buffer;
}

}  // namespace

Result<SegmentWalk> walk_segment(const std::string& path, const ScanRules& rules,
                                 PartCollector& parts,
                                 const std::function<void(LogOffset offset, Bytes group)>& visit) {
  SEMEL_TRY(file, SegmentFile::open(path));
  SegmentWalk walk;
  walk.bytes = file.bytes().size();
  std::string buffer;
  walk.report =
      scan(file.bytes(), file.header(), file.path(), rules, true, [&](const LogRecord& record) {
        if (record.type != RecordType::part) {
          visit(record.offset, in_full(record, buffer));
        } else if (const auto group = parts.add(record.payload)) {
          visit(record.offset, *group);
        }
      });
  for (const LogDamage& damage : walk.report.damage) walk.damage.push_back(measure(file, damage));
  return walk;
}

}  // namespace semel::storage
