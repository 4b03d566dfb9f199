// Changes that are asked again when a leader ends before it answers: each is carried out once, and
// those who asked a node that lives see neither an error nor a second count.
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "replication/state/answer_table.hpp"
#include "replication/state/fields.hpp"
#include "semel/claims.hpp"
#include "semel/store.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/replication/node/peer.hpp"
#include "tests/replication/node/runner.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;

const ProposalTerms asks_again{.patience = Millis{30'000}, .forwards = true};

Command request(std::vector<std::vector<Bytes>> requests, bool is_transaction = false) {
  RequestCommand command;
  command.is_transaction = is_transaction;
  command.requests = std::move(requests);
  return {std::move(command)};
}

Command incr(Bytes key) {
  StoreCommand command;
  command.op.verb = Verb::incr_by;
  command.op.key = key;
  command.op.amount = 1;
  return {command};
}

Command set_if_absent(Bytes key) {
  StoreCommand command;
  command.op.verb = Verb::set;
  command.op.key = key;
  command.op.value = "v";
  command.op.condition = Condition::if_absent;
  return {command};
}

NodeId after(NodeId id) {
  return id % 3 + 1;
}

struct Served {
  std::map<NodeId, WordsRunner> runners{};  // outlive the nodes
  Group group{3, std::uint64_t{64} << 20, [this](NodeId id, Engine& engine) {
                runners[id].set_engine(engine);
                return &runners[id];
              }};
};

std::string text_of(const Result<Answer>& answer) {
  if (!answer.ok()) return answer.error().message();
  const auto* const plain = std::get_if<PlainAnswer>(&answer->what);
  return plain == nullptr ? "another answer" : plain->text;
}

}  // namespace

TEST_CASE("ask again: a leader that ends between the commit and the answer, whatever was asked",
          "[ask_again]") {
  Served served;
  Group& group = served.group;
  struct Asked {
    Command command;
    const char* text;
  };
  const std::vector<Asked> all{
      {request({{"INCR", "count"}}), "1 "},
      {request({{"SETNX", "mine", "me"}}), "taken "},
      {request({{"ISSUE", "token"}}), "issued "},
      {request({{"TAKE", "token"}}), "first "},
      {request({{"INCR", "a"}, {"INCR", "a"}, {"SETNX", "b", "x"}}, true), "1 2 taken "},
      {request({{"INCR", "count"}, {"TAKE", "token"}}), "2 not "},
  };
  std::map<NodeId, std::uint64_t> before;
  for (const Asked& each : all) {
    const NodeId leader = group.wait_leader();
    REQUIRE(leader != 0);
    for (NodeId id = 1; id <= 3; ++id) {
      REQUIRE(group.wait_equal(id));
      before[id] = served.runners[id].runs();
    }
    // It has the entry committed when it comes to it, and answers nobody.
    served.runners[leader].fail_next();
    INFO(group.said());
    CHECK(text_of(group.node(after(leader)).propose(each.command, asks_again)) == each.text);
    CHECK_FALSE(group.node(leader).status().failed.empty());
    for (NodeId id = 1; id <= 3; ++id) {
      if (id == leader) continue;
      REQUIRE(group.wait_equal(id));
      CHECK(served.runners[id].runs() == before[id] + 1);
    }
    group.close(leader);
    group.open(leader);
  }
  for (NodeId id = 1; id <= 3; ++id) {
    REQUIRE(group.wait_equal(id));
    CHECK(*group.node(id).engine().store().get("count") == "2");
  }
}

TEST_CASE("ask again: what was asked of the node that ends stays unknown to its callers",
          "[ask_again]") {
  Served served;
  const NodeId leader = served.group.wait_leader();
  REQUIRE(leader != 0);
  REQUIRE(served.group.wait_equal(leader));
  served.runners[leader].fail_next();
  const auto answer = served.group.node(leader).propose(request({{"INCR", "count"}}), asks_again);
  REQUIRE_FALSE(answer.ok());
  CHECK(answer.error().code == ErrorCode::outcome_unknown);
  const NodeId next = served.group.wait_leader();
  REQUIRE(served.group.wait_equal(next));
  CHECK(*served.group.node(next).engine().store().get("count") == "1");
}

TEST_CASE("ask again: 8 threads count through nodes that live while leaders end and change",
          "[ask_again]") {
  Group group{3, 400'000};  // the table of answers is in snapshots as well
  std::atomic<std::uint64_t> counted{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> not_first{0};
  std::mutex mutex;
  std::set<std::int64_t> numbers;
  std::string errors;
  for (int round = 0; round < 6; ++round) {
    // One that was away may get a snapshot, and ends for it.
    for (NodeId id = 1; id <= 3; ++id) REQUIRE(group.wait_equal(id));
    const NodeId leader = group.wait_leader();
    REQUIRE(leader != 0);
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, round, t, id = t % 2 == 0 ? after(leader) : after(after(leader))] {
        for (int i = 0; !is_over; ++i) {
          const auto answer = group.node(id).propose(incr("count"), asks_again);
          const auto* const outcome =
              answer.ok() ? std::get_if<StoreOutcome>(&answer->what) : nullptr;
          if (outcome == nullptr) {
            ++failed;
            const std::lock_guard lock{mutex};
            errors += text_of(answer) + "\n";
            return;
          }
          const std::string mine =
              std::to_string(round) + "/" + std::to_string(t) + "/" + std::to_string(i);
          const auto taken = group.node(id).propose(set_if_absent(mine), asks_again);
          const auto* const set = taken.ok() ? std::get_if<StoreOutcome>(&taken->what) : nullptr;
          if (set == nullptr || !set->applied) ++not_first;
          const std::lock_guard lock{mutex};
          numbers.insert(outcome->number);
          ++counted;
        }
      });
    }
    const auto wait_for = [&](std::uint64_t more) {
      const std::uint64_t target = counted + more;
      CHECK(Group::wait_for([&] { return counted >= target; }));
    };
    wait_for(100);
    group.close(leader);  // without a word to the others
    wait_for(200);
    // Of two nodes each is needed, and they change places.
    for (int i = 0; i < 2; ++i) {
      for (const NodeId id : {after(leader), after(after(leader))}) {
        if (group.node(id).is_leader()) static_cast<void>(group.node(id).transfer(0));
      }
      wait_for(100);
    }
    is_over = true;
    for (std::thread& each : threads) each.join();
    group.open(leader);
  }
  INFO(group.said());
  INFO(errors);
  CHECK(failed == 0);
  CHECK(not_first == 0);
  CHECK(numbers.size() == counted);  // each caller has a number of its own
  for (NodeId id = 1; id <= 3; ++id) {
    REQUIRE(group.wait_equal(id));
    CHECK(*group.node(id).engine().store().get("count") == std::to_string(counted));
  }
}

