// Objects that are changed by deltas, in a storage of one process after another.
//
//   delta   a mutation without its record: a base, which is a version, and a trail
//   chain   a whole record and the deltas that follow on it
//   image   a copy of the directory of a storage that is open: what a kill leaves
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/kinds/element_keys.hpp"
#include "engine/object_api/hash_fields.hpp"
#include "engine/object_api/object_calls.hpp"
#include "engine/rules/hash_value.hpp"
#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "semel/storage_tools.hpp"
#include "tests/storage/directory.hpp"
#include "tests/support/stream_elements.hpp"

namespace semel::tests::delta_storage {

using engine::ObjectEdit;
using engine::ObjectReader;

inline constexpr std::array object_kinds{Kind::list, Kind::set, Kind::sorted_set, Kind::stream,
                                         Kind::hash};

struct Process {
  Process(const std::string& directory, const Clock& clock, storage::Disk* disk = nullptr) {
    auto opened = Storage::open({.directory = directory,
                                 .sync_every = Millis{60'000},
                                 .log_bytes = std::size_t{8} << 20,
                                 .span = Millis{60'000},
                                 .disk = disk},
                                clock);
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::logged,
                              .memory_bytes = std::size_t{64} << 20,
                              .value_bytes_max = std::size_t{128} << 10,
                              .first_version = storage->first_version()});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    recovered = storage->recover(*engine);
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
  std::optional<Result<RecoveryReport>> recovered;
};

inline std::string element_key(Kind kind, std::uint64_t number) {
  if (kind == Kind::set) return engine::member_key("member " + std::to_string(number));
  const auto score = engine::encode_score(static_cast<double>(number % 100));
  return std::string{score.data(), score.size()} + "m" + std::to_string(number);
}

inline std::string element_value(std::uint64_t number) {
  return std::string{"\0\xff", 2} + std::to_string(number) + std::string(number % 17, 'v');
}

inline void add_element(ObjectEdit& object, std::uint64_t number) {
  const Kind kind = object.kind();
  if (kind == Kind::list)
    return object.insert_at(number % (object.size() + 1), element_value(number));
  if (kind == Kind::stream) return put_stream_element(object, static_cast<int>(number));
  object.put(element_key(kind, number));
}

inline void change_element(ObjectEdit& object, std::uint64_t number) {
  const Kind kind = object.kind();
  if (kind == Kind::stream || object.empty() || number % 3 == 0) return add_element(object, number);
  const std::size_t rank = number % object.size();
  if (number % 3 == 1)
    return object.erase_range(rank, std::min(object.size(), rank + 1 + number % 2));
  if (kind == Kind::list) return object.set_at(rank, element_value(number));
  object.erase(object.at(rank).key);
  object.put(element_key(kind, number));
}

inline std::string field_of(std::uint64_t number) {
  return "a field " + std::to_string(number % 1'500);
}

/// One field of a hash: set, removed, or given an end.
inline void change_field(Engine& engine, const KeyRef& key, std::uint64_t number) {
  const std::string field = field_of(number);
  const Bytes fields[] = {field};
  Hashes hashes = engine.hashes(key.db);
  switch (number % 8) {
    case 0:
    case 1:
      return static_cast<void>(hashes.hdel(key.key, fields).value());
    case 2:
      return static_cast<void>(
          engine::expire_fields(engine, key, fields, Expiry::in(Millis{4'000}), {}).value());
    case 3:
      return static_cast<void>(engine::persist_fields(engine, key, fields).value());
    default:
      return static_cast<void>(hashes.hset(key.key, field, element_value(number)).value());
  }
}

inline void fill_hash(Engine& engine, const KeyRef& key, unsigned fields) {
  std::vector<std::string> texts;
  for (unsigned i = 0; i < fields; ++i) {
    texts.push_back(field_of(i * 7));
    texts.push_back(element_value(i));
  }
  std::vector<FieldValue> pairs;
  for (std::size_t i = 0; i < texts.size(); i += 2) pairs.push_back({texts[i], texts[i + 1]});
  REQUIRE(engine.hashes(key.db).hset(key.key, pairs).ok());
}

inline void change(Engine& engine, const KeyRef& key, Kind kind, std::uint64_t number,
                   unsigned steps) {
  if (kind == Kind::hash) {
    for (unsigned i = 0; i < steps; ++i) change_field(engine, key, number * 31 + i);
    return;
  }
  const auto done = engine::change_object(engine, key, kind, [&](ObjectEdit& object) {
    for (unsigned i = 0; i < steps; ++i) change_element(object, number * 31 + i);
    return ErrorCode::ok;
  });
  INFO((done.ok() ? std::string{} : done.error().message()));
  REQUIRE(done.ok());
}

inline void fill(Engine& engine, const KeyRef& key, Kind kind, unsigned elements) {
  // Some of them are kept in trees, others are packed.
  const unsigned times = key.key.size() % 2 == 0 ? 2 : 4;
  if (kind == Kind::hash) return fill_hash(engine, key, elements * times);
  const auto done = engine::change_object(engine, key, kind, [&](ObjectEdit& object) {
    if (object.size() > 2'000) object.clear();
    for (unsigned i = 0; i < elements; ++i) add_element(object, i * 7);
    return ErrorCode::ok;
  });
  INFO((done.ok() ? std::string{} : done.error().message()));
  REQUIRE(done.ok());
}

/// The fields of a hash, in an order of their own: that of a large one is not kept.
inline std::string text_of_hash(Bytes value, Timestamp now) {
  std::vector<std::string> fields;
  engine::HashView{value}.each([&](const engine::HashView::Found& pair) {
    if (pair.due <= now) return;
    const std::string end = std::to_string(pair.due.time_since_epoch().count());
    fields.push_back(std::string{pair.field} + "=" + std::string{pair.value} + " ends " + end);
  });
  std::sort(fields.begin(), fields.end());
  std::string text;
  for (const std::string& field : fields) text.append(field).append("\n");
  return text;
}

/// All records as bytes, with kind and end.
using Picture = std::map<std::string, std::string>;

inline Picture picture_of(Engine& engine) {
  Picture all;
  REQUIRE(engine.host().snapshot([&](const Mutation& mutation) {
    if (mutation.type != Mutation::Type::put || mutation.due <= engine.clock().now()) return;
    std::string text{name_of(mutation.kind)};
    text += " ends " + std::to_string(mutation.due.time_since_epoch().count()) + " ";
    all[std::to_string(mutation.db) + " " + std::string{mutation.key}] =
        mutation.kind == Kind::hash ? text + text_of_hash(mutation.value, engine.clock().now())
                                    : text.append(mutation.value);
  }));
  return all;
}

inline void check_same(const Picture& found, const Picture& wanted) {
  CHECK(found.size() == wanted.size());
  for (const auto& [key, record] : wanted) {
    INFO(key);
    const auto at = found.find(key);
    REQUIRE(at != found.end());
    CHECK(at->second.size() == record.size());
    CHECK((at->second == record));
  }
}

inline void check_start(const std::string& directory, const Clock& clock, const Picture& wanted,
                        storage::Disk* disk = nullptr) {
  Process process{directory, clock, disk};
  REQUIRE(process.recovered);
  if (!process.recovered->ok()) FAIL(process.recovered->error().message());
  check_same(picture_of(*process.engine), wanted);
}

/// Names and sizes; empty: a file went meanwhile.
inline std::map<std::string, std::uintmax_t> files_of(const std::string& directory) {
  std::map<std::string, std::uintmax_t> files;
  std::error_code code;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{directory, code}) {
    const bool is_file = entry.is_regular_file(code);
    files[entry.path().string()] = is_file ? entry.file_size(code) : 0;
    if (code) return {};
  }
  return files;
}

/// Of one moment: again if draining has changed a file meanwhile.
inline void copy(const std::string& from, const std::string& to) {
  constexpr int tries_max = 1'000;
  for (int i = 0; i < tries_max; ++i) {
    std::error_code code;
    std::filesystem::remove_all(to);
    const auto before = files_of(from);
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive, code);
    if (!code && !before.empty() && files_of(from) == before) return;
  }
  FAIL("the storage never rests");
}

struct Stored {
  std::size_t whole = 0;
  std::size_t deltas = 0;
};

inline Stored count_stored(const std::string& directory, const std::string& key) {
  Stored stored;
  const auto info = inspect_storage(directory, [&](const StoredMutation& found) {
    if (found.mutation.key != key) return;
    ++(is_delta(found.mutation) ? stored.deltas : stored.whole);
  });
  REQUIRE(info);
  return stored;
}

}  // namespace semel::tests::delta_storage
