// The state machine at its edges: what is not of the log is refused, damaged entries change
// nothing, and a snapshot is of one entry.
#include "replication/state/state_machine.hpp"

#include <array>
#include <atomic>
#include <clocale>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "replication/state/fields.hpp"
#include "semel/claims.hpp"
#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "semel/store.hpp"
#include "tests/replication/state/canonical.hpp"
#include "tests/replication/state/commands.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;

constexpr std::int64_t begin_ms = 1'700'000'000'000;

Options small() {
  Options options;
  options.memory_bytes = std::size_t{16} << 20;
  options.background = std::nullopt;
  return options;
}

std::unique_ptr<StateMachine> replica(const Options& options = small()) {
  auto opened = StateMachine::open(options);
  REQUIRE(opened);
  return *std::move(opened);
}

std::string entry_of(const std::vector<Command>& commands, std::int64_t unix_ms = begin_ms) {
  EntryBuilder builder{unix_ms, 7};
  for (const Command& command : commands) REQUIRE(*builder.add(command));
  return builder.bytes();
}

Command set(Bytes key, Bytes value, Expiry expiry = {}) {
  StoreCommand command;
  command.op.verb = Verb::set;
  command.op.key = key;
  command.op.value = value;
  command.op.expiry = expiry;
  return {command};
}

Command declare(Bytes name, const Policy& policy) {
  return {NamespaceCommand{.name = name, .policy = policy}};
}

Command claim(Bytes name, Bytes key, std::optional<SessionId> session = {}) {
  return {ClaimCommand{.name = name, .requests = {{.key = key, .session = session}}}};
}

const ClaimOutcome& outcome_of(const Answer& answer) {
  return std::get<std::vector<ClaimOutcome>>(answer.what).at(0);
}

}  // namespace

TEST_CASE("replica: only entries of the log change it", "[replica]") {
  const auto made = replica();
  Engine& engine = made->engine();
  REQUIRE(made->apply(1, entry_of({declare("work", {}), set("k", "v"), claim("work", "c")})));
  const std::string before = canonical(*made).bytes();
  CHECK(engine.store().set("k", "w").error().code == ErrorCode::refused);
  CHECK(engine.store().del("k").error().code == ErrorCode::refused);
  CHECK(engine.store().expire("k", Expiry::in(Millis{1})).error().code == ErrorCode::refused);
  CHECK(engine.store().rename("k", "l").error().code == ErrorCode::refused);
  CHECK(engine.hashes().hset("h", "f", "v").error().code == ErrorCode::refused);
  CHECK(engine.flush({}).error().code == ErrorCode::refused);
  CHECK(engine.swap_db(0, 1).error().code == ErrorCode::refused);
  CHECK(engine.claims("more", {}).error().code == ErrorCode::refused);
  CHECK(engine.change_namespace("work", {.strict = true}).error().code == ErrorCode::refused);
  CHECK(engine.drop_namespace("work", DropRule::all).error().code == ErrorCode::refused);
  CHECK(engine.open_session() == 0);
  Claims claims = *engine.claims("work");
  CHECK(claims.claim({.key = "d"}).error == ErrorCode::refused);
  CHECK(claims.complete({.key = "c", .epoch = claims.get("c")->epoch}).error == ErrorCode::refused);
  CHECK(claims.forget("c").error().code == ErrorCode::refused);
  {
    auto section = *engine.section({});
    StoreOutcome outcome;
    section.apply({.verb = Verb::set, .key = "k", .value = "w"}, outcome);
    CHECK(outcome.error == ErrorCode::refused);
  }
  CHECK(canonical(*made).bytes() == before);
  CHECK(*engine.store().get("k") == "v");
}

TEST_CASE("replica: an epoch is the entry's index and a place in it", "[replica]") {
  const auto made = replica();
  REQUIRE(made->apply(1, entry_of({declare("work", {})})));
  const auto answers = made->apply(2, entry_of({claim("work", "a"), claim("work", "b")}));
  REQUIRE(answers);
  CHECK(outcome_of((*answers)[0]).epoch == ((2U << 16) | 1));
  CHECK(outcome_of((*answers)[1]).epoch == ((2U << 16) | 2));
}

