// Trails of objects: whatever the bytes, they are refused, or make the record that an edit of the
// same steps makes.
//
// Input: a trail.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/coding.hpp"
#include "engine/objects/edit_trail.hpp"
#include "engine/objects/object_edit.hpp"
#include "engine/rules/hash_value.hpp"
#include "tests/fuzz/check.hpp"

namespace semel::tests {
namespace {

using engine::ElementParts;
using engine::ObjectEdit;

constexpr std::array kinds{Kind::list, Kind::sorted_set, Kind::stream};

std::string record_of(Kind kind) {
  ObjectEdit object{kind};
  for (char letter = 'a'; letter <= 'p'; ++letter) {
    const std::string element(1, letter);
    if (kind == Kind::list) {
      object.insert_at(object.size(), element);
    } else {
      object.put(element, kind == Kind::stream ? Bytes{element} : Bytes{});
    }
  }
  std::string record;
  object.write(record);
  return record;
}

bool edit_list(ObjectEdit& list, int step, base::ByteReader& reader) {
  const std::uint64_t rank = reader.varint();
  if (step == 5) {
    const std::uint64_t elements = reader.varint();
    if (!reader.is_good() || rank > list.size() || elements > list.size() - rank) return false;
    list.erase_range(rank, rank + elements);
    return true;
  }
  const Bytes value = reader.prefixed();
  if (!reader.is_good() || rank > list.size()) return false;
  if (step == 3) {
    list.insert_at(rank, value);
  } else if (step == 4 && rank != list.size()) {
    list.set_at(rank, value);
  } else {
    return false;
  }
  return true;
}

bool edit_keys(ObjectEdit& object, int step, base::ByteReader& reader) {
  const std::uint64_t key_bytes = reader.varint();
  const std::uint64_t value_bytes = step == 1 ? reader.varint() : 0;
  const Bytes key = reader.take(key_bytes);
  const Bytes value = reader.take(value_bytes);
  const bool has_values = engine::parts_of(object.kind()) == ElementParts::both;
  if (!reader.is_good() || (!has_values && !value.empty())) return false;
  if (step == 1) object.put(key, value);
  if (step == 2) object.erase(key);
  return step == 1 || step == 2;
}

/// None: the trail is refused.
std::optional<std::string> edited(Kind kind, const std::string& record, Bytes trail) {
  ObjectEdit object{record, kind};
  base::ByteReader reader{trail};
  while (!reader.is_at_end()) {
    const int step = reader.fixed<std::uint8_t>();
    const bool is_right =
        kind == Kind::list ? edit_list(object, step, reader) : edit_keys(object, step, reader);
    if (!is_right) return std::nullopt;
  }
  if (object.empty()) return std::nullopt;
  if (!object.is_changed()) return record;
  std::string after;
  object.write(after);
  return after;
}

/// What a hash has: a value and an end by field.
using Fields = std::map<std::string, std::pair<std::string, Timestamp>>;

Fields fields_of(const std::string& record) {
  Fields fields;
  engine::HashView{record}.each([&](const engine::HashView::Found& pair) {
    fields[std::string{pair.field}] = {std::string{pair.value}, pair.due};
  });
  return fields;
}

std::string hash_record() {
  std::vector<engine::HashChange> changes;
  constexpr Bytes letters = "abcdefghijklmnop";
  for (std::size_t i = 0; i < letters.size(); ++i) {
    changes.push_back({letters.substr(i, 1), letters.substr(i, 1)});
  }
  std::string record;
  engine::HashWriter{engine::HashView{}, changes, 7}.write(record);
  return record;
}

/// None: the trail is refused.
std::optional<Fields> edited_hash(Fields fields, Bytes trail) {
  base::ByteReader reader{trail};
  while (!reader.is_at_end()) {
    const int step = reader.fixed<std::uint8_t>();
    const std::uint64_t field_bytes = reader.varint();
    const std::uint64_t value_bytes = step == 1 ? reader.varint() : 0;
    const std::string field{reader.take(field_bytes)};
    base::ByteReader value{reader.take(value_bytes)};
    if (!reader.is_good() || (step != 1 && step != 2)) return std::nullopt;
    if (step == 2) {
      fields.erase(field);
      continue;
    }
    // Of each field the last step counts: a bad end before that is not looked at.
    const std::uint64_t end = value.varint();
    const bool is_good = value.is_good() && end <= std::uint64_t{INT64_MAX};
    fields[field] = {is_good ? std::string{value.rest()} : std::string{},
                     !is_good   ? Timestamp{Millis{-1}}
                     : end == 0 ? no_end
                                : Timestamp{Millis{static_cast<std::int64_t>(end)}}};
  }
  for (const auto& [field, state] : fields) {
    if (state.second < Timestamp{}) return std::nullopt;
  }
  if (fields.empty()) return std::nullopt;
  return fields;
}

void check_hash(Bytes trail) {
  const std::string record = hash_record();
  std::string found;
  const bool is_applied = engine::apply_trails(Kind::hash, record, {&trail, 1}, found);
  const std::optional<Fields> wanted = edited_hash(fields_of(record), trail);
  check(is_applied == wanted.has_value(), "refused, or not, as a hash");
  if (!is_applied) return;
  check(engine::is_sound(found), "an unsound hash");
  check(fields_of(found) == *wanted, "another hash");
}

}  // namespace
}  // namespace semel::tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::tests;
  const semel::Bytes trail{reinterpret_cast<const char*>(data), size};
  for (const semel::Kind kind : kinds) {
    const std::string record = record_of(kind);
    std::string found;
    const bool is_applied = semel::engine::apply_trails(kind, record, {&trail, 1}, found);
    const std::optional<std::string> wanted = edited(kind, record, trail);
    check(is_applied == wanted.has_value(), "refused, or not");
    check(!is_applied || found == *wanted, "another record");
  }
  check_hash(trail);
  return 0;
}
