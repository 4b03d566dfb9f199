// What could make a service that embeds a node of a group hang, end, or lose what was answered:
// starts that fail, ends in the middle, callbacks that throw, strangers, a child process.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include "semel/engine_host.hpp"
#include "tests/net/group/group_nodes.hpp"
#include "tests/net/server/certificates.hpp"

namespace semel::tests {
namespace {

std::string error_of(const ReplicationOptions& options) {
  const auto opened = GroupNode::open(options);
  return opened.ok() ? std::string{"opened"} : opened.error().message();
}
ErrorCode code_of(const ReplicationOptions& options) {
  const auto opened = GroupNode::open(options);
  return opened.ok() ? ErrorCode::ok : opened.error().code;
}

}  // namespace

TEST_CASE("group node: a start that is refused says why, and leaves nothing",
          "[net][group_node][attack]") {
  GroupNodes nodes{1};
  const ReplicationOptions right = nodes.options(1);
  REQUIRE(GroupNode::found(right));
  CHECK(GroupNode::found(right).error().message().find("already") != std::string::npos);
  ReplicationOptions options = right;
  options.cluster_id = 0;
  CHECK(error_of(options).find("cluster id") != std::string::npos);
  options = right;
  options.node_id = 0;
  CHECK(code_of(options) == ErrorCode::bad_option);
  options = right;
  options.peers.clear();
  CHECK(error_of(options).find("listen") != std::string::npos);
  CHECK(GroupNode::found(options).error().code == ErrorCode::bad_option);
  options = right;
  options.peers[2] = "nowhere:0";
  CHECK(error_of(options).find("nowhere:0") != std::string::npos);
  options = right;
  options.election = Millis{1};
  CHECK(error_of(options).find("election = 1") != std::string::npos);
  options = right;
  options.heartbeat = right.election;
  CHECK(error_of(options).find("heartbeat") != std::string::npos);
  options = right;
  options.patience = Millis{-1};
  CHECK(error_of(options).find("patience = -1") != std::string::npos);
  options = right;
  options.engine.durability = Durability::synced;
  CHECK(error_of(options).find("quorum") != std::string::npos);
  options = right;
  options.engine.shard_count = 3;
  CHECK(code_of(options) == ErrorCode::bad_option);
  options = right;
  options.cluster_id = 77;  // of another group
  CHECK(code_of(options) != ErrorCode::ok);
  options = right;
  options.directory.clear();
  CHECK(code_of(options) == ErrorCode::bad_option);
  options.directory = nodes.path() + "/none/below";
  CHECK(code_of(options) != ErrorCode::ok);
  options.directory = "/dev/null";
  CHECK(code_of(options) != ErrorCode::ok);
  options.directory = std::string(5'000, 'd');
  CHECK(code_of(options) != ErrorCode::ok);
  nodes.open(1);  // none of it has kept the directory or the address
  REQUIRE(nodes.wait_ready());
  CHECK(nodes.redis(1).call({"SET", "k", "v"}).is_ok());
}

TEST_CASE("group node: neither a directory nor an address is shared", "[net][group_node][attack]") {
  GroupNodes nodes{1};
  nodes.open_all();
  ReplicationOptions second = nodes.options(1);
  CHECK(code_of(second) == ErrorCode::storage_in_use);
  // The directory is another one, the address is the same: it fails when all but that is there.
  second.directory = nodes.path() + "/other";
  REQUIRE(GroupNode::found(second));
  CHECK(code_of(second) == ErrorCode::storage_in_use);
  CHECK(nodes.redis(1).call({"SET", "k", "v"}).is_ok());
  nodes.close(1);
  CHECK(code_of(second) == ErrorCode::ok);
}

TEST_CASE("group node: it may end as soon as it has begun, whatever the group is doing",
          "[net][group_node][attack]") {
  GroupNodes nodes{3, Millis{50}};
  for (int round = 0; round < 12; ++round) {
    // Without a majority, in an election, and in one that has a leader.
    for (std::uint64_t id = 1; id <= 3; ++id) {
      nodes.open(id);
      if (round % 3 == 1) static_cast<void>(nodes.redis(id).call({"INCR", "n"}));
    }
    if (round % 3 == 2) {
      REQUIRE(nodes.leader() != 0);
      static_cast<void>(nodes.engine(1).store().incr_by("n", 1));
    }
    for (std::uint64_t id = 1; id <= 3; ++id) nodes.close(id);
  }
  nodes.open_all();
  REQUIRE(Group::wait_for([&] { return nodes.redis(2).call({"SET", "k", "v"}).is_ok(); }));
}

namespace {

/// Calls that no majority answers; each returns whether it has ended with an error.
std::vector<std::function<bool()>> calls_of(GroupNode& node, Claims& claims) {
  const auto command = [&node](std::vector<std::string> words) {
    return [client = std::make_shared<LocalRedis::Client>(node.redis().connect()),
            words = std::move(words)] {
      const std::vector<std::string_view> views{words.begin(), words.end()};
      return client->call(views).is_error();
    };
  };
  return {
      [&] { return claims.claim({.key = "a"}).error != ErrorCode::ok; },
      [&] { return claims.claim_or_wait({.key = "held"}, no_end).error != ErrorCode::ok; },
      [&] { return !node.engine().store().set("a", "b").ok(); },
      [&] { return !node.engine().store().get("a").ok(); },
      [&] { return node.engine().open_session() == 0; },
      command({"SET", "k", "v"}),
      command({"GET", "k"}),
      command({"BLPOP", "q", "0"}),
      command({"SEMEL.WAIT", "3600000", "stops", "held"}),
      command({"SEMEL.CLAIM", "stops", "b", "BIND"}),
      command(
          {"EVAL", "redis.call('SET', KEYS[1], 'x') return redis.call('GET', KEYS[1])", "1", "k"}),
  };
}

}  // namespace

TEST_CASE("group node: stop ends calls and waits of every kind, and refuses later ones",
          "[net][group_node][attack]") {
  GroupNodes nodes{3};
  nodes.open_all();
  const std::uint64_t here = nodes.leader();
  GroupNode& node = nodes.at(here);
  Claims claims = nodes.claims(here, "stops");
  REQUIRE(claims.claim({.key = "held"}).answer == ClaimAnswer::granted);
  LocalRedis::Client parked = node.redis().connect();
  std::promise<ErrorCode> told;
  static_cast<void>(claims.claim_or_wait(
      {.key = "held"}, no_end, [&](ClaimOutcome&& outcome) { told.set_value(outcome.error); }));
  // Confirmed after the wait was: a wait whose enrolment is not confirmed ends as unknown.
  REQUIRE(node.redis().call({"SET", "k", "v"}).is_ok());
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (id != here) nodes.close(id);
  }
  const std::vector<std::function<bool()>> calls = calls_of(node, claims);
  std::atomic<std::size_t> begun{0};
  std::atomic<std::size_t> failed{0};
  std::vector<std::thread> threads;
  for (const auto& each : calls) {
    threads.emplace_back([&] {
      ++begun;
      if (each()) ++failed;
    });
  }
  REQUIRE(Group::wait_for([&] { return begun == calls.size(); }));
  std::thread twice{[&] { node.stop(); }};
  node.stop();
  twice.join();
  for (std::thread& each : threads) each.join();
  CHECK(failed == calls.size());
  CHECK(told.get_future().get() == ErrorCode::closing);

  // Nothing is shown as if it had been confirmed.
  for (const auto& each : calls_of(node, claims)) CHECK(each());
  CHECK(node.engine().store().get("k").error().code == ErrorCode::closing);
  CHECK(claims.claim_or_wait({.key = "held"}, no_end).error == ErrorCode::closing);
  CHECK(parked.call({"PING"}).text == "PONG");
  CHECK(node.group().ready().error().code == ErrorCode::closing);
  node.stop();
}

TEST_CASE("group node: callbacks that throw end nothing", "[net][group_node][attack]") {
  GroupNodes nodes{1};
  ReplicationOptions options = nodes.options(1);
  std::atomic<int> reports{0};
  options.report = [&](const std::string&) {
    ++reports;
    throw std::runtime_error{"report"};
  };
  std::atomic<int> threw{0};
  options.engine.on_callback_exception = [&](Callback, const std::exception_ptr&) { ++threw; };
  nodes.open(options);
  REQUIRE(nodes.wait_ready());
  Claims claims = nodes.claims(1, "throws");
  REQUIRE(claims.claim({.key = "held"}).answer == ClaimAnswer::granted);
  std::atomic<int> called{0};
  static_cast<void>(claims.claim_or_wait({.key = "held"},
                                         deadline_after(nodes.engine(1).clock().now(), Millis{20}),
                                         [&](ClaimOutcome&&) {
                                           ++called;
                                           throw std::runtime_error{"waiter"};
                                         }));
  REQUIRE(Group::wait_for([&] { return threw == 1; }));
  CHECK(called == 1);
  CHECK(reports > 0);
  CHECK(nodes.redis(1).call({"SET", "k", "v"}).is_ok());
  CHECK(nodes.at(1).group().status().failed.empty());
}

TEST_CASE("group node: threads use both faces at once, and each change counts once",
          "[net][group_node][attack]") {
  GroupNodes nodes{3};
  nodes.open_all();
  constexpr int each = 40;
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    threads.emplace_back([&failed, client = nodes.redis(id).connect()]() mutable {
      for (int i = 0; i < each; ++i) {
        if (client.call({"INCR", "n"}).type != Reply::Type::integer) ++failed;
      }
    });
    threads.emplace_back([&failed, &engine = nodes.engine(id)] {
      for (int i = 0; i < each; ++i) {
        if (!engine.store().incr_by("n", 1).ok()) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  CHECK(nodes.redis(2).call({"GET", "n"}).text == std::to_string(each * 6));
}

TEST_CASE("group node: a full group refuses by both faces, and takes back what is freed",
          "[net][group_node][attack]") {
  GroupNodes nodes{1};
  nodes.open_all();
  Claims claims = nodes.claims(1, "full");
  const Reply stored = nodes.redis(1).call({"SEMEL.DEBOUNCE", "full", "doc", "text", "QUIET", "1"});
  REQUIRE(field(stored, "outcome") == "stored");
  Reply run;
  REQUIRE(Group::wait_for([&] {
    run = nodes.redis(1).call({"SEMEL.DEBOUNCERUN", "full", "doc", "LEASE", "600000"});
    return field(run, "outcome") == "granted";
  }));
  const std::string value(500'000, 'v');
  Reply refused;
  int count = 0;
  for (; count < 1'000 && !refused.is_error(); ++count) {
    refused = nodes.redis(1).call({"SET", "k" + std::to_string(count), value});
  }
  INFO(to_text(refused));
  CHECK(refused.text.starts_with("OOM"));
  CHECK(nodes.engine(1).store().set("more", value).error().code == ErrorCode::memory_full);
  CHECK(claims.claim({.key = "a"}).error == ErrorCode::memory_full);
  const Reply ended =
      nodes.redis(1).call({"SEMEL.DEBOUNCEEND", "full", "doc", field(run, "epoch")});
  INFO(to_text(ended));
  CHECK(field(ended, "outcome") == "ok");
  for (int i = 0; i < count; ++i) {
    CHECK_FALSE(nodes.redis(1).call({"DEL", "k" + std::to_string(i)}).is_error());
  }
  CHECK(Group::wait_for([&] { return nodes.redis(1).call({"SET", "more", value}).is_ok(); }));
  CHECK(nodes.at(1).group().status().failed.empty());
}

TEST_CASE("group node: in a child process every call ends, and the parent's node goes on",
          "[net][group_node][attack]") {
  GroupNodes nodes{3};
  nodes.open_all();
  GroupNode& node = nodes.at(nodes.leader());
  auto client = std::make_unique<LocalRedis::Client>(node.redis().connect());
  REQUIRE(client->call({"SET", "k", "v"}).is_ok());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);
    bool is_refused = node.engine().store().get("k").error().code == ErrorCode::forked;
    is_refused = is_refused && client->call({"GET", "k"}).is_error();
    const std::vector<std::vector<std::string>> two = {{"GET", "k"}, {"PING"}};
    is_refused = is_refused && client->pipeline(two).size() == 2;
    is_refused = is_refused && client->talk("PING\r\n").starts_with("-ERR");
    is_refused = is_refused && client->pushed().empty();
    is_refused = is_refused && node.redis().call({"PING"}).is_error();
    is_refused = is_refused && node.redis().connect().call({"PING"}).is_error();
    is_refused = is_refused && node.group().ready().error().code == ErrorCode::forked;
    node.stop();
    client.reset();
    for (std::uint64_t id = 1; id <= 3; ++id) nodes.close(id);
    _exit(is_refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(client->call({"GET", "k"}).text == "v");
}

TEST_CASE("group node: one of another group, or without the group's authority, is not let in",
          "[net][group_node][attack]") {
  GroupNodes nodes{3, Millis{300}};
  const Identity authority{"group"};
  const Identity other{"other"};
  authority.save(nodes.path() + "/authority");
  const auto tls_of = [&](std::uint64_t id, const Identity& by) {
    const std::string path = nodes.path() + "/member" + std::to_string(id);
    Identity{"node", &by, "semel://000000000005e3e1/" + std::to_string(id)}.save(path);
    return ReplicationTls{path + ".crt", path + ".key", nodes.path() + "/authority.crt"};
  };
  ReplicationOptions stranger = nodes.options(3);
  SECTION("another cluster") {
    nodes.open(1);
    nodes.open(2);
    stranger.cluster_id = 77;
  }
  SECTION("another authority") {
    for (std::uint64_t id = 1; id <= 2; ++id) {
      ReplicationOptions options = nodes.options(id);
      options.tls = tls_of(id, authority);
      nodes.open(options);
    }
    stranger.tls = tls_of(3, other);
  }
  SECTION("no certificate") {
    for (std::uint64_t id = 1; id <= 2; ++id) {
      ReplicationOptions options = nodes.options(id);
      options.tls = tls_of(id, authority);
      nodes.open(options);
    }
  }
  nodes.open(stranger);
  Reply set;
  REQUIRE(Group::wait_for([&] {
    set = nodes.redis(1).call({"SET", "k", "v"});
    return set.is_ok();
  }));
  INFO(nodes.said());
  const ReplicationStatus status = nodes.at(3).group().status();
  CHECK(status.applied <= 1);  // the members that it was founded with
  CHECK(status.leader == 0);
  CHECK(nodes.redis(3).call({"SET", "k", "w"}).text.starts_with("CLUSTERDOWN"));
  CHECK(nodes.claims(1, "orders").claim({.key = "a"}).answer == ClaimAnswer::granted);
  CHECK(nodes.engine(3).claims("orders", Policy{}).error().code == ErrorCode::not_leader);
}

TEST_CASE("group node: a group that uses what a later release knows is refused with both levels",
          "[net][group_node][attack]") {
  GroupNodes nodes{1};
  const ReplicationOptions options = nodes.options(1);
  replication::ReplicaOptions later;
  later.cluster_id = options.cluster_id;
  later.node_id = options.node_id;
  later.directory = options.directory;
  later.listen = later.address = options.peers.at(1);
  later.founders = options.peers;
  later.founds = true;
  later.election = options.election;
  later.heartbeat = options.heartbeat;
  later.level = replication::feature_level_newest + 1;
  {
    auto replica = replication::Replica::open(later);
    REQUIRE(replica.ok());
    REQUIRE((*replica)->start());
    REQUIRE(Group::wait_for(
        [&] { return (*replica)->upgrade() && (*replica)->status().level == later.level; }));
  }
  const auto opened = GroupNode::open(options);
  // By the snapshot it is refused, by the log it stops: there it has to be applied first.
  std::string why = opened.ok() ? std::string{} : opened.error().message();
  if (opened.ok()) {
    REQUIRE(Group::wait_for([&] {
      why = (*opened)->group().status().failed;
      return !why.empty();
    }));
    CHECK((*opened)->redis().call({"SET", "k", "v"}).is_error());
    CHECK((*opened)->engine().store().set("k", "v").error().code == ErrorCode::closing);
    CHECK((*opened)->group().ready().error().code == ErrorCode::closing);
  }
  INFO(why);
  CHECK(why.find("feature level " + std::to_string(later.level)) != std::string::npos);
  CHECK(why.find("later release") != std::string::npos);
}

}  // namespace semel::tests