namespace {

/// What a node is told of its libraries, carried out again.
class Follower final : public RequestRunner {
 public:
  [[nodiscard]] bool knows(const RequestCommand&) const noexcept override { return false; }
  [[nodiscard]] PlainAnswer run(const RequestCommand&) override { return {}; }
  [[nodiscard]] Status libraries_changed(const LibraryChange& change) override {
    ++changes;
    if (!refuses && table.change(change).fault == LibraryVerdict::Fault::none) return Done{};
    return Error{ErrorCode::storage_newer, "refused here"};
  }
  [[nodiscard]] std::string names() const {
    std::string all;
    for (const SharedLibraryText& each : table.all()) all += each->name + " ";
    return all;
  }
  LibraryTable table;
  bool refuses = false;
  int changes = 0;
};

Command load(Bytes name, Bytes function, LibraryChange::What what = LibraryChange::What::load) {
  LibraryCommand command{.what = what};
  command.libraries = {{.name = name, .code = "#!lua", .functions = {{.name = function}}}};
  return {command};
}

}  // namespace

TEST_CASE("replica: memos as builds before the release wrote them stop it with what to do",
          "[replica][memos]") {
  const Command memo{MemoCommand{.name = "n", .key = "k", .epoch = 1, .step = "s"}};
  const Command done{OwnerCommand{.has_memos = true, .name = "n", .call = {.key = "k"}}};
  for (const Command& command : {memo, done, Command{SectionCommand{{memo}}}}) {
    const auto below = replica();
    const auto refused = below->apply(1, entry_of({command}));
    REQUIRE(refused);
    CHECK(std::get<PlainAnswer>(refused->at(0).what).error == ErrorCode::bad_option);

    const auto former = replica();
    REQUIRE(former->apply(1, entry_of({{FeatureLevelCommand{feature_level_libraries}}})));
    const auto stopped = former->apply(2, entry_of({set("k", "v"), command}));
    REQUIRE_FALSE(stopped.ok());
    CHECK(stopped.error().code == ErrorCode::storage_failed);
    CHECK(stopped.error().detail.find("before release 0.2.0") != std::string::npos);
    CHECK(former->apply(3, entry_of({})).error().code == ErrorCode::closing);

    const auto made = replica();
    REQUIRE(made->apply(1, entry_of({{FeatureLevelCommand{feature_level_memos}}, command})));
  }
}

