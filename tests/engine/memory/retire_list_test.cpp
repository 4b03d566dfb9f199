// The list of what was retired, against a queue. Words: push, pop, epoch.
#include "engine/memory/retire_list.hpp"

#include <array>
#include <deque>
#include <random>
#include <span>
#include <vector>

#include "tests/support/catch.hpp"

namespace semel::engine {

TEST_CASE("retire list: what is popped is the oldest, up to an epoch and to the room for it",
          "[engine][memory]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  RetireList list;
  std::deque<RetireList::Retired> model;
  std::uint64_t epoch = 1;
  std::uint64_t next = 1;
  std::array<std::uint64_t, 300> popped;
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t pushes = random() % (step % 100 < 50 ? 300 : 4);
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < pushes; ++i) {
      all.push_back(next);
      model.push_back({next++, epoch});
    }
    if (step % 3 != 0) {
      list.push(all, epoch);
    } else {
      for (const std::uint64_t what : all) REQUIRE(list.push({what, epoch}));
    }
    epoch += random() % 3 == 0 ? 1 : 0;
    const std::uint64_t newest = epoch - random() % std::min<std::uint64_t>(epoch, 4);
    const std::size_t room = random() % (popped.size() + 1);
    const std::size_t count = list.pop(newest, std::span{popped}.first(room));
    REQUIRE(count <= room);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(!model.empty());
      REQUIRE(model.front().what == popped[i]);
      REQUIRE(model.front().epoch <= newest);
      model.pop_front();
    }
    // It has stopped for want of room or of something that is old enough.
    REQUIRE((count == room || model.empty() || model.front().epoch > newest));
    REQUIRE(list.empty() == model.empty());
  }
}

TEST_CASE("retire list: blocks that were read serve again", "[engine][memory]") {
  RetireList list;
  std::array<std::uint64_t, RetireList::block_size * 3> popped;
  for (const std::size_t count : {RetireList::block_size - 1, RetireList::block_size,
                                  RetireList::block_size + 1, RetireList::block_size * 3}) {
    for (std::size_t i = 0; i < count; ++i) REQUIRE(list.push({i + 1, 1}));
    CHECK(list.pop(0, popped) == 0);
    CHECK(list.pop(1, {}) == 0);
    REQUIRE(list.pop(1, popped) == count);
    CHECK(popped[count - 1] == count);
    CHECK(list.empty());
    CHECK(list.has_room());
  }
}

}  // namespace semel::engine
