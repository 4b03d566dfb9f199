// Namespaces on the disk: the next process, the files behind the log, the cold store, and the
// tools. Words: process = an engine over a directory, from opening to closing.
#include <map>
#include <set>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/storage_tools.hpp"
#include "tests/storage/cold/cold_fixture.hpp"
#include "tests/storage/directory.hpp"
#include "tests/storage/golden.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// "name db lease" of each, in order of names.
std::vector<std::string> terms_of(Engine& engine) {
  std::vector<std::string> all;
  for (const std::string& name : engine.namespaces()) {
    const Policy policy = engine.claims(name)->policy();
    all.push_back(name + " " + std::to_string(policy.db) + " " +
                  std::to_string(policy.lease.count()));
  }
  return all;
}

const std::vector<std::string> wanted{"anew 2 9", "changed 5 2", "plain 0 60000"};

void fill(Engine& engine) {
  REQUIRE(engine.claims("plain", {}));
  REQUIRE(engine.claims("changed", {.lease = 1ms, .db = 5}));
  REQUIRE(engine.change_namespace("changed", {.lease = 2ms, .db = 5}));
  REQUIRE(engine.claims("dropped", {}));
  REQUIRE(engine.drop_namespace("dropped"));
  REQUIRE(engine.claims("anew", {.db = 1}));
  Claims anew = engine.claims("anew").value();
  REQUIRE(anew.claim({.key = "k"}).answer == ClaimAnswer::granted);
  REQUIRE(engine.drop_namespace("anew", DropRule::all));
  REQUIRE(engine.claims("anew", {.lease = 9ms, .db = 2}));
}

/// An engine on the storage, nothing recovered yet.
golden::Process accepting(const std::string& directory, const Clock& clock) {
  golden::Process process;
  process.storage =
      Storage::open({.directory = directory, .accept_unknown_namespaces = true}, clock).value();
  process.engine = Engine::open({.clock = &clock,
                                 .journal = process.storage.get(),
                                 .durability = Durability::logged,
                                 .first_version = process.storage->first_version()})
                       .value();
  return process;
}

/// Claims alone, as if a damaged file had taken their namespaces: two live ones, both of "ghost".
void fill_without_namespaces(const std::string& directory, ManualClock& clock, bool drained) {
  auto storage = Storage::open({.directory = directory}, clock).value();
  Mutation mutation;
  mutation.version = storage->first_version();
  const auto append = [&](Mutation::Type type, Bytes key, Timestamp due = no_end) {
    mutation.type = type;
    mutation.kind = Kind::claim;
    ++mutation.version;
    mutation.key = key;
    mutation.due = mutation.keep_until = due;
    mutation.claim.reset();
    if (type == Mutation::Type::put) {
      mutation.claim.emplace();
      mutation.claim->state = ClaimState::done;
      mutation.claim->epoch = mutation.version;
    }
    REQUIRE(storage->append({&mutation, 1}) != 0);
  };
  using enum Mutation::Type;
  append(put, "ghost:1");
  append(put, "ghost:2", clock.now() + 1h);
  append(put, "ghost:3");
  append(erase, "ghost:3");
  append(put, "erased:1");
  append(erase, "erased:1");
  append(put, "ended:1", clock.now() + 1min);
  mutation.db = 3;
  append(put, "flushed:1");
  append(flush, {});
  if (drained) REQUIRE(storage->drain());
  clock.advance(1min);
}

}  // namespace

TEST_CASE("storage: namespaces are there in the next process, from the log and from files",
          "[storage][namespaces][attack][fault-8]") {
  for (const bool drained : {false, true}) {
    const Directory directory;
    ManualClock clock{golden::engine_start, golden::unix_start_ms};
    {
      auto process = golden::open(directory.path(), clock);
      REQUIRE(process);
      fill(*process->engine);
      if (drained) REQUIRE(process->storage->drain());
    }
    std::set<std::string> kinds;
    const auto info = inspect_storage(directory.path(), [&](const StoredMutation& stored) {
      kinds.emplace(name_of(stored.mutation.kind));
    });
    REQUIRE(info);
    CHECK(kinds == std::set<std::string>{"claim", "namespace"});
    CHECK(verify_storage(directory.path()).value().findings.empty());
    for (int number = 0; number < 3; ++number) {
      auto process = golden::open(directory.path(), clock);
      REQUIRE(process);
      CHECK(terms_of(*process->engine) == wanted);
      CHECK(process->engine->claims("plain", {}).has_value());
      const auto other = process->engine->claims("plain", {.db = 1});
      REQUIRE_FALSE(other);
      CHECK(other.error().code == ErrorCode::namespace_differs);
      CHECK(process->engine->size(2) == 0);
      if (number == 0) REQUIRE(process->storage->rewrite(*process->engine));
      clock.advance(24h);  // they do not end
    }
  }
}