TEST_CASE("replica: libraries are a part of the state from level 2 on", "[replica][libraries]") {
  const auto made = replica();
  Follower follower;
  REQUIRE(made->set_runner(&follower));
  const auto below = made->apply(1, entry_of({load("a", "f")}));
  REQUIRE(below);
  CHECK(std::get<PlainAnswer>(below->at(0).what).error == ErrorCode::bad_option);
  const std::size_t bytes = made->bytes_besides();
  const auto answers = made->apply(2, entry_of({{FeatureLevelCommand{feature_level_libraries}},
                                                load("a", "f"),
                                                load("a", "g"),
                                                load("b", "F"),
                                                load("b", "g")}));
  REQUIRE(answers);
  using Verdict = LibraryVerdict::Fault;
  const auto said = [&](std::size_t i) { return std::get<PlainAnswer>((*answers)[i].what); };
  CHECK(said(1).number == static_cast<std::int64_t>(Verdict::none));
  CHECK(said(2).number == static_cast<std::int64_t>(Verdict::library_exists));
  CHECK(said(2).text == "a");
  CHECK(said(3).number == static_cast<std::int64_t>(Verdict::function_exists));
  CHECK(said(3).text == "F");
  CHECK(follower.names() == "a b ");
  CHECK(follower.changes == 2);
  CHECK(made->bytes_besides() > bytes);

  SECTION("a copy has them, and its node hears of them before the first entry") {
    const auto copy = copy_of(*made, small());
    REQUIRE(copy);
    CHECK(canonical(**copy).bytes() == canonical(*made).bytes());
    Follower other;
    REQUIRE((*copy)->set_runner(&other));
    CHECK(other.names() == "a b ");
    const auto entry =
        entry_of({load("b", "h", LibraryChange::What::load_and_replace),
                  {LibraryCommand{.what = LibraryChange::What::remove, .name = "a"}}});
    REQUIRE(made->apply(3, entry));
    REQUIRE((*copy)->apply(3, entry));
    CHECK(other.names() == "b ");
    CHECK(canonical(**copy).bytes() == canonical(*made).bytes());
  }
  SECTION("one that is asked again counts once") {
    const auto begun =
        made->apply(3, entry_of({{SessionCommand{
                           .what = SessionCommand::What::close_former, .node = 5, .life = 1}}}));
    REQUIRE(begun);
    for (LogIndex index = 4; index <= 5; ++index) {
      EntryBuilder builder{begin_ms, 7};
      REQUIRE(*builder.add(load("c", "h"), {.node = 5, .life = 3, .sequence = 1, .lowest = 1}));
      const auto again = made->apply(index, builder.bytes());
      REQUIRE(again);
      CHECK(std::get<PlainAnswer>(again->at(0).what).number == 0);
    }
    CHECK(follower.names() == "a b c ");
  }
  SECTION("a snapshot whose libraries clash is not taken") {
    ReplicaState state = canonical(*made).state;
    state.libraries.push_back(state.libraries.front());
    const auto copy = replica();
    CHECK(copy->restore(state).error().code == ErrorCode::storage_damaged);
  }
  SECTION("a change is no part of a step of several") {
    SectionCommand section;
    section.commands = {set("k", "v"), load("c", "h")};
    EntryBuilder builder{begin_ms, 7};
    CHECK(builder.add({section}).error().code == ErrorCode::bad_encoding);
  }
}

TEST_CASE("replica: a change of libraries that its node refuses stops it", "[replica][libraries]") {
  const auto made = replica();
  REQUIRE(
      made->apply(1, entry_of({{FeatureLevelCommand{feature_level_libraries}}, load("a", "f")})));
  const auto copy = copy_of(*made, small());
  REQUIRE(copy);
  Follower follower;
  SECTION("before the first entry") {
    follower.refuses = true;
    CHECK((*copy)->set_runner(&follower).error().code == ErrorCode::storage_newer);
  }
  SECTION("in an entry") {
    REQUIRE((*copy)->set_runner(&follower));
    follower.refuses = true;
    const auto refused =
        (*copy)->apply(2, entry_of({set("k", "v"), load("b", "g"), set("l", "w")}));
    CHECK(refused.error().code == ErrorCode::storage_newer);
    CHECK(refused.error().detail == "refused here");
    CHECK((*copy)->applied() == 1);
    CHECK((*copy)->apply(2, entry_of({})).error().code == ErrorCode::closing);
  }
  SECTION("not where the group has refused it as well") {
    REQUIRE((*copy)->set_runner(&follower));
    follower.refuses = true;
    REQUIRE((*copy)->apply(2, entry_of({load("a", "g")})));
    CHECK(follower.changes == 1);
  }
}