TEST_CASE("ask again: a node that begins anew in the middle of its calls counts none of them twice",
          "[ask_again]") {
  Group group{3};
  std::int64_t newest = 0;
  std::uint64_t counted = 0;
  std::uint64_t unknown = 0;
  for (int round = 0; round < 5; ++round) {
    const NodeId leader = group.wait_leader();
    REQUIRE(leader != 0);
    const NodeId origin = after(leader);
    // The sequences of each life are those of the one before: its answers must not be.
    for (int i = 0; i < 20; ++i) {
      const auto answer = group.node(origin).propose(incr("count"), asks_again);
      INFO(text_of(answer));
      REQUIRE(answer.ok());
      const std::int64_t number = std::get<StoreOutcome>(answer->what).number;
      CHECK(number > newest);
      newest = number;
      ++counted;
    }
    std::atomic<std::uint64_t> answered{0};
    std::atomic<std::uint64_t> lost{0};
    auto prepared = prepare(incr("count"));
    for (int i = 0; i < 200; ++i) {
      group.node(origin).propose(
          *prepared, [&](const Result<Answer>& answer) { ++(answer.ok() ? answered : lost); },
          asks_again);
    }
    group.close(origin);
    CHECK(answered + lost == 200);
    counted += answered;
    unknown += lost;
    group.open(origin);
    REQUIRE(group.wait_equal(origin));
    newest = std::atoll(group.node(origin).engine().store().get("count").value()->c_str());
  }
  const auto total = static_cast<std::uint64_t>(newest);
  CHECK(total >= counted);
  CHECK(total <= counted + unknown);
}

TEST_CASE("ask again: a node that was no member for a while begins a life anew", "[ask_again]") {
  Group group{3};
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  const NodeId away = after(leader);
  CHECK(group.node(away).propose(incr("count"), asks_again).ok());
  REQUIRE(Group::wait_for([&] { return group.node(leader).remove(away).ok(); }));
  REQUIRE(group.wait_equal(leader));
  REQUIRE(Group::wait_for([&] { return group.node(leader).add(away, group.address(away)).ok(); }));
  REQUIRE(group.wait_equal(away));
  const auto answer = group.node(away).propose(incr("count"), asks_again);
  INFO(text_of(answer));
  REQUIRE(answer.ok());
  CHECK(std::get<StoreOutcome>(answer->what).number == 2);
}

