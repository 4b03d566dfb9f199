#include "engine/types/stream.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/types/stream_groups.hpp"

namespace semel::engine {
namespace {

using Fields = std::vector<std::string>;

Fields stream_fields_of(Bytes value) {
  Fields all;
  EntryFields{value}.each([&](Bytes part) { all.emplace_back(part); });
  return all;
}

AddError add_to(ObjectEdit& stream, const WantedId& wanted, StreamId& added, std::int64_t now = 0) {
  return add_entry(stream, wanted, now, std::vector<Bytes>{"f", "v"}, added);
}

WantedId whole_id(StreamId id) {
  return {id, true, true};
}

/// `count` entries 1-0, 2-0, ..
void fill_stream(ObjectEdit& stream, std::uint64_t count) {
  StreamId added;
  for (std::uint64_t ms = 1; ms <= count; ++ms) {
    REQUIRE(add_to(stream, whole_id({ms, 0}), added) == AddError::none);
  }
}

TEST_CASE("streams: an id is given, half given, or made of the time, and only grows", "[streams]") {
  ObjectEdit stream{Kind::stream};
  StreamId id;
  CHECK(add_to(stream, {{0, 0}, true, false}, id) == AddError::none);
  CHECK(id == StreamId{0, 1});
  CHECK(add_to(stream, whole_id({5, 3}), id) == AddError::none);
  CHECK(add_to(stream, whole_id({5, 3}), id) == AddError::not_larger);
  CHECK(add_to(stream, {{5, 0}, true, false}, id) == AddError::none);
  CHECK(id == StreamId{5, 4});
  CHECK(add_to(stream, {{4, 0}, true, false}, id) == AddError::not_larger);
  CHECK(add_to(stream, {{6, 0}, true, false}, id) == AddError::none);
  CHECK(id == StreamId{6, 0});
  CHECK(add_to(stream, {}, id, 100) == AddError::none);
  CHECK(id == StreamId{100, 0});
  CHECK(add_to(stream, {}, id, 100) == AddError::none);
  CHECK(id == StreamId{100, 1});
  CHECK(add_to(stream, {}, id, 99) == AddError::none);  // the clock went back
  CHECK(id == StreamId{100, 2});
  CHECK(add_to(stream, {}, id, -5) == AddError::none);
  CHECK(id == StreamId{100, 3});
  CHECK(add_to(stream, whole_id({200, stream_id_max.seq}), id) == AddError::none);
  CHECK(add_to(stream, {{200, 0}, true, false}, id) == AddError::not_larger);
  CHECK(add_to(stream, {}, id, 150) == AddError::none);
  CHECK(id == StreamId{201, 0});
  CHECK(StreamReader{stream}.head().entries_added == StreamReader{stream}.length());
  CHECK(add_to(stream, whole_id(stream_id_max), id) == AddError::none);
  CHECK(add_to(stream, {}, id, 150) == AddError::exhausted);
  CHECK(add_to(stream, whole_id({300, 0}), id) == AddError::exhausted);
}

TEST_CASE("streams: an entry keeps its fields in their order, also empty ones", "[streams]") {
  ObjectEdit stream{Kind::stream};
  StreamId id;
  const std::string binary{"\0\xff", 2};
  const std::vector<Bytes> words{"b", "1", "a", "", "", "2", "b", binary};
  REQUIRE(add_entry(stream, whole_id({1, 1}), 0, words, id) == AddError::none);
  const auto value = StreamReader{stream}.find({1, 1});
  REQUIRE(value);
  CHECK(stream_fields_of(*value) == Fields(words.begin(), words.end()));
  CHECK_FALSE(StreamReader{stream}.find({1, 2}));
}

TEST_CASE("streams: an exact trim takes as many as asked", "[streams]") {
  ObjectEdit stream{Kind::stream};
  fill_stream(stream, 10);
  CHECK(trim_stream(stream, {}) == 0);
  CHECK(trim_stream(stream, {.by = StreamTrim::By::length, .length = 10}) == 0);
  CHECK(trim_stream(stream, {.by = StreamTrim::By::length, .length = 9}) == 1);
  CHECK(StreamReader{stream}.first_id() == StreamId{2, 0});
  CHECK(trim_stream(stream, {.by = StreamTrim::By::id, .id = {5, 0}}) == 3);
  CHECK(StreamReader{stream}.first_id() == StreamId{5, 0});
  CHECK(trim_stream(stream, {.by = StreamTrim::By::id, .id = {5, 1}}) == 1);
  CHECK(trim_stream(stream, {.by = StreamTrim::By::id, .id = {}}) == 0);
  CHECK(StreamReader{stream}.head().max_deleted == StreamId{});
  CHECK(trim_stream(stream, {.by = StreamTrim::By::id, .id = stream_id_max}) == 5);
  CHECK(StreamReader{stream}.length() == 0);
  CHECK(StreamReader{stream}.head().last == StreamId{10, 0});
  CHECK_FALSE(stream.empty());  // the stream is still there
  CHECK(trim_stream(stream, {.by = StreamTrim::By::length, .length = 0}) == 0);
}

TEST_CASE("streams: a trim that is about takes whole nodes, and never more than asked",
          "[streams]") {
  const auto trimmed = [](StreamTrim by) {
    ObjectEdit stream{Kind::stream};
    fill_stream(stream, 25);
    by.is_about = true;
    by.by = by.id == StreamId{} ? StreamTrim::By::length : StreamTrim::By::id;
    const std::size_t gone = trim_stream(stream, by);
    CHECK(StreamReader{stream}.length() == 25 - gone);
    return gone;
  };
  CHECK(trimmed({.length = 5, .node_entries = 10}) == 20);
  CHECK(trimmed({.length = 6, .node_entries = 10}) == 10);
  CHECK(trimmed({.length = 16, .node_entries = 10}) == 0);
  CHECK(trimmed({.length = 0, .node_entries = 10}) == 25);  // the last node is not full
  CHECK(trimmed({.id = {20, 0}, .node_entries = 10}) == 10);
  CHECK(trimmed({.id = {21, 0}, .node_entries = 10}) == 20);
  CHECK(trimmed({.length = 5, .limit = 19, .node_entries = 10}) == 10);
  CHECK(trimmed({.length = 5, .limit = 20, .node_entries = 10}) == 20);
  CHECK(trimmed({.length = 5, .limit = 9, .node_entries = 10}) == 0);
  CHECK(trimmed({.length = 5, .node_entries = 10, .node_bytes = 1}) == 20);
  CHECK(trimmed({.length = 6, .node_bytes = 1}) == 19);
  CHECK(trimmed({.length = 6}) == 0);  // one node without an end
}

TEST_CASE("streams: nodes begin where they began before a trim", "[streams]") {
  const StreamTrim about{
      .by = StreamTrim::By::length, .is_about = true, .length = 15, .node_entries = 10};
  ObjectEdit stream{Kind::stream};
  fill_stream(stream, 25);
  CHECK(trim_stream(stream, {.by = StreamTrim::By::length, .length = 18}) == 7);
  CHECK(trim_stream(stream, about) == 3);  // the rest of the first node
  CHECK(trim_stream(stream, about) == 0);
  // Where an entry was deleted, it is not known which node lost it.
  ObjectEdit deleted{Kind::stream};
  fill_stream(deleted, 25);
  CHECK(delete_entry(deleted, StreamReader{deleted}.first_id()));
  CHECK(trim_stream(deleted, {.by = StreamTrim::By::length, .length = 18}) == 6);
  CHECK(trim_stream(deleted, about) == 0);
}

TEST_CASE("streams: against a model", "[streams]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  std::map<StreamId, Fields> model;
  StreamId last{};
  StreamId deleted{};
  std::uint64_t added = 0;
  ObjectEdit stream{Kind::stream};
  begin_stream(stream);
  const auto some_id = [&] { return StreamId{random() % (last.ms + 2), random() % 3}; };
  for (int step = 0; step < 4'000; ++step) {
    const auto choice = random() % 10;
    if (choice < 5) {
      const Fields words{std::to_string(random() % 5), std::to_string(step)};
      const StreamId wanted{last.ms + random() % 2, random() % 4};
      StreamId id;
      const auto error =
          add_entry(stream, whole_id(wanted), 0, std::vector<Bytes>{words[0], words[1]}, id);
      CHECK((error == AddError::none) == (wanted > last));
      if (error != AddError::none) continue;
      CHECK(id == wanted);
      model[id] = words;
      last = id;
      ++added;
    } else if (choice < 8) {
      const StreamId id = some_id();
      const bool was_there = model.erase(id) == 1;
      CHECK(delete_entry(stream, id) == was_there);
      if (was_there) deleted = std::max(deleted, id);
    } else if (choice == 8 && random() % 8 == 0) {
      const std::size_t length = random() % 30;
      const std::size_t gone = model.size() > length ? model.size() - length : 0;
      CHECK(trim_stream(stream, {.by = StreamTrim::By::length, .length = length}) == gone);
      model.erase(model.begin(), std::next(model.begin(), static_cast<std::ptrdiff_t>(gone)));
    } else {
      const StreamId from = some_id();
      const StreamId to = some_id();
      const Ranks ranks = StreamReader{stream}.between(from, to);
      auto expected = model.lower_bound(from);
      std::size_t count = 0;
      stream.each(ranks.from, ranks.to, [&](const Element& entry) {
        REQUIRE(expected != model.end());
        CHECK(id_of(entry.key) == expected->first);
        CHECK(stream_fields_of(entry.value) == expected->second);
        ++expected;
        ++count;
        return true;
      });
      CHECK(count == ranks.count());
      CHECK((from > to || expected == model.upper_bound(to)));
    }
    const StreamReader reader{stream};
    REQUIRE(reader.length() == model.size());
    CHECK(reader.first_id() == (model.empty() ? StreamId{} : model.begin()->first));
    CHECK(reader.last_id() == (model.empty() ? StreamId{} : model.rbegin()->first));
    CHECK(reader.head().last == last);
    CHECK(reader.head().max_deleted == deleted);
    CHECK(reader.head().entries_added == added);
  }
  std::string record;
  stream.write(record);
  CHECK(is_stream_sound(record));
}

TEST_CASE("streams: the position of an entry is known where nothing before it is missing",
          "[streams]") {
  ObjectEdit stream{Kind::stream};
  CHECK(StreamReader{stream}.position_of({7, 0}) == 0U);
  fill_stream(stream, 5);
  const auto position = [&](StreamId id) { return StreamReader{stream}.position_of(id); };
  CHECK(position({5, 0}) == 5U);
  CHECK(position({1, 0}) == 1U);
  CHECK(position({}) == 0U);
  CHECK_FALSE(position({3, 0}));
  CHECK_FALSE(position({6, 0}));
  trim_stream(stream, {.by = StreamTrim::By::length, .length = 3});
  CHECK(position({1, 0}) == 2U);
  CHECK(position({3, 0}) == 3U);
  delete_entry(stream, {4, 0});
  CHECK_FALSE(position({3, 0}));
  CHECK(position({5, 0}) == 5U);
  CHECK(StreamReader{stream}.may_have_gaps_from({4, 0}));
  CHECK_FALSE(StreamReader{stream}.may_have_gaps_from({4, 1}));
}

TEST_CASE("streams: what is behind an id ends with the entries, whatever groups have",
          "[streams]") {
  for (const std::uint64_t groups : {0U, 1U, 40U}) {
    for (const std::uint64_t entries : {0U, 1U, 2U, 300U}) {
      INFO(groups << " groups, " << entries << " entries");
      ObjectEdit stream{Kind::stream};
      begin_stream(stream);
      fill_stream(stream, entries);
      for (std::uint64_t i = 0; i < groups; ++i) {
        const std::string name = std::to_string(i);
        REQUIRE(create_group(stream, {name}, {}));
        give(stream, {name, "c"}, {1, 0}, 7, 1);
      }
      REQUIRE(StreamReader{stream}.length() == entries);
      for (const std::uint64_t count : {0U, 1U, 2U, 299U, 300U, 301U}) {
        for (const StreamId id : {StreamId{}, StreamId{1, 0}, StreamId{1, 9}, StreamId{299, 0},
                                  StreamId{300, 0}, stream_id_max}) {
          const std::uint64_t left = entries - std::min(entries, id.ms);
          const std::uint64_t wanted = count == 0 ? left : std::min(left, count);
          INFO(count << " behind " << id.ms << "-" << id.seq);
          const Ranks found = StreamReader{stream}.behind(id, count);
          REQUIRE(found.count() == wanted);
          if (wanted != 0) CHECK(found.from == 1 + id.ms);
        }
      }
    }
  }
}

}  // namespace
}  // namespace semel::engine
