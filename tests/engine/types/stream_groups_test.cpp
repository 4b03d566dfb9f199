#include "engine/types/stream_groups.hpp"

#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

/// Entries 1-0 .. `count`-0, and a group "g" that has read nothing.
void fill_and_group(ObjectEdit& stream, std::uint64_t count) {
  StreamId added;
  for (std::uint64_t ms = 1; ms <= count; ++ms) {
    const WantedId wanted{{ms, 0}, true, true};
    REQUIRE(add_entry(stream, wanted, 0, std::vector<Bytes>{"f", "v"}, added) == AddError::none);
  }
  REQUIRE(create_group(stream, {"g"}, {{}, -1}));
}

TEST_CASE("groups: one is created once, and goes with all that belongs to it", "[streams]") {
  ObjectEdit stream{Kind::stream};
  fill_and_group(stream, 3);
  REQUIRE(create_group(stream, {"h"}, {}));
  CHECK_FALSE(create_group(stream, {"g"}, {}));
  const std::size_t before = stream.size();
  for (const char* consumer : {"", "c", "d"}) {
    CHECK(create_consumer(stream, {"g", consumer}, 5));
    CHECK_FALSE(create_consumer(stream, {"g", consumer}, 9));
    CHECK(find_consumer(stream, {"g", consumer})->seen_ms == 5);
    give(stream, {"g", consumer}, {1, 0}, 5, 1);
    give(stream, {"g", consumer}, {2, 0}, 5, 1);
  }
  CHECK(pending_of(stream, {"g"}).count() == 2);
  CHECK(groups_of(stream).count() == 2);
  CHECK(destroy_group(stream, {"g"}));
  CHECK_FALSE(destroy_group(stream, {"g"}));
  CHECK(stream.size() == before - 1);
  CHECK(groups_of(stream).count() == 1);
}

TEST_CASE("groups: what is given belongs to one consumer", "[streams]") {
  ObjectEdit stream{Kind::stream};
  fill_and_group(stream, 3);
  create_consumer(stream, {"g", "a"}, 1);
  create_consumer(stream, {"g", "b"}, 1);
  give(stream, {"g", "a"}, {1, 0}, 10, 1);
  give(stream, {"g", "b"}, {1, 0}, 20, 2);
  CHECK(owned_by(stream, {"g", "a"}).empty());
  CHECK(owned_by(stream, {"g", "b"}).count() == 1);
  const auto pending = find_pending(stream, {"g"}, {1, 0});
  REQUIRE(pending);
  CHECK(pending->consumer == "b");
  CHECK(pending->delivered_ms == 20);
  CHECK(pending->deliveries == 2);
  CHECK(acknowledge(stream, {"g"}, {1, 0}));
  CHECK_FALSE(acknowledge(stream, {"g"}, {1, 0}));
  CHECK(owned_by(stream, {"g", "b"}).empty());
}

TEST_CASE("groups: against a model", "[streams]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  ObjectEdit stream{Kind::stream};
  fill_and_group(stream, 1);
  using Pending = std::map<StreamId, std::pair<std::string, std::uint64_t>>;
  std::map<std::string, Pending> model;  // by group
  std::map<std::string, std::map<std::string, int>> consumers;
  const std::vector<std::string> groups{"g", "gg", "", std::string(200, 'n'), "\xff"};
  const std::vector<std::string> names{"a", "", "aa", "\xff", std::string(130, 'c')};
  for (const std::string& group : groups) create_group(stream, {group}, {});
  for (int step = 0; step < 6'000; ++step) {
    const std::string& group = groups[random() % groups.size()];
    const std::string& name = names[random() % names.size()];
    const StreamId id{random() % 30, random() % 2};
    switch (random() % 6) {
      case 0: {
        const bool is_new = consumers[group].emplace(name, 0).second;
        CHECK(see_consumer(stream, {group, name}, step) == is_new);
        break;
      }
      case 1:
        CHECK(acknowledge(stream, {group}, id) == (model[group].erase(id) == 1));
        break;
      case 2: {
        if (random() % 10 != 0) break;
        const bool was_there = consumers[group].erase(name) == 1;
        const std::size_t owned = std::erase_if(
            model[group], [&](const auto& pending) { return pending.second.first == name; });
        const auto gone = delete_consumer(stream, {group, name});
        CHECK(gone.has_value() == was_there);
        if (gone) CHECK(*gone == owned);
        break;
      }
      default:
        if (!consumers[group].contains(name)) break;
        model[group][id] = {name, random() % 9};
        give(stream, {group, name}, id, step, model[group][id].second);
    }
    if (step % 50 != 0) continue;
    for (const std::string& each : groups) {
      const Ranks pending = pending_of(stream, {each});
      REQUIRE(pending.count() == model[each].size());
      auto expected = model[each].begin();
      stream.each(pending.from, pending.to, [&](const Element& element) {
        CHECK(id_of(element.key) == expected->first);
        const auto state = read_pending(element.value);
        CHECK(state->consumer == expected->second.first);
        CHECK(state->deliveries == expected->second.second);
        ++expected;
        return true;
      });
      const Ranks all = consumers_of(stream, {each});
      REQUIRE(all.count() == consumers[each].size());
      auto one = consumers[each].begin();
      stream.each(all.from, all.to, [&](const Element& element) {
        CHECK(consumer_of(element, each) == one->first);
        ++one;
        return true;
      });
    }
  }
  std::string record;
  stream.write(record);
  CHECK(is_stream_sound(record));
}

