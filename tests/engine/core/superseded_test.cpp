// What a journal may forget: the engine names a mutation only if a newer one, which the journal has
// taken, is kept for at least as long.
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/semel.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// Remembers the newest version that it was given, and calls `during` in the middle of an append.
class Recording final : public Journal {
 public:
  Ticket append(std::span<const Mutation> group) override {
    if (during) during();
    newest_version = group.back().version;
    return ++newest_;
  }
  Status wait(Ticket, Durability) override { return Done{}; }
  Ticket newest() const override { return newest_; }

  std::function<void()> during;
  Version newest_version = 0;

 private:
  Ticket newest_ = 0;
};

struct JournaledEngine {
  JournaledEngine() {
    auto opened = Engine::open({.clock = &clock, .journal = &journal, .background = std::nullopt});
    REQUIRE(opened);
    engine = *std::move(opened);
  }
  /// Sets "k" and returns the version of the change.
  Version set(Bytes value, Millis ttl) {
    REQUIRE(engine->store().set("k", value, {.expiry = Expiry::in(ttl)}).ok());
    return journal.newest_version;
  }
  [[nodiscard]] bool superseded(Bytes key, Version version, Timestamp keep_until) const {
    const HeldMutation held{.db = 0, .key = key, .version = version, .keep_until = keep_until};
    return engine->host().superseded({&held, 1}) == 1;
  }
  /// The same, asked by another thread.
  [[nodiscard]] bool superseded_elsewhere(Version version, Timestamp keep_until) const {
    bool answer = false;
    std::thread{[&] { answer = superseded("k", version, keep_until); }}.join();
    return answer;
  }

  ManualClock clock;
  Recording journal;
  std::unique_ptr<Engine> engine;
};

}  // namespace

TEST_CASE("superseded: by a newer version of the key, not by the same one", "[engine][journal]") {
  JournaledEngine f;
  const Timestamp end = f.clock.now() + 60s;
  const Version first = f.set("1", 60s);
  CHECK_FALSE(f.superseded("k", first, end));
  const Version second = f.set("2", 60s);
  REQUIRE(second > first);
  CHECK(f.superseded("k", first, end));
  CHECK_FALSE(f.superseded("k", second, end));
  CHECK_FALSE(f.superseded("other", first, end));
}

TEST_CASE("superseded: not by a record that ends before the older one may be forgotten",
          "[engine][journal]") {
  JournaledEngine f;
  const Version first = f.set("1", 60s);
  static_cast<void>(f.set("2", 30s));
  const Timestamp end = f.clock.now() + 30s;
  CHECK(f.superseded("k", first, end));
  CHECK_FALSE(f.superseded("k", first, end + 1ms));
  CHECK_FALSE(f.superseded("k", first, no_end));
}

TEST_CASE("superseded: a key that was erased or has ended proves nothing", "[engine][journal]") {
  JournaledEngine f;
  const Timestamp end = f.clock.now() + 1s;
  const Version first = f.set("1", 1s);
  REQUIRE(f.engine->store().del("k").value());
  CHECK_FALSE(f.superseded("k", first, end));
  static_cast<void>(f.set("2", 1s));
  CHECK(f.superseded("k", first, end));
  f.clock.advance(1s);
  f.engine->advance();
  CHECK_FALSE(f.superseded("k", first, end));
}

TEST_CASE("superseded: not by a record that the journal is about to have", "[engine][journal]") {
  JournaledEngine f;
  const Timestamp end = f.clock.now() + 60s;
  const Version first = f.set("1", 60s);
  bool visible = false;
  bool before = true;
  f.journal.during = [&] {
    std::thread{[&] { visible = f.engine->size(0) == 1; }}.join();
    before = f.superseded_elsewhere(first, end);
  };
  static_cast<void>(f.set("2", 60s));
  f.journal.during = nullptr;
  CHECK(visible);
  CHECK_FALSE(before);
  CHECK(f.superseded_elsewhere(first, end));
}

TEST_CASE("superseded: not by what a section has changed before it ends", "[engine][journal]") {
  JournaledEngine f;
  const Timestamp end = f.clock.now() + 60s;
  const Version first = f.set("1", 60s);
  {
    auto section = f.engine->section({});
    REQUIRE(section);
    static_cast<void>(f.engine->store().set("k", "2", {.expiry = Expiry::in(60s)}));
    CHECK_FALSE(f.superseded_elsewhere(first, end));
    CHECK_FALSE(f.superseded("k", first, end));  // nor on the section's own thread
    REQUIRE(section->commit());
  }
  CHECK(f.superseded_elsewhere(first, end));
}

TEST_CASE("superseded: each of sixteen keys is answered in its own bit", "[engine][journal]") {
  JournaledEngine f;
  std::vector<std::string> keys;
  std::vector<HeldMutation> held;
  std::uint32_t wanted = 0;
  for (std::uint32_t i = 0; i < EngineHost::superseded_max; ++i)
    keys.push_back("k" + std::to_string(i));
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    REQUIRE(f.engine->store().set(keys[i], "1").ok());
    held.push_back({.db = 0, .key = keys[i], .version = f.journal.newest_version});
    if (i % 3 == 0) continue;
    REQUIRE(f.engine->store().set(keys[i], "2").ok());
    wanted |= std::uint32_t{1} << i;
  }
  CHECK(f.engine->host().superseded(held) == wanted);
}

}  // namespace semel::tests
