#include "engine/kinds/stream_keys.hpp"

#include <map>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/kinds/kinds.hpp"
#include "engine/kinds/packed_object.hpp"
#include "engine/types/stream_groups.hpp"

namespace semel::engine {
namespace {

using StreamElements = std::map<std::string, std::string>;

std::string stream_record_of(const StreamElements& all) {
  std::vector<Element> elements;
  for (const auto& [key, value] : all) elements.push_back({key, value});
  std::string record;
  pack(elements, ElementParts::both, record);
  return record;
}

bool is_sound_stream(const StreamElements& all) {
  return is_sound(Kind::stream, stream_record_of(all));
}

/// A stream with an entry 5-1, which is pending in group "g" with consumer "c".
StreamElements small_stream() {
  return {{section_key(StreamSection::head), encode(StreamHead{{5, 1}, 1, {}})},
          {std::string{Bytes{EntryKey{{5, 1}}}}, "\1f\1v"},
          {group_key("g"), encode(GroupState{{5, 1}, 1})},
          {consumer_key("g", "c"), encode(ConsumerState{7, -1})},
          {pending_key("g", {5, 1}), encode(PendingState{7, 1, "c"})},
          {owned_key("g", "c", {5, 1}), ""}};
}

TEST_CASE("keys of streams: their order is that of sections, groups, consumers and ids",
          "[objects][streams]") {
  const std::string long_name(300, 'n');
  const std::vector<std::string> keys{section_key(StreamSection::head),
                                      std::string{Bytes{EntryKey{{0, 1}}}},
                                      std::string{Bytes{EntryKey{{0, 255}}}},
                                      std::string{Bytes{EntryKey{{1, 0}}}},
                                      std::string{Bytes{EntryKey{{256, 0}}}},
                                      std::string{Bytes{EntryKey{stream_id_max}}},
                                      group_key(""),
                                      group_key("a"),
                                      group_key("ab"),
                                      group_key("b"),
                                      consumer_key("", ""),
                                      consumer_key("", "x"),
                                      consumer_key("g", ""),
                                      consumer_key("g", "a"),
                                      consumer_key("h", ""),
                                      consumer_key(long_name, "a"),
                                      pending_key("g", {}),
                                      pending_key("g", stream_id_max),
                                      pending_key("h", {}),
                                      owned_key("g", "c", {}),
                                      owned_key("g", "c", stream_id_max),
                                      owned_key("g", "d", {}),
                                      owned_key("h", "a", {})};
  for (std::size_t i = 1; i < keys.size(); ++i) CHECK(keys[i - 1] < keys[i]);
  // What belongs to one group is one range: nothing of another lies in it.
  for (const std::string& key : keys) {
    const std::string group = keys_of_group(StreamSection::consumers, "g");
    const bool is_inside = group <= key && key < behind_all(group);
    CHECK(is_inside == key.starts_with(group));
  }
}

TEST_CASE("keys of streams: a key gives its parts back, and no other bytes do",
          "[objects][streams]") {
  const auto owned = owned_key("gr\0up", "c", {3, 4});
  const auto parts = read_stream_key(owned);
  REQUIRE(parts);
  CHECK(parts->section == StreamSection::owned);
  CHECK(parts->group == Bytes{"gr\0up"});
  CHECK(parts->consumer == "c");
  CHECK(parts->id == StreamId{3, 4});
  for (std::size_t bytes = 0; bytes < owned.size(); ++bytes) {
    CHECK_FALSE(read_stream_key(Bytes{owned}.substr(0, bytes)));  // also half a group
  }
  CHECK_FALSE(read_stream_key(owned + "x"));
  CHECK_FALSE(read_stream_key("\6"));
  CHECK_FALSE(read_stream_key("\xff"));
  // A length in more bytes than it needs would be a second key of the same group.
  CHECK(read_stream_key("\3\1gx"));
  CHECK_FALSE(read_stream_key(std::string{"\3\x81\0gx", 5}));
}

TEST_CASE("keys of streams: parts that are put together are taken apart again, short and long",
          "[objects][streams]") {
  using engine::StreamKeyBytes;
  for (const std::size_t bytes : {0U, 1U, 78U, 79U, 80U, 127U, 128U, 300U, 70'000U}) {
    INFO(bytes);
    const std::string group(bytes, 'g');
    for (const std::string& consumer : {std::string{}, std::string("c\0", 2), group}) {
      for (const StreamSection section :
           {StreamSection::head, StreamSection::entries, StreamSection::groups,
            StreamSection::consumers, StreamSection::pending, StreamSection::owned}) {
        const bool has_group = section > StreamSection::entries;
        const bool has_consumer =
            section == StreamSection::consumers || section == StreamSection::owned;
        const bool has_id = section == StreamSection::entries || section > StreamSection::consumers;
        const engine::StreamKey made{.section = section,
                                     .group = has_group ? Bytes{group} : Bytes{},
                                     .consumer = has_consumer ? Bytes{consumer} : Bytes{},
                                     .id = has_id ? StreamId{7, 8} : StreamId{}};
        const StreamKeyBytes key{made};
        const auto read = read_stream_key(key);
        REQUIRE(read);
        CHECK(read->section == made.section);
        CHECK(read->group == made.group);
        CHECK(read->consumer == made.consumer);
        CHECK(read->id == made.id);
      }
    }
    const engine::StreamValueBytes value{engine::PendingState{7, 1, group}};
    const auto pending = engine::read_pending(value);
    REQUIRE(pending);
    CHECK(pending->consumer == group);
  }
}

TEST_CASE("streams: an id has one before it and one behind it, but at the ends",
          "[objects][streams]") {
  CHECK(id_behind({1, 2}) == StreamId{1, 3});
  CHECK(id_behind({1, stream_id_max.seq}) == StreamId{2, 0});
  CHECK_FALSE(id_behind(stream_id_max));
  CHECK(id_before({1, 2}) == StreamId{1, 1});
  CHECK(id_before({1, 0}) == StreamId{0, stream_id_max.seq});
  CHECK_FALSE(id_before({}));
}

TEST_CASE("streams: a record is sound if each part has what it belongs to", "[objects][streams]") {
  CHECK(is_sound_stream(small_stream()));
  CHECK(is_sound_stream({{section_key(StreamSection::head), encode(StreamHead{})}}));
  // Without one of its elements.
  for (const auto& [key, value] : small_stream()) {
    StreamElements less = small_stream();
    less.erase(key);
    const auto section = read_stream_key(key)->section;
    // An entry may have been deleted while it is pending.
    CHECK(is_sound_stream(less) == (section == StreamSection::entries));
  }
  // With one too much, or another value.
  const auto with = [](const std::string& key, const std::string& value) {
    StreamElements more = small_stream();
    more[key] = value;
    return is_sound_stream(more);
  };
  const std::string head = section_key(StreamSection::head);
  CHECK_FALSE(with("x", ""));
  CHECK_FALSE(with(head, "short"));
  CHECK_FALSE(with(head, encode(StreamHead{{5, 0}, 1, {}})));  // an entry is behind the last id
  CHECK_FALSE(with(std::string{Bytes{EntryKey{{4, 1}}}}, ""));
  CHECK_FALSE(with(std::string{Bytes{EntryKey{{4, 1}}}}, "\1f"));
  CHECK_FALSE(with(std::string{Bytes{EntryKey{{4, 1}}}}, "\1f\2v"));
  CHECK_FALSE(with(group_key("h"), ""));
  CHECK_FALSE(with(group_key("h"), encode(GroupState{{}, -2})));
  CHECK_FALSE(with(consumer_key("h", "c"), encode(ConsumerState{})));
  CHECK_FALSE(with(owned_key("g", "c", {4, 1}), ""));
  CHECK_FALSE(with(owned_key("g", "c", {5, 1}), "x"));
  CHECK_FALSE(with(pending_key("g", {4, 1}), encode(PendingState{7, 1, "c"})));
  CHECK_FALSE(with(pending_key("g", {5, 1}), encode(PendingState{7, 1, "d"})));
  CHECK_FALSE(with(pending_key("g", {5, 1}), "short"));
}

TEST_CASE("streams: reading and changing is safe whatever the bytes are", "[objects][streams]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  const auto any = [&](std::size_t most) {
    std::string bytes(random() % (most + 1), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  };
  for (int round = 0; round < 500; ++round) {
    StreamElements all = small_stream();
    for (std::uint64_t i = random() % 6; i > 0; --i) {
      auto element = std::next(all.begin(), static_cast<std::ptrdiff_t>(random() % all.size()));
      if (random() % 2 == 0) {
        element->second = any(60);
      } else {
        all[static_cast<char>(random() % 7) + any(30)] = any(60);
      }
    }
    if (random() % 4 == 0) all.erase(all.begin());
    const std::string record = stream_record_of(all);
    ObjectEdit object{record, Kind::stream};
    const StreamReader stream{object};
    for (std::size_t rank = 0; rank < object.size(); ++rank) {
      std::size_t parts = 0;
      const EntryFields fields{object.at(rank).value};
      fields.each([&](Bytes) { ++parts; });
      CHECK(parts == fields.parts());
      const Bytes group = group_of(object.at(rank));
      static_cast<void>(consumer_of(object.at(rank), group));
      static_cast<void>(pending_of(object, {group}));
      static_cast<void>(lag_of(stream, find_group(object, {group}).value_or(GroupState{})));
    }
    StreamId added;
    static_cast<void>(add_entry(object, {}, 5, std::vector<Bytes>{"f", "v"}, added));
    static_cast<void>(acknowledge(object, {"g"}, {5, 1}));
    give(object, {"g", "d"}, {5, 1}, 9, 2);
    static_cast<void>(delete_consumer(object, {"g", "c"}));
    static_cast<void>(delete_entry(object, {5, 1}));
    static_cast<void>(trim_stream(object, {.by = StreamTrim::By::length, .length = 0}));
    static_cast<void>(destroy_group(object, {"g"}));
  }
}

}  // namespace
}  // namespace semel::engine
