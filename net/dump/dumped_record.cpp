#include "net/dump/dumped_record.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

#include "engine/kinds/element_keys.hpp"
#include "engine/object_api/hash_fields.hpp"
#include "engine/objects/object_edit.hpp"
#include "net/dump/stream_record.hpp"
#include "net/rdb/dump_writer.hpp"
#include "semel/store.hpp"

namespace semel::net {

using engine::Element;
using engine::ObjectEdit;
using engine::ObjectReader;

namespace {

std::string record_of_list(const ByteItems& items) {
  ObjectEdit list{Kind::list};
  for (std::size_t i = 0; i < items.size(); ++i) list.insert_at(i, items[i]);
  std::string bytes;
  list.write(bytes);
  return bytes;
}

/// Their order is that of the object, so that each is put behind the others. None: one is there
/// twice.
std::optional<std::string> record_of_keys(Kind kind, std::vector<std::string>& keys) {
  std::sort(keys.begin(), keys.end());
  ObjectEdit object{kind};
  for (const std::string& key : keys) {
    if (!object.put(key)) return std::nullopt;
  }
  std::string bytes;
  object.write(bytes);
  return bytes;
}

bool has_twins(std::vector<Bytes> items) {
  std::sort(items.begin(), items.end());
  return std::adjacent_find(items.begin(), items.end()) != items.end();
}

std::optional<std::string> record_of_set(const ByteItems& items) {
  std::vector<std::string> keys;
  keys.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) keys.push_back(engine::member_key(items[i]));
  return record_of_keys(Kind::set, keys);
}

std::optional<std::string> record_of_sorted_set(const DumpValue& value) {
  std::vector<std::string> keys;
  std::vector<Bytes> members;
  keys.reserve(value.items.size());
  members.reserve(value.items.size());
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const auto score = engine::encode_score(value.scores[i]);
    std::string& key = keys.emplace_back(score.data(), score.size());
    key.append(value.items[i]);
    members.push_back(value.items[i]);
  }
  if (has_twins(std::move(members))) return std::nullopt;
  return record_of_keys(Kind::sorted_set, keys);
}

std::optional<std::string> record_of_hash(Engine& engine, KeyRef key, const DumpValue& value,
                                          Timestamp end) {
  const ByteItems& items = value.items;
  std::vector<FieldValue> pairs;
  std::vector<Bytes> fields;
  std::vector<Timestamp> ends;
  pairs.reserve(items.size() / 2);
  fields.reserve(items.size() / 2);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    pairs.push_back({items[i], items[i + 1]});
    fields.push_back(items[i]);
  }
  if (has_twins(std::move(fields))) return std::nullopt;
  constexpr Timestamp first_end{Millis{1}};  // in a record 0 stands for none
  for (const std::int64_t ms : value.ends) {
    ends.push_back(ms == 0 ? no_end : std::max(engine.store(key.db).from_unix_ms(ms), first_end));
  }
  return engine::hash_bytes(engine, key, pairs, ends, end);
}

RdbType type_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::list:
      return RdbType::list;
    case Kind::set:
      return RdbType::set;
    case Kind::stream:
      return RdbType::stream_2;
    default:
      return RdbType::sorted_set_2;
  }
}

void write_element(DumpWriter& to, Kind kind, const Element& element) {
  if (kind == Kind::list) return to.string(element.value);
  if (kind == Kind::set) {
    engine::MemberText text;
    return to.string(engine::member_of(element.key, text));
  }
  to.string(element.key.substr(engine::score_bytes));
  to.score(engine::score_of(element.key));
}

}  // namespace

std::optional<std::string> record_of(Engine& engine, KeyRef key, const DumpValue& value,
                                     Timestamp end) {
  switch (value.kind) {
    case Kind::list:
      return record_of_list(value.items);
    case Kind::set:
      return record_of_set(value.items);
    case Kind::sorted_set:
      return record_of_sorted_set(value);
    case Kind::hash:
      return record_of_hash(engine, key, value, end);
    case Kind::stream:
      return record_of_stream(value);
    default:
      return value.text;
  }
}

