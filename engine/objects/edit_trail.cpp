#include "engine/objects/edit_trail.hpp"

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/coding.hpp"
#include "engine/objects/object_reader.hpp"
#include "engine/rules/hash_value.hpp"

namespace semel::engine {

namespace {

enum Step : std::uint8_t {
  step_put = 1,
  step_erase = 2,
  step_insert_at = 3,
  step_set_at = 4,
  step_erase_range = 5,
};

/// What became of the keys that the trails name; the bytes are theirs.
using ChangedKeys = std::map<Bytes, std::optional<Bytes>>;

bool read_keys(Bytes trail, ElementParts parts, ChangedKeys& changed) {
  base::ByteReader reader{trail};
  while (!reader.is_at_end()) {
    const auto step = reader.fixed<std::uint8_t>();
    const std::uint64_t key_bytes = reader.varint();
    const std::uint64_t value_bytes = step == step_put ? reader.varint() : 0;
    const Bytes key = reader.take(key_bytes);
    const Bytes value = reader.take(value_bytes);
    const bool is_known = step == step_put || step == step_erase;
    const bool is_of_kind = parts == ElementParts::both || value.empty();
    if (!reader.is_good() || !is_known || !is_of_kind) return false;
    if (step == step_put) {
      changed[key] = value;
    } else {
      changed[key] = std::nullopt;
    }
  }
  return true;
}

/// The elements of the record with those that have changed, in order.
std::vector<Element> merge(const ObjectReader& record, const ChangedKeys& changed) {
  std::vector<Element> all;
  all.reserve(record.size() + changed.size());
  auto next = changed.begin();
  const auto add_up_to = [&](const Bytes* key) {
    for (; next != changed.end() && (key == nullptr || next->first < *key); ++next) {
      if (next->second) all.push_back({next->first, *next->second});
    }
  };
  record.each(0, record.size(), [&](const Element& element) {
    add_up_to(&element.key);
    if (next == changed.end() || next->first != element.key) {
      all.push_back(element);
    } else {
      if (next->second) all.push_back({element.key, *next->second});
      ++next;
    }
    return true;
  });
  add_up_to(nullptr);
  return all;
}

/// A field's end and its value.
bool read_field(const std::optional<Bytes>& bytes, HashChange& change) {
  if (!bytes) return true;
  base::ByteReader reader{*bytes};
  const std::uint64_t end = reader.varint();
  if (!reader.is_good() || end > std::uint64_t{INT64_MAX}) return false;
  if (end != 0) change.due = Timestamp{Millis{static_cast<std::int64_t>(end)}};
  change.value = reader.rest();
  return true;
}

/// Applies trails to a hash in one pass: fields that are new come in the order of their bytes.
bool apply_to_hash(Bytes record, std::span<const Bytes> trails, const HashTrailFacts& facts,
                   std::string& to) {
  ChangedKeys changed;
  for (const Bytes trail : trails) {
    if (!read_keys(trail, ElementParts::both, changed)) return false;
  }
  std::vector<HashChange> changes;
  changes.reserve(changed.size());
  bool brings_ends = false;
  for (const auto& [field, bytes] : changed) {
    HashChange& change = changes.emplace_back(HashChange{.field = field, .value = std::nullopt});
    if (!read_field(bytes, change)) return false;
    brings_ends = brings_ends || change.due != no_end;
  }
  HashView before{record};
  std::string made;
  if (brings_ends && !before.has_ends()) {
    made = with_ends(before, facts.due, facts.seed);
    before = HashView{made};
  }
  const HashWriter writer{before, changes, facts.seed};
  if (writer.fields() == 0) return false;
  writer.write(to);
  const HashView after{to};
  if (after.has_ends() && after.ends().first == no_end) to = without_ends(after, facts.seed);
  return true;
}

/// The same, trail after trail where the fields of the hash are in the order in which they came. A
/// long hash is kept in trees, and has another order.
bool apply_in_order(Bytes record, std::span<const Bytes> trails, const HashTrailFacts& facts,
                    std::string& to) {
  if (!HashView{record}.good()) return false;
  constexpr std::size_t ordered_bytes_max = std::size_t{32} << 10;
  if (record.size() > ordered_bytes_max || trails.empty()) {
    return apply_to_hash(record, trails, facts, to);
  }
  std::string before{record};
  for (const Bytes& trail : trails) {
    if (!apply_to_hash(before, {&trail, 1}, facts, to)) return false;
    before.swap(to);
  }
  to.swap(before);
  return true;
}

bool apply_to_list(Bytes trail, std::deque<Bytes>& list) {
  base::ByteReader reader{trail};
  const auto place = [&list](std::uint64_t rank) {
    return list.begin() + static_cast<std::ptrdiff_t>(rank);
  };
  while (!reader.is_at_end()) {
    const auto step = reader.fixed<std::uint8_t>();
    const std::uint64_t rank = reader.varint();
    const std::uint64_t count = step == step_erase_range ? reader.varint() : 0;
    const Bytes value = step == step_erase_range ? Bytes{} : reader.prefixed();
    if (!reader.is_good() || rank > list.size()) return false;
    switch (step) {
      case step_insert_at:
        list.insert(place(rank), value);
        break;
      case step_set_at:
        if (rank == list.size()) return false;
        list[rank] = value;
        break;
      case step_erase_range:
        if (count > list.size() - rank) return false;
        list.erase(place(rank), place(rank + count));
        break;
      default:
        return false;
    }
  }
  return true;
}

}  // namespace

bool EditTrail::begins(std::uint8_t step, std::size_t bytes) {
  if (!is_open()) return false;
  constexpr std::size_t numbers_max = 1 + 2 * base::varint_bytes_max;
  if (steps_.size() + bytes + numbers_max > bytes_max_) {
    bytes_max_ = 0;
    steps_.clear();
    return false;
  }
  steps_.push_back(static_cast<char>(step));
  return true;
}

void EditTrail::put(Bytes key, Bytes value) {
  if (!begins(step_put, key.size() + value.size())) return;
  base::put_varint(steps_, key.size());
  base::put_varint(steps_, value.size());
  steps_.append(key).append(value);
}

void EditTrail::erase(Bytes key) {
  if (!begins(step_erase, key.size())) return;
  base::put_prefixed(steps_, key);
}

void EditTrail::add(std::uint8_t step, std::size_t rank, Bytes value) {
  if (!begins(step, value.size())) return;
  base::put_varint(steps_, rank);
  base::put_prefixed(steps_, value);
}

void EditTrail::insert_at(std::size_t rank, Bytes value) {
  add(step_insert_at, rank, value);
}

void EditTrail::set_at(std::size_t rank, Bytes value) {
  add(step_set_at, rank, value);
}

void EditTrail::erase_range(std::size_t from, std::size_t elements) {
  if (!begins(step_erase_range, 0)) return;
  base::put_varint(steps_, from);
  base::put_varint(steps_, elements);
}

bool apply_trails(Kind kind, Bytes record, std::span<const Bytes> trails, std::string& to,
                  const HashTrailFacts& of_hash) {
  if (kind == Kind::hash) return apply_in_order(record, trails, of_hash, to);
  const ElementParts parts = parts_of(kind);
  const ObjectReader before{record, kind};
  if (!before.is_good()) return false;
  std::vector<Element> after;
  ChangedKeys changed;
  if (parts == ElementParts::values) {
    std::deque<Bytes> list;
    before.each(0, before.size(), [&](const Element& element) {
      list.push_back(element.value);
      return true;
    });
    for (const Bytes trail : trails) {
      if (!apply_to_list(trail, list)) return false;
    }
    after.reserve(list.size());
    for (const Bytes value : list) after.push_back({{}, value});
  } else {
    for (const Bytes trail : trails) {
      if (!read_keys(trail, parts, changed)) return false;
    }
    after = merge(before, changed);
  }
  if (after.empty()) return false;
  pack(after, parts, to);
  return true;
}

}  // namespace semel::engine
