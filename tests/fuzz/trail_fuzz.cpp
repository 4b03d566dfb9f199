// Trails of objects: whatever the bytes, they are refused, or make the record that an edit of the
// same steps makes.
//
// Input: a trail.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/coding.hpp"
#include "engine/objects/edit_trail.hpp"
#include "engine/objects/object_edit.hpp"
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
  return 0;
}
