// SEMEL_VERIFY: a change beside a broken slot ends the process and names the rule.
#include <csignal>
#include <string>

#include "engine/api/engine_impl.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/store.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

using namespace semel;
using tests::Ended;
using tests::run_apart;

namespace {

/// Stores "first", lets `spoil` change the word of its slot, and stores a key of the same line.
template <class Spoil>
void store_beside(Spoil&& spoil) {
  ManualClock clock;
  auto engine = Engine::open({.clock = &clock, .shard_count = 1, .hash_seed = 7}).value();
  Store store = engine->store();
  static_cast<void>(store.set("first", "v"));
  engine::Core& core = engine::impl_of(*engine).core();
  const engine::HashBits hash = core.keys().hash_of(core.databases().stored(0), "first");
  auto& table = core.keys().shard_of(hash).table;
  table.for_each_candidate(hash, [&](auto& word, engine::SlotWord seen) {
    word.store(spoil(seen), std::memory_order_relaxed);  // mo: relaxed: one thread
    return false;
  });
  for (int number = 0;; ++number) {
    const std::string key = "k" + std::to_string(number);
    const engine::HashBits other = core.keys().hash_of(core.databases().stored(0), key);
    if (other.line(table.line_count()) != hash.line(table.line_count())) continue;
    static_cast<void>(store.set(key, "v"));
    return;
  }
}

}  // namespace

TEST_CASE("verify: a change in a sound line of the table goes on", "[engine][core]") {
  const Ended ended = run_apart([] { store_beside([](engine::SlotWord word) { return word; }); });
  CHECK((WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0));
  CHECK(ended.output.empty());
}

#if defined(SEMEL_VERIFY)
TEST_CASE("verify: a slot with another tag than its record's key is found by the next change",
          "[engine][core]") {
  const Ended ended = run_apart([] {
    store_beside([](engine::SlotWord word) {
      return word ^ (engine::SlotWord{1} << engine::slot::handle_width);
    });
  });
  REQUIRE(WIFSIGNALED(ended.status));
  CHECK(WTERMSIG(ended.status) == SIGABRT);
  CHECK(ended.output.find("another tag than its record's key") != std::string::npos);
}

TEST_CASE("verify: a slot that says another distance is found by the next change",
          "[engine][core]") {
  const Ended ended = run_apart([] {
    store_beside([](engine::SlotWord word) {
      return word ^ (engine::SlotWord{1} << engine::slot::distance_shift);
    });
  });
  REQUIRE(WIFSIGNALED(ended.status));
  CHECK(ended.output.find("not as far from its home line") != std::string::npos);
}
#endif