TEST_CASE("replica: the level of features is the group's, and is never lowered", "[replica]") {
  const auto raise = [](FeatureLevel level) { return entry_of({{FeatureLevelCommand{level}}}); };
  const auto open = [](FeatureLevel newest) { return *StateMachine::open(small(), newest); };
  const auto made = open(3);
  CHECK(made->level() == 0);
  REQUIRE(made->apply(1, raise(2)));
  CHECK(made->level() == 2);
  const auto lower = made->apply(2, raise(1));
  REQUIRE(lower);
  CHECK(std::get<PlainAnswer>(lower->at(0).what).number == 2);
  CHECK(made->level() == 2);
  const ReplicaState state = canonical(*made).state;
  CHECK(state.level == 2);
  const auto copy = open(2);
  REQUIRE(copy->restore(state));
  CHECK(copy->level() == 2);
  SECTION("a snapshot of a later release is refused, and nothing is taken from it") {
    const auto earlier = open(1);
    const Status refused = earlier->restore(state);
    CHECK(refused.error().code == ErrorCode::storage_newer);
    CHECK(refused.error().detail ==
          "the group uses feature level 2, this release knows 1: a later release is needed");
    CHECK(earlier->level() == 0);
    CHECK(earlier->applied() == 0);
  }
  SECTION("an entry of a later release stops it") {
    const auto entry = entry_of({set("k", "v"), {FeatureLevelCommand{4}}, set("l", "w")});
    const auto refused = made->apply(3, entry);
    CHECK(refused.error().code == ErrorCode::storage_newer);
    CHECK(refused.error().detail ==
          "the group uses feature level 4, this release knows 3: a later release is needed");
    CHECK(made->applied() == 2);
    CHECK(made->level() == 2);
    CHECK(made->apply(3, entry_of({set("k", "v")})).error().code == ErrorCode::closing);
  }
  SECTION("it is no part of a step of several") {
    SectionCommand section;
    section.commands = {set("k", "v"), {FeatureLevelCommand{1}}};
    CHECK(prepare({section}).error().code == ErrorCode::bad_encoding);
    CHECK(prepare({FeatureLevelCommand{0}}).error().code == ErrorCode::bad_encoding);
  }
}

TEST_CASE("replica: entries come in order of their index and their time", "[replica]") {
  const auto made = replica();
  REQUIRE(made->apply(1, entry_of({set("k", "1")})));
  const std::string before = canonical(*made).bytes();
  CHECK_FALSE(made->apply(1, entry_of({set("k", "2")})));
  CHECK_FALSE(made->apply(3, entry_of({set("k", "2")})));
  CHECK_FALSE(made->apply(2, entry_of({set("k", "2")}, begin_ms - 1)));
  CHECK(canonical(*made).bytes() == before);
  CHECK(made->apply(2, entry_of({set("k", "2")})));
}

TEST_CASE("replica: an entry that is cut or changed is an error, and changes nothing or is read",
          "[replica]") {
  Commands commands{Catch::rngSeed()};
  std::string entry;
  {
    EntryBuilder builder{begin_ms, 1};
    for (int i = 0; i < 60; ++i) REQUIRE(builder.add(commands.next()).ok());
    entry = builder.bytes();
  }
  const auto made = replica();
  const std::string before = canonical(*made).bytes();
  for (std::size_t size = 0; size < entry.size(); ++size) {
    // Cut between two commands it is a shorter entry.
    const auto found = read_entry(std::string_view{entry}.substr(0, size));
    if (found.ok()) continue;
    CHECK(found.error().code == ErrorCode::bad_encoding);
    CHECK_FALSE(made->apply(1, std::string_view{entry}.substr(0, size)));
  }
  CHECK(canonical(*made).bytes() == before);
  proofs::Random& random = commands.random();
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = entry;
    for (std::uint64_t n = random.between(1, 3); n > 0; --n) {
      changed[random.below(changed.size())] = static_cast<char>(random.bits());
    }
    if (const auto found = read_entry(changed); found.ok()) {
      CHECK(found->commands.size() <= entry_commands_max);
    }
  }
}