TEST_CASE("ask again: more calls than the window holds are all answered", "[ask_again]") {
  Group group{3};
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  constexpr std::uint64_t calls = 3 * answers_window / 2;
  for (const NodeId id : {leader, after(leader)}) {
    std::atomic<std::uint64_t> answered{0};
    std::atomic<std::uint64_t> lost{0};
    auto prepared = prepare(incr(id == leader ? "leader" : "other"));
    for (std::uint64_t i = 0; i < calls; ++i) {
      group.node(id).propose(
          *prepared, [&](const Result<Answer>& answer) { ++(answer.ok() ? answered : lost); },
          asks_again);
    }
    // Minutes where a sanitizer watches and others want the processor. The callbacks count here.
    bool are_over = false;
    for (int i = 0; i < 15 && !are_over; ++i) {
      are_over = Group::wait_for([&] { return answered + lost == calls; });
    }
    INFO(id << " of " << leader << ": " << answered << " answered, " << lost << " not");
    REQUIRE(are_over);
    CHECK(lost == 0);
    REQUIRE(group.wait_equal(leader));  // another may lead by now
    const auto count = group.node(leader).engine().store().get(id == leader ? "leader" : "other");
    CHECK(count->value() == std::to_string(calls));
  }
}

namespace {

/// Of a Forward.
std::string bytes(const std::vector<std::uint64_t>& numbers, const Command& command) {
  std::string made;
  FieldWriter fields{made};
  for (const std::uint64_t each : numbers) fields.number(each);
  return made + prepare(command)->bytes;
}

Command begins(NodeId node, std::uint64_t life) {
  return {SessionCommand{.what = SessionCommand::What::close_former, .node = node, .life = life}};
}

}  // namespace

TEST_CASE("ask again: a member stops nobody, whatever it sends", "[ask_again]") {
  Group group{1};
  REQUIRE(group.wait_leader() == 1);
  REQUIRE(group.node(1).add(2, group.address(2)));
  REQUIRE(group.wait_equal(1));
  HostilePeer peer{2, group.address(2), 77};
  peer.set_peers({{1, group.address(1)}});
  REQUIRE(Group::wait_for([&] { return group.node(1).status().peers[2].is_connected; }));
  const auto error = [&](const Command& command) {
    const auto answer = peer.ask(1, bytes({0}, command));
    REQUIRE(answer);
    return answer->ok() ? ErrorCode::ok : answer->error().code;
  };
  // A level that no release has, and words that no replica can carry out, also in a section.
  CHECK(error({FeatureLevelCommand{9}}) == ErrorCode::not_leader);
  CHECK(error({FeatureLevelCommand{1}}) == ErrorCode::not_leader);
  RequestCommand words;
  words.requests = {{"LATER", "k"}};
  CHECK(error({words}) == ErrorCode::bad_encoding);
  SectionCommand section;
  section.commands = {incr("count"), {words}};
  CHECK(error({section}) == ErrorCode::bad_encoding);
  CHECK(group.node(1).propose(incr("count"), asks_again).ok());
  CHECK(group.node(1).status().failed.empty());
}

TEST_CASE("ask again: a member hands nothing over that a node of the group's level could not read",
          "[ask_again][libraries]") {
  for (const FeatureLevel level :
       {feature_level_first, feature_level_libraries, feature_level_memos}) {
    INFO("level " << level);
    Group group{1, std::uint64_t{64} << 20, {}, level};
    REQUIRE(group.wait_leader() == 1);
    REQUIRE(Group::wait_for([&] { return group.node(1).status().level == level; }));
    REQUIRE(group.node(1).add(2, group.address(2)));
    REQUIRE(group.wait_equal(1));
    HostilePeer peer{2, group.address(2), 77};
    peer.set_peers({{1, group.address(1)}});
    REQUIRE(Group::wait_for([&] { return group.node(1).status().peers[2].is_connected; }));
    LibraryCommand libraries;
    libraries.libraries = {{.name = "lib", .code = "#!lua name=l\nx", .body_begin = 13}};
    const auto error = [&](const std::string& sent) {
      const auto answer = peer.ask(1, sent);
      REQUIRE(answer);
      return answer->ok() ? ErrorCode::ok : answer->error().code;
    };
    const std::string sent = bytes({0}, {libraries});
    // Below it a node of an earlier release would stop.
    CHECK(error(sent) == (level < feature_level_libraries ? ErrorCode::not_leader : ErrorCode::ok));
    const OwnerCommand done{.has_memos = true, .name = "n"};
    const Command memo{MemoCommand{.name = "n", .key = "k", .epoch = 1, .step = "s"}};
    for (const std::string& other :
         {bytes({0}, memo), bytes({0}, {done}), bytes({0}, {SectionCommand{{memo}}})}) {
      CHECK(error(other) == (level < feature_level_memos ? ErrorCode::not_leader : ErrorCode::ok));
    }
    std::string wrong = sent;
    wrong.at(wrong.find("lib")) = '\n';
    CHECK(error(wrong) == ErrorCode::bad_encoding);
    CHECK(group.node(1).propose(incr("count"), asks_again).ok());
    CHECK(group.node(1).status().failed.empty());
  }
}