namespace {

/// Of a record that is no hash. None: it is damaged.
std::optional<std::string> dump_of(const engine::WholeRecord& record) {
  if (record.kind == Kind::string) {
    DumpWriter to{RdbType::string};
    to.string(record.value);
    return to.take();
  }
  constexpr Kind written[] = {Kind::list, Kind::set, Kind::sorted_set, Kind::stream};
  if (std::find(std::begin(written), std::end(written), record.kind) == std::end(written)) {
    return std::nullopt;
  }
  const ObjectReader object{record.value, record.kind};
  if (!object.is_good() || object.empty()) return std::nullopt;
  DumpWriter to{type_of(record.kind)};
  if (record.kind == Kind::stream) {
    return write_stream(to, object) ? std::optional{to.take()} : std::nullopt;
  }
  to.count(object.size());
  // Sorted sets from the highest score down: redis-server puts each in front of the others then.
  const auto write = [&](const Element& element) {
    write_element(to, record.kind, element);
    return true;
  };
  if (record.kind == Kind::sorted_set) {
    object.each_back(0, object.size(), write);
  } else {
    object.each(0, object.size(), write);
  }
  return to.take();
}

std::string dump_of(const FieldValues& hash) {
  DumpWriter to{RdbType::hash};
  to.count(hash.size());
  for (const FieldValue& pair : hash) {
    to.string(pair.field);
    to.string(pair.value);
  }
  return to.take();
}

/// In the format of redis-server 7.4: an older one, which would lose the ends, refuses it.
std::string dump_of(const FieldValues& hash, std::span<const std::int64_t> ends_ms) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t ms : ends_ms) {
    if (ms != 0) first = std::min(first, ms);
  }
  DumpWriter to{RdbType::hash_ends};
  to.fixed(static_cast<std::uint64_t>(first));
  to.count(hash.size());
  for (std::size_t i = 0; i < hash.size(); ++i) {
    to.count(ends_ms[i] == 0 ? 0 : static_cast<std::uint64_t>(ends_ms[i] - first) + 1);
    to.string(hash[i].field);
    to.string(hash[i].value);
  }
  return to.take(rdb_version_of_ends);
}

/// Of a hash: its payload, and the end of its key.
struct HashDump {
  std::string payload{};
  Timestamp due = no_end;
};

Result<std::optional<HashDump>> dump_of_hash(Engine& engine, KeyRef key) {
  SEMEL_TRY(fields, engine.hashes(key.db).hgetall(key.key));
  if (fields.empty()) return std::optional<HashDump>{};  // each of them has ended
  const Store store = engine.store(key.db);
  SEMEL_TRY(ttl, engine.store(key.db).ttl(key.key));
  const Timestamp due = ttl.has_ttl ? ttl.due : no_end;
  SEMEL_TRY(has_ends, engine::has_field_ends(engine, key));
  if (!has_ends) return std::optional{HashDump{dump_of(fields), due}};
  std::vector<Bytes> names;
  names.reserve(fields.size());
  for (const FieldValue& pair : fields) names.push_back(pair.field);
  SEMEL_TRY(ends, engine::field_ends(engine, key, names));
  std::vector<std::int64_t> ends_ms;
  ends_ms.reserve(ends.size());
  for (const std::optional<Timestamp>& end : ends) {
    const bool has_end = end && *end != no_end;
    ends_ms.push_back(has_end ? store.to_unix_ms(*end) : 0);
  }
  return std::optional{HashDump{dump_of(fields, ends_ms), due}};
}

}  // namespace

Result<std::optional<KeyDump>> dump_key(Engine& engine, KeyRef key) {
  SEMEL_TRY(section, engine.section({&key, 1}));
  SEMEL_TRY(record, engine::read_whole(engine, key));
  const Timestamp now = section.now();
  if (!record || record->due <= now) return std::optional<KeyDump>{};
  if (record->kind == Kind::hash) {
    SEMEL_TRY(hash, dump_of_hash(engine, key));
    if (!hash) return std::optional<KeyDump>{};
    return std::optional{KeyDump{std::move(hash->payload), record->version, hash->due, now}};
  }
  auto payload = dump_of(*record);
  if (!payload) {
    return Error{ErrorCode::bad_option,
                 "a " + std::string{name_of(record->kind)} + " has no serialization here"};
  }
  return std::optional{KeyDump{*std::move(payload), record->version, record->due, now}};
}

}  // namespace semel::net