TEST_CASE("storage: what is done with a namespace is there after the end that follows it at once",
          "[storage][namespaces][attack][fault-8]") {
  const Directory directory;
  ManualClock clock{golden::engine_start, golden::unix_start_ms};
  const auto in_one_life = [&](auto step) {
    auto process = golden::open(directory.path(), clock);
    REQUIRE(process);
    step(*process->engine);
  };
  for (int round = 0; round < 3; ++round) {
    in_one_life([](Engine& engine) { REQUIRE(engine.claims("jobs", {.lease = 1ms})); });
    in_one_life([](Engine& engine) {
      CHECK(terms_of(engine) == std::vector<std::string>{"jobs 0 1"});
      REQUIRE(engine.change_namespace("jobs", {.lease = 2ms}));
    });
    in_one_life([](Engine& engine) {
      CHECK(terms_of(engine) == std::vector<std::string>{"jobs 0 2"});
      REQUIRE(engine.drop_namespace("jobs"));
    });
    in_one_life([](Engine& engine) { CHECK(engine.namespaces().empty()); });
  }
}

TEST_CASE("storage: a backup and a repair keep namespaces", "[storage][namespaces]") {
  const Directory directory;
  const std::string path = directory.path() + "/s";
  ManualClock clock{golden::engine_start, golden::unix_start_ms};
  {
    auto process = golden::open(path, clock);
    REQUIRE(process);
    fill(*process->engine);
    REQUIRE(process->storage->backup(directory.path() + "/backup"));
  }
  REQUIRE(restore_backup(directory.path() + "/backup", directory.path() + "/back"));
  REQUIRE(repair_storage(path, true));
  for (const char* where : {"/s", "/back"}) {
    auto process = golden::open(directory.path() + where, clock);
    REQUIRE(process);
    CHECK(terms_of(*process->engine) == wanted);
  }
}

TEST_CASE("storage: live claims of a namespace that is not known keep it from being opened",
          "[storage][namespaces][attack]") {
  const Directory directory;
  ManualClock clock{golden::engine_start, golden::unix_start_ms};
  const bool drained = GENERATE(false, true);
  fill_without_namespaces(directory.path(), clock, drained);
  using Names = std::map<std::string, std::uint64_t>;
  const Names ghost{{"ghost", 2}};
  CHECK(verify_storage(directory.path()).value().unknown_namespaces == ghost);
  const auto refused = golden::open(directory.path(), clock);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::storage_damaged);
  CHECK(refused.error().detail.starts_with(
      directory.path() + ": the terms of a namespace are not known: ghost (2 claims); "));
  CHECK(refused.error().detail.find("accept_unknown_namespaces") != std::string::npos);
  // Nothing was changed by that, and repair leaves it alone.
  const auto repaired = repair_storage(directory.path(), true);
  REQUIRE(repaired);
  CHECK_FALSE(repaired->changed);
  for (int i = 0; i < 2; ++i) {
    const auto process = accepting(directory.path(), clock);
    CHECK(process.storage->recover(*process.engine)->unknown_namespaces == ghost);
  }
  CHECK_FALSE(golden::open(directory.path(), clock));

  // Declared as it was, it is known from then on.
  {
    const auto process = accepting(directory.path(), clock);
    REQUIRE(process.storage->recover(*process.engine));
    Claims claims = process.engine->claims("ghost", {}).value();
    CHECK(claims.claim({.key = "1"}).answer == ClaimAnswer::replay);
  }
  CHECK(verify_storage(directory.path())->is_sound());
  // A namespace that was dropped with its claims is no loss.
  {
    const auto process = golden::open(directory.path(), clock);
    REQUIRE(process);
    REQUIRE(process->engine->drop_namespace("ghost", DropRule::all));
  }
  CHECK(verify_storage(directory.path())->is_sound());
  CHECK(golden::open(directory.path(), clock));
}

TEST_CASE("cold store: a spill appends namespaces again, as what stays in memory",
          "[storage][cold][namespaces]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  /// Forgets, as a storage does, what a spill says is not needed.
  class Forgetting final : public Journal {
   public:
    Ticket append(std::span<const Mutation> group) override {
      for (const Mutation& mutation : group) {
        if (mutation.kind == Kind::name_space) last[std::string{mutation.key}] = newest_ + 1;
      }
      return ++newest_;
    }
    Status wait(Ticket, Durability) override { return Done{}; }
    Ticket newest() const override { return newest_; }
    bool wants_spills() const noexcept override { return true; }
    void spilled(Ticket cut, Ticket, const ColdMark&) override {
      std::erase_if(last, [cut](const auto& one) { return one.second <= cut; });
    }
    std::map<std::string, Ticket> last;

   private:
    Ticket newest_ = 0;
  } journal;
  ColdLife process{directory, clock, &journal};
  for (int i = 0; i < 1'000; ++i) REQUIRE(process.engine->claims("n" + std::to_string(i), {}));
  REQUIRE(process.engine->store().set("k", "v")->stored);
  process.spill();
  CHECK(journal.last.size() == 1'000);
}

}  // namespace semel::tests