TEST_CASE("ask again: a member gets at nobody's numbers but its own, whatever it sends",
          "[ask_again]") {
  Group group{3};
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  const NodeId other = after(leader);
  REQUIRE(group.node(other).propose(incr("count"), asks_again).ok());
  REQUIRE(group.node(leader).add(4, group.address(4)));
  REQUIRE(group.wait_equal(leader));
  HostilePeer peer{4, group.address(4), 77};
  peer.set_peers({{leader, group.address(leader)}});
  REQUIRE(Group::wait_for([&] { return group.node(leader).status().peers[4].is_connected; }));

  const auto error = [&](const std::string& sent) {
    const auto answer = peer.ask(leader, sent);
    REQUIRE(answer);
    return answer->ok() ? ErrorCode::ok : answer->error().code;
  };
  const auto why = [&](const std::string& sent) {
    const auto answer = peer.ask(leader, sent);
    REQUIRE(answer);
    REQUIRE(answer->ok());
    const auto* const refused = std::get_if<NotApplied>(&(*answer)->what);
    REQUIRE(refused != nullptr);
    return refused->why;
  };
  // The lives and sessions of others are not its own to begin or to end, nor within a section.
  CHECK(error(bytes({0}, begins(other, 1))) == ErrorCode::bad_encoding);
  CHECK(error(bytes({0}, {SessionCommand{.node = other}})) == ErrorCode::bad_encoding);
  SectionCommand section;
  section.commands = {incr("count"), begins(other, 1)};
  CHECK(error(bytes({0}, {section})) == ErrorCode::bad_encoding);
  // It has no life yet, and that of another is none of its.
  for (std::uint64_t life = 1; life < 12; ++life) {
    CHECK(why(bytes({life, 1, 0}, incr("count"))) == NotApplied::Why::no_life);
  }
  const auto begun = peer.ask(leader, bytes({0}, begins(4, 1)));
  REQUIRE((begun && begun->ok()));
  const auto life = static_cast<std::uint64_t>(std::get<PlainAnswer>((*begun)->what).number);
  CHECK(why(bytes({life + 1, 1, 0}, incr("count"))) == NotApplied::Why::other_life);
  // Numbers that no node has.
  constexpr std::uint64_t largest = ~std::uint64_t{0};
  for (const auto& each : std::vector<std::vector<std::uint64_t>>{{life, 0, 1},
                                                                  {life, 1, largest},
                                                                  {life, largest, 0},
                                                                  {life, largest, largest},
                                                                  {life, sequence_max, 1}}) {
    CHECK(error(bytes(each, incr("count"))) == ErrorCode::bad_encoding);
  }
  CHECK(error("\xff") == ErrorCode::bad_encoding);
  CHECK(error(std::string(30, '\xff')) == ErrorCode::bad_encoding);
  CHECK(error(bytes({life, 1}, {TimeCommand{}})) == ErrorCode::bad_encoding);
  CHECK(why(bytes({life, 1, answers_window}, incr("count"))) == NotApplied::Why::too_far);
  // It tells of answers that it never waited for: from then on it has only what is behind them.
  const auto last = peer.ask(leader, bytes({life, sequence_max, 0}, incr("its own")));
  REQUIRE((last && last->ok()));
  CHECK(std::get<StoreOutcome>((*last)->what).number == 1);
  CHECK(why(bytes({life, 1, 7}, incr("its own"))) == NotApplied::Why::forgotten);

  // Nobody else has noticed.
  const auto answer = group.node(other).propose(incr("count"), asks_again);
  REQUIRE(answer.ok());
  CHECK(std::get<StoreOutcome>(answer->what).number == 2);
  for (NodeId id = 1; id <= 3; ++id) CHECK(group.node(id).status().failed.empty());
}

}  // namespace semel::tests