TEST_CASE("groups: what a range of ids is, of a group and of a consumer", "[streams]") {
  ObjectEdit stream{Kind::stream};
  fill_and_group(stream, 1);
  create_consumer(stream, {"g", "a"}, 1);
  for (std::uint64_t ms = 1; ms <= 5; ++ms) give(stream, {"g", "a"}, {ms, 0}, 1, 1);
  CHECK(pending_of(stream, {"g"}, {2, 0}, {4, 0}).count() == 3);
  CHECK(pending_of(stream, {"g"}, {2, 1}, {3, 5}).count() == 1);
  CHECK(pending_of(stream, {"g"}, {4, 0}, {2, 0}).count() == 0);
  CHECK(owned_by(stream, {"g", "a"}, {}, stream_id_max).count() == 5);
  CHECK(owned_by(stream, {"g", "a"}, {5, 0}, {5, 0}).count() == 1);
  CHECK(owned_by(stream, {"g", "b"}, {}, stream_id_max).count() == 0);
}

TEST_CASE("groups: the lag is counted while nothing ahead is missing", "[streams]") {
  ObjectEdit stream{Kind::stream};
  CHECK(lag_of(StreamReader{stream}, {}) == 0);
  fill_and_group(stream, 5);
  const auto lag = [&](const GroupState& group) { return lag_of(StreamReader{stream}, group); };
  CHECK(lag({{}, -1}) == 5);
  CHECK(lag({{5, 0}, -1}) == 0);
  CHECK(lag({{2, 0}, 2}) == 3);
  CHECK_FALSE(lag({{2, 0}, -1}));
  const GroupState two = read_on(StreamReader{stream}, {{1, 0}, 1}, {2, 0});
  CHECK(two.entries_read == 2);
  CHECK(two.last == StreamId{2, 0});
  CHECK(read_on(StreamReader{stream}, two, {1, 0}).entries_read == 2);  // it has read that already
  delete_entry(stream, {3, 0});
  CHECK_FALSE(lag(two));
  CHECK(read_on(StreamReader{stream}, two, {4, 0}).entries_read == 3);
  CHECK(read_on(StreamReader{stream}, two, {5, 0}).entries_read == 3);
  CHECK(read_on(StreamReader{stream}, {two.last, -1}, {5, 0}).entries_read == 5);
}

TEST_CASE("groups: counts of entries end at the largest number", "[streams]") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  ObjectEdit stream{Kind::stream};
  fill_and_group(stream, 2);
  CHECK(read_on(StreamReader{stream}, {{}, most}, {1, 0}).entries_read == most);
  StreamHead head = StreamReader{stream}.head();
  head.entries_added = static_cast<std::uint64_t>(most) + 5;
  write_head(stream, head);
  CHECK(read_on(StreamReader{stream}, {{}, -1}, {2, 0}).entries_read == most);
}

}  // namespace
}  // namespace semel::engine