TEST_CASE("replica: whatever an entry asks for, a replica answers, or stops and says why",
          "[replica]") {
  Commands commands{Catch::rngSeed() + 2};
  proofs::Random& random = commands.random();
  auto made = replica();
  LogIndex index = 0;
  std::int64_t unix_ms = begin_ms;
  std::size_t applied = 0;
  for (int i = 0; i < 20'000; ++i) {
    EntryBuilder builder{unix_ms, random.bits()};
    for (std::uint64_t n = random.between(1, 6); n > 0; --n) {
      REQUIRE(builder.add(commands.next()).ok());
    }
    std::string entry = builder.bytes();
    commands.forget_bytes();
    // Behind the time and the secret: the commands say something else than they did.
    constexpr std::size_t header = 17;
    for (std::uint64_t n = random.below(4); n > 0; --n) {
      const std::size_t at = header + random.below(entry.size() - header);
      entry[at] = static_cast<char>(random.bits());
    }
    const auto answers = made->apply(index + 1, entry);
    if (answers.ok()) {
      ++index;
      ++applied;
    } else if (answers.error().code != ErrorCode::bad_encoding) {
      INFO(answers.error().message());
      // Another byte may ask for a level of features that this release does not know.
      CHECK((answers.error().code == ErrorCode::memory_full ||
             answers.error().code == ErrorCode::storage_newer));
      made = replica();
      index = 0;
    }
    unix_ms += static_cast<std::int64_t>(random.below(100));
  }
  CHECK(applied > 5'000);
  CHECK(made->engine().host().check_invariants().empty());
}

TEST_CASE("replica: a command that no replica could read is refused before it is proposed",
          "[replica]") {
  EntryBuilder builder{begin_ms, 1};
  StoreCommand reads;
  reads.op.verb = Verb::get;
  reads.op.key = "k";
  CHECK(builder.add({reads}).error().code == ErrorCode::bad_encoding);
  StoreCommand counts;
  counts.op.verb = Verb::increx;
  counts.op.key = "k";
  CHECK(builder.add({counts}).error().code == ErrorCode::bad_encoding);
  HashCommand hash{.key = "h", .pairs = {}};
  hash.pairs.assign(limits::section_keys_max + 1, {"f", "v"});
  CHECK(builder.add({hash}).error().code == ErrorCode::bad_encoding);
  SectionCommand inner;
  inner.commands.push_back({TimeCommand{}});
  SectionCommand outer;
  outer.commands.push_back({std::move(inner)});
  CHECK(builder.add({std::move(outer)}).error().code == ErrorCode::bad_encoding);
  CHECK(builder.size() == 0);
  CHECK(*builder.add(set("k", "v")));
}

namespace {

/// Commands with one value out of its range, or one more or less than there may be.
std::vector<Command> unreadable_commands() {
  std::vector<Command> all;
  const auto store = [&](Verb verb, auto&& spoil) {
    StoreCommand command{.op = {.verb = verb, .key = "k"}};
    spoil(command);
    all.push_back({command});
  };
  const auto one = [&](auto command, auto&& spoil) {
    spoil(command);
    all.push_back({std::move(command)});
  };
  store(Verb::get, [](StoreCommand&) {});
  store(Verb::increx, [](StoreCommand&) {});
  store(Verb::set, [](StoreCommand& c) { c.arithmetic.emplace(); });
  store(Verb::set, [](StoreCommand& c) { c.op.db = limits::db_count; });
  store(static_cast<Verb>(200), [](StoreCommand&) {});
  one(SetManyCommand{}, [](SetManyCommand& c) { c.condition = Condition::if_version; });
  one(HashCommand{}, [](HashCommand& c) { c.fields.resize(items_max + 1); });
  one(HashCommand{.verb = engine::HashVerb::incr_by}, [](HashCommand&) {});
  one(HashCommand{.verb = engine::HashVerb::incr_by_float},
      [](HashCommand& c) { c.pairs.resize(2); });
  one(TransferCommand{}, [](TransferCommand& c) { c.to_db = limits::db_count; });
  one(NamespaceCommand{.name = "n"}, [](NamespaceCommand& c) { c.policy.lease = Millis{-1}; });
  one(NamespaceCommand{.name = "n"}, [](NamespaceCommand& c) { c.policy.db = limits::db_count; });
  one(HashCommand{.verb = engine::HashVerb::get}, [](HashCommand&) {});
  one(OwnerCommand{}, [](OwnerCommand& c) { c.call.keeping = static_cast<ResultKeeping>(99); });
  one(RequestCommand{}, [](RequestCommand& c) { c.dialect = 1; });
  one(RequestCommand{}, [](RequestCommand& c) { c.requests.resize(1); });
  one(FeatureLevelCommand{}, [](FeatureLevelCommand&) {});
  using Change = LibraryChange::What;
  one(LibraryCommand{.what = Change::load}, [](LibraryCommand&) {});
  one(LibraryCommand{.what = Change::flush}, [](LibraryCommand& c) { c.libraries.resize(1); });
  one(LibraryCommand{.what = Change::load},
      [](LibraryCommand& c) { c.libraries = {{.name = "n", .code = "", .body_begin = 1}}; });
  one(LibraryCommand{.what = Change::load}, [](LibraryCommand& c) {
    c.libraries = {{.name = "n", .code = ""}};
    c.libraries[0].functions = {{.name = "a name with blanks"}};
  });
  for (const Command& each : {Command{SectionCommand{}}, Command{FeatureLevelCommand{1}},
                              Command{LibraryCommand{.what = Change::flush}}}) {
    all.push_back({SectionCommand{{each}}});
  }
  return all;
}

}  // namespace

TEST_CASE("replica: a command is refused exactly where no replica could read it", "[replica]") {
  for (const Command& each : unreadable_commands()) {
    std::string bytes;
    INFO("command " << each.what.index());
    CHECK_FALSE(encode(each, bytes));
    Bytes rest{bytes};
    CHECK_FALSE(decode(rest).ok());
    CHECK(prepare(each).error().code == ErrorCode::bad_encoding);
  }
}

TEST_CASE("replica: an entry of a later format is named", "[replica]") {
  const auto made = replica();
  std::string entry = entry_of({set("k", "v")});
  entry[0] = 2;
  CHECK(made->apply(1, entry).error().code == ErrorCode::storage_newer);
}

TEST_CASE("replica: a command is read as it was written", "[replica]") {
  Commands commands{Catch::rngSeed() + 1};
  for (int i = 0; i < 5'000; ++i) {
    const Command command = commands.next();
    std::string bytes;
    REQUIRE(encode(command, bytes));
    Bytes rest{bytes};
    const auto found = decode(rest);
    REQUIRE(found.ok());
    CHECK(rest.empty());
    std::string again;
    REQUIRE(encode(*found, again));
    CHECK(again == bytes);
    CHECK(versions_of(*found) == versions_of(command));
  }
}

TEST_CASE("replica: a real number is written and read alike in every locale", "[replica]") {
  const auto written = [](long double value) {
    std::string bytes;
    REQUIRE(encode({HashCommand{.verb = engine::HashVerb::incr_by_float,
                                .key = "h",
                                .pairs = {{"f", ""}},
                                .by_float = value}},
                   bytes));
    return bytes;
  };
  const long double value = 0.1L;
  const std::string plain = written(value);
  // Those with a decimal comma that this machine has; a group may have all of them.
  for (const char* const locale : {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "pt_BR.UTF-8"}) {
    if (std::setlocale(LC_ALL, locale) == nullptr) continue;
    const std::string here = written(value);
    Bytes rest = plain;
    const auto command = decode(rest);
    std::setlocale(LC_ALL, "C");
    INFO(locale);
    CHECK(here == plain);
    REQUIRE(command.ok());
    CHECK(std::get<HashCommand>(command->what).by_float == value);
  }
}

TEST_CASE("replica: an entry has a bound of commands, bytes and versions", "[replica]") {
  EntryBuilder builder{begin_ms, 1};
  const std::string large(entry_bytes_max / 2, 'x');
  CHECK(*builder.add(set("k", large)));
  CHECK_FALSE(*builder.add(set("l", large)));
  CHECK(*builder.add(set("l", "small")));
  EntryBuilder one{begin_ms, 1};
  CHECK(*one.add(set("k", std::string(entry_bytes_max * 2, 'x'))));  // alone
  CHECK_FALSE(*one.add(set("l", "small")));
  EntryBuilder many{begin_ms, 1};
  for (std::size_t i = 0; i < entry_commands_max; ++i) REQUIRE(*many.add({TimeCommand{}}));
  CHECK_FALSE(*many.add({TimeCommand{}}));
  DeleteManyCommand keys;
  keys.keys.assign(entry_versions_max, "k");
  EntryBuilder versions{begin_ms, 1};
  CHECK(*versions.add({keys}));
  CHECK_FALSE(*versions.add(set("l", "small")));
  keys.keys.push_back("k");
  CHECK(versions.add({keys}).error().code == ErrorCode::too_many_keys);
}

TEST_CASE("replica: a claim of a closed session is taken over at once", "[replica]") {
  const auto made = replica();
  const auto opened = made->apply(1, entry_of({declare("work", {}), {SessionCommand{}}}));
  REQUIRE(opened);
  const auto session = static_cast<SessionId>(std::get<PlainAnswer>((*opened)[1].what).number);
  CHECK(session != 0);
  REQUIRE(made->apply(2, entry_of({claim("work", "a", session)})));
  const auto held = made->apply(3, entry_of({claim("work", "a")}));
  CHECK(outcome_of((*held)[0]).answer == ClaimAnswer::in_flight);
  const auto copy = copy_of(*made, small());
  REQUIRE(copy);
  const std::string closes =
      entry_of({{SessionCommand{.what = SessionCommand::What::close, .session = session}},
                claim("work", "a")});
  for (StateMachine* each : {made.get(), copy->get()}) {
    const auto taken = each->apply(4, closes);
    REQUIRE(taken);
    CHECK(outcome_of((*taken)[1]).answer == ClaimAnswer::granted);
    CHECK(outcome_of((*taken)[1]).takeover);
  }
  CHECK(canonical(*made).bytes() == canonical(**copy).bytes());
}

TEST_CASE("replica: a result that has ended shows the same whether it was swept or not",
          "[replica]") {
  const auto swept = replica();
  const auto not_swept = replica();
  const Policy policy{.result_ttl = Millis{1'000}, .unique_ttl = Millis{60'000}};
  const std::string first = entry_of({declare("work", policy), claim("work", "a")});
  const Epoch epoch = (1U << 16) | 2;
  const std::string result(100, 'r');  // longer than its digest
  const std::string second = entry_of(
      {{OwnerCommand{.name = "work", .call = {.key = "a", .epoch = epoch, .payload = result}}}});
  const std::string third = entry_of({{TimeCommand{}}}, begin_ms + 2'000);
  for (StateMachine* each : {swept.get(), not_swept.get()}) {
    REQUIRE(each->apply(1, first));
    REQUIRE(each->apply(2, second));
    REQUIRE(each->apply(3, third));
  }
  const std::uint64_t before = swept->engine().stats().bytes_records;
  swept->engine().advance();
  CHECK(swept->engine().stats().bytes_records <= before);
  CHECK(canonical(*swept).bytes() == canonical(*not_swept).bytes());
  const std::string fourth = entry_of({claim("work", "a")}, begin_ms + 2'000);
  for (StateMachine* each : {swept.get(), not_swept.get()}) {
    const auto answers = each->apply(4, fourth);
    CHECK(outcome_of((*answers)[0]).answer == ClaimAnswer::replay);
    CHECK(outcome_of((*answers)[0]).result_expired);
  }
}

TEST_CASE("replica: a duplicate in a sliding window moves the end on each replica alike",
          "[replica][sliding]") {
  const auto swept = replica();
  const auto not_swept = replica();
  const Policy policy{
      .result_ttl = Millis{1'600}, .unique_ttl = Millis{3'200}, .sliding_max = Millis{60'000}};
  const std::string result(100, 'r');
  const OwnerCall done{.key = "a", .epoch = (2U << 16) | 2, .payload = result};
  LogIndex index = 0;
  std::vector<Answer> last;
  const auto apply = [&](const std::vector<Command>& commands, std::int64_t after_ms) {
    ++index;
    for (StateMachine* each : {swept.get(), not_swept.get()}) {
      last = each->apply(index, entry_of(commands, begin_ms + after_ms)).value();
    }
    swept->engine().advance();
    CHECK(canonical(*swept).bytes() == canonical(*not_swept).bytes());
  };
  const auto found = [&] { return outcome_of(last.at(0)); };
  apply({{FeatureLevelCommand{feature_level_sliding}}}, 0);
  apply({declare("work", policy), claim("work", "a")}, 0);
  apply({{OwnerCommand{.name = "work", .call = done}}}, 0);
  apply({claim("work", "a")}, 1'600);
  CHECK(found().result == result);
  const Version version = found().version;
  apply({claim("work", "a")}, 1'700);  // a share of the shorter window later: nothing moves
  CHECK(found().version == version);
  apply({claim("work", "a")}, 1'701);
  CHECK(found().version > version);
  apply({claim("work", "a")}, 1'701 + 1'700);
  CHECK(found().result_expired);
  apply({claim("work", "a")}, 1'701 + 1'700 + 3'399);
  CHECK(found().answer == ClaimAnswer::replay);
  apply({claim("work", "a")}, 1'701 + 1'700 + 3'399 + 3'400);
  CHECK(found().answer == ClaimAnswer::granted);
}

TEST_CASE("replica: a sliding window is refused below the level that has it",
          "[replica][sliding]") {
  const Policy policy{.result_ttl = Millis{1'600}, .sliding_max = Millis{60'000}};
  const auto made = replica();
  REQUIRE(made->apply(1, entry_of({{FeatureLevelCommand{feature_level_sliding - 1}}})));
  CHECK(level_of(declare("work", policy)) == feature_level_sliding);
  CHECK(level_of(declare("work", {})) == feature_level_first);
  REQUIRE(made->apply(2, entry_of({declare("work", policy), declare("fixed", {})})));
  CHECK(made->engine().namespaces() == std::vector<std::string>{"fixed"});
  REQUIRE(made->apply(3, entry_of({{FeatureLevelCommand{feature_level_sliding}}})));
  REQUIRE(made->apply(4, entry_of({declare("work", policy)})));
  CHECK(made->engine().claims("work")->policy().sliding_max == Millis{60'000});
}

TEST_CASE("replica: one that has no memory for an entry stops, and says so", "[replica]") {
  Options options = small();
  options.memory_bytes = limits::memory_bytes_min;
  const auto made = replica(options);
  const std::string value(60'000, 'x');
  LogIndex index = 0;
  std::optional<Error> stopped;
  while (!stopped && index < 1'000) {
    const std::string key = "k" + std::to_string(index);
    const auto answers = made->apply(++index, entry_of({set(key, value)}));
    if (!answers) stopped = answers.error();
  }
  REQUIRE(stopped);
  CHECK(stopped->code == ErrorCode::memory_full);
  CHECK(made->applied() == index - 1);
  CHECK(made->apply(index, entry_of({set("k0", "")})).error().code == ErrorCode::closing);
}

TEST_CASE("replica: a snapshot is of one entry while others are applied", "[replica]") {
  const auto made = replica();
  constexpr std::array<const char*, 5> keys{"a", "b", "c", "d", "e"};
  std::atomic<bool> ends{false};
  std::thread applying{[&] {
    // mo: relaxed: it ends a little later
    for (LogIndex index = 1; !ends.load(std::memory_order_relaxed); ++index) {
      const std::string value = std::to_string(index);
      // Without a check: they belong to the thread of the test.
      EntryBuilder builder{begin_ms + static_cast<std::int64_t>(index), 7};
      for (const char* const key : keys) static_cast<void>(builder.add(set(key, value)));
      const auto answers = made->apply(index, builder.bytes());
      if (!answers) return;
    }
  }};
  for (int i = 0; i < 300; ++i) {
    ReplicaState state;
    std::vector<std::string> wrong;
    std::size_t found = 0;
    const Status done =
        made->snapshot([&](const ReplicaState& cut) { state = cut; },
                       [&](const Mutation& mutation) {
                         if (mutation.kind != Kind::string || mutation.type != Mutation::Type::put)
                           return;
                         ++found;
                         if (mutation.value != std::to_string(state.applied)) {
                           wrong.emplace_back(mutation.value);
                         }
                       });
    CHECK(done);
    CHECK(wrong.empty());
    CHECK(found >= (state.applied == 0 ? 0 : keys.size()));
    if (state.applied != 0) {
      CHECK(state.unix_ms == begin_ms + static_cast<std::int64_t>(state.applied));
    }
  }
  ends.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
  applying.join();
}

}  // namespace semel::tests
