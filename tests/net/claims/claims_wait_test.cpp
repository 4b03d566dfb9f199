// Claims that wait and claims that are bound, and what becomes of both when a connection ends.
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using net::Resp;

namespace {

const std::string granted = "outcome granted, epoch E, attempt 1, takeover no";

}  // namespace

TEST_CASE("SEMEL.WAIT: a free key is granted and a finished one replayed at once",
          "[net][claims][wait]") {
  for (const Resp dialect : {Resp::two, Resp::three}) {
    NodeFixture f;
    Client a{*f.node, dialect};
    CHECK(a.say("SEMEL.WAIT 1000 jobs k LEASE 500 OWNER w") == granted);
    a.say("SEMEL.COMPLETE jobs k % r");
    CHECK(a.say("SEMEL.WAIT 1000 jobs k") ==
          "outcome replay, attempt 1, result_expired no, result r");
    CHECK_FALSE(a.waits());
  }
}

TEST_CASE("SEMEL.WAIT: all get the completion, one gets what was given back",
          "[net][claims][wait]") {
  for (const Resp dialect : {Resp::two, Resp::three}) {
    NodeFixture f;
    Client owner{*f.node, dialect};
    Client b{*f.node, dialect};
    Client c{*f.node, dialect};
    owner.say("SEMEL.CLAIM jobs k");
    CHECK(b.say("SEMEL.WAIT 0 jobs k OWNER b") == "(waits)");
    CHECK(c.say("SEMEL.WAIT 0 jobs k") == "(waits)");
    CHECK(c.say("PING") == "(waits)");  // is kept for later
    owner.say("SEMEL.FAIL jobs k % why RELEASE");
    CHECK(b.hear() == granted);  // in order of arrival
    CHECK(c.hear() == "(waits)");
    CHECK(b.say("SEMEL.COMPLETE jobs k % r") == "outcome ok, late no");
    CHECK(c.hear() == "outcome replay, attempt 1, result_expired no, result r || +PONG");
    CHECK_FALSE(c.waits());
  }
}

TEST_CASE("SEMEL.WAIT: ends with the lease, a kept failure, an operator's word, a string",
          "[net][claims][wait]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  a.say("SEMEL.CLAIM jobs k LEASE 1000");
  CHECK(b.say("SEMEL.WAIT 5000 jobs k") == "(waits)");
  f.pass(999ms);
  CHECK(b.hear() == "(waits)");
  f.pass(1ms);
  CHECK(b.hear() == "outcome granted, epoch E, attempt 2, takeover yes");

  CHECK(a.say("SEMEL.WAIT 5000 jobs k") == "(waits)");
  b.say("SEMEL.FAIL jobs k % why KEEP");
  CHECK(a.hear() == "outcome kept_failure, attempt 2, poison no, failure why");

  a.say("SEMEL.CLAIM jobs other");
  CHECK(b.say("SEMEL.WAIT 5000 jobs other FINGERPRINT " + std::string(32, '0')) == "(waits)");
  a.say("SEMEL.RESOLVE jobs other DONE found");
  CHECK(b.hear() == "outcome replay, attempt 1, result_expired no, result found");

  a.say("SEMEL.CLAIM jobs third");
  CHECK(b.say("SEMEL.WAIT 5000 jobs third") == "(waits)");
  a.say("MULTI");
  a.say("DEL jobs:third");
  a.say("SET jobs:third x");
  a.say("EXEC");
  CHECK(b.hear() == "-WRONGTYPE the key holds something else than a claim");
}

TEST_CASE("SEMEL.WAIT: at the deadline it is in flight still", "[net][claims][wait]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  a.say("SEMEL.CLAIM jobs k LEASE 9000 OWNER w");
  CHECK(b.say("SEMEL.WAIT 500 jobs k") == "(waits)");
  f.pass(499ms);
  CHECK(b.hear() == "(waits)");
  f.pass(1ms);
  CHECK(b.hear() ==
        "outcome in_flight, remaining_ms 8500, retry_after_ms 1000, attempt 1, owner w");
  CHECK(b.say("PING") == "+PONG");
}

TEST_CASE("SEMEL.WAIT: waiters_per_key_max wait for one key, one more is refused at once",
          "[net][claims][wait][limits]") {
  NodeFixture f;
  Client a{*f.node};
  a.say("SEMEL.CLAIM jobs k");
  std::vector<std::unique_ptr<Client>> waiters;
  for (std::size_t i = 0; i < limits::waiters_per_key_max; ++i) {
    waiters.push_back(std::make_unique<Client>(*f.node));
    REQUIRE(waiters.back()->say("SEMEL.WAIT 0 jobs k") == "(waits)");
  }
  Client late{*f.node};
  // Through the handle, as all that comes once a wait has begun.
  CHECK(late.say("SEMEL.WAIT 0 jobs k") == "(waits)");
  CHECK(late.hear() == "outcome busy, reason waiters_full");
  a.say("SEMEL.COMPLETE jobs k %");
  for (const auto& waiter : waiters) {
    REQUIRE(waiter->hear() == "outcome replay, attempt 1, result_expired no, result ");
  }
}

TEST_CASE("SEMEL.WAIT: a claim whose waiter has left goes to the next", "[net][claims][wait]") {
  NodeFixture f;
  Client a{*f.node};
  Client gone{*f.node};
  Client next{*f.node};
  a.say("SEMEL.CLAIM jobs k");
  CHECK(gone.say("SEMEL.WAIT 0 jobs k OWNER gone") == "(waits)");
  CHECK(next.say("SEMEL.WAIT 0 jobs k OWNER next") == "(waits)");
  SECTION("the connection had ended before") {
    gone.disconnect();
    CHECK(a.say("SEMEL.RELEASE jobs k %") == "outcome ok, late no");
  }
  SECTION("the connection ends before it has read the reply") {
    CHECK(a.say("SEMEL.RELEASE jobs k %") == "outcome ok, late no");
    CHECK(next.hear() == "(waits)");
    gone.disconnect();
  }
  SECTION("the connection was to be closed before it has read the reply") {
    CHECK(a.say("SEMEL.RELEASE jobs k %") == "outcome ok, late no");
    gone.handle().kill();
    CHECK(gone.hear() == "(waits)");
    CHECK(next.hear() == "(waits)");
    gone.disconnect();
  }
  SECTION("the wait had been ended by another client") {
    gone.handle().reply(1, "+UNBLOCKED\r\n");
    CHECK(gone.hear() == "+UNBLOCKED");
    CHECK(a.say("SEMEL.RELEASE jobs k %") == "outcome ok, late no");
  }
  CHECK(next.hear() == granted);
  CHECK(next.say("SEMEL.COMPLETE jobs k %") == "outcome ok, late no");
}

TEST_CASE("SEMEL.WAIT: a client that disconnects while it waits leaves the line",
          "[net][claims][wait]") {
  const std::string id = " CLAIM-ID " + std::string(32, '7');
  const std::string named = GENERATE_COPY(std::string{}, id);
  NodeFixture f;
  Client a{*f.node};
  Client gone{*f.node};
  Client next{*f.node};
  a.say("SEMEL.CLAIM jobs k");
  CHECK(gone.say("SEMEL.WAIT 0 jobs k OWNER gone" + named) == "(waits)");
  CHECK(next.say("SEMEL.WAIT 0 jobs k OWNER next") == "(waits)");
  CHECK(f.engine->stats().waiters == 2);
  SECTION("its connection ends") {
    gone.disconnect();
  }
  SECTION("CLIENT UNBLOCK") {
    CHECK(gone.handle().unblock(true));
  }
  SECTION("the node ends all waits") {
    CHECK(gone.handle().end_wait("-ENDS\r\n"));
  }
  CHECK(f.engine->stats().waiters == 1);
  CHECK(a.say("SEMEL.RELEASE jobs k %") == "outcome ok, late no");
  CHECK(next.hear() == granted);
}

TEST_CASE("SEMEL.WAIT: a grant with a claim id is kept for a repeated request",
          "[net][claims][wait]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  const std::string id = "CLAIM-ID " + std::string(32, '7');
  a.say("SEMEL.CLAIM jobs k");
  CHECK(b.say("SEMEL.WAIT 0 jobs k LEASE 1000 " + id) == "(waits)");
  a.say("SEMEL.RELEASE jobs k %");
  b.disconnect();  // before it has read the reply
  b.connect();
  CHECK(b.say("SEMEL.WAIT 0 jobs k " + id) ==
        "outcome regranted, epoch E, attempt 1, remaining_ms 1000");
}

TEST_CASE("SEMEL.WAIT: a client that returns with its claim id waits once", "[net][claims][wait]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  const std::string wait = "SEMEL.WAIT 0 jobs k CLAIM-ID " + std::string(32, '7');
  a.say("SEMEL.CLAIM jobs k");
  CHECK(b.say(wait) == "(waits)");
  b.disconnect();
  b.connect();
  CHECK(b.say(wait) == "(waits)");
  CHECK(f.engine->stats().waiters == 1);
  a.say("SEMEL.RELEASE jobs k %");
  CHECK(b.hear() == granted);
}

TEST_CASE("SEMEL.WAIT: a reply that was read is not given back", "[net][claims][wait]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  a.say("SEMEL.CLAIM jobs k");
  CHECK(b.say("SEMEL.WAIT 0 jobs k OWNER b") == "(waits)");
  a.say("SEMEL.RELEASE jobs k %");
  CHECK(b.hear() == granted);
  b.disconnect();
  CHECK(a.say("SEMEL.CLAIM jobs k").starts_with("outcome in_flight"));
}

TEST_CASE("SEMEL.CLAIM BIND: the claim is free when its connection ends", "[net][claims][bind]") {
  for (const Resp dialect : {Resp::two, Resp::three}) {
    NodeFixture f;
    Client a{*f.node, dialect};
    Client b{*f.node, dialect};
    a.say("SEMEL.NAMESPACE doubt ON-LEASE-END IN-DOUBT");
    a.say("SEMEL.CLAIM jobs bound BIND");
    a.say("SEMEL.CLAIM jobs free");
    a.say("SEMEL.CLAIMS jobs BIND KEYS 1 many");
    a.say("SEMEL.CLAIM doubt bound BIND OWNER a");
    CHECK(b.say("SEMEL.CLAIM jobs bound").starts_with("outcome in_flight"));
    a.disconnect();
    CHECK(b.say("SEMEL.CLAIM jobs bound") == "outcome granted, epoch E, attempt 2, takeover yes");
    CHECK(b.say("SEMEL.CLAIM jobs many") == "outcome granted, epoch E, attempt 2, takeover yes");
    CHECK(b.say("SEMEL.CLAIM jobs free").starts_with("outcome in_flight"));
    CHECK(b.say("SEMEL.CLAIM doubt bound") == "outcome in_doubt, attempt 1, owner a");
    CHECK(b.say("SEMEL.INFLIGHT doubt") ==
          "[key bound, state in_doubt, epoch E, attempts 1, lease_remaining_ms 0, owner a]");
    // A connection that comes back is another one.
    a.connect();
    CHECK(a.say("SEMEL.CLAIM jobs bound").starts_with("outcome in_flight"));
  }
}

TEST_CASE("SEMEL.WAIT: a waiter gets a bound claim when its connection ends",
          "[net][claims][wait][bind]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  Client c{*f.node};
  a.say("SEMEL.CLAIM jobs k BIND");
  CHECK(b.say("SEMEL.WAIT 0 jobs k BIND") == "(waits)");
  a.disconnect();
  CHECK(b.hear() == "outcome granted, epoch E, attempt 2, takeover yes");
  CHECK(c.say("SEMEL.WAIT 0 jobs k") == "(waits)");
  b.disconnect();  // what it waited for is bound as well
  CHECK(c.hear() == "outcome granted, epoch E, attempt 3, takeover yes");
}

TEST_CASE("SEMEL.WAIT: does not wait for a reply that is not wanted", "[net][claims][wait]") {
  NodeFixture f;
  Client a{*f.node};
  a.say("SEMEL.CLAIM jobs k");
  net::Batch batch;
  net::ClientState state;
  state.handle = std::make_shared<net::ClientHandle>(net::ClientHandle::Origin{.id = 5}, nullptr);
  state.user = f.node->acl.open_session();
  state.replies = net::Replies::off;
  std::string out;
  net::RespWriter reply{out, Resp::three};
  const std::array<std::string_view, 4> words{"SEMEL.WAIT", "0", "jobs", "k"};
  net::Call call{f.node->services(), *f.engine, state, words, reply};
  net::dispatch(call);
  CHECK_FALSE(state.waits);
  CHECK(out.starts_with("%5\r\n"));
}

namespace {

/// One of two threads that claim, wait, finish and leave as they like.
class Worker {
 public:
  static constexpr int rounds = 3'000;
  static constexpr std::size_t key_count = 3;
  struct Key {
    std::atomic<int> owners{0};
    std::atomic<int> name{0};  ///< another one when the work is done
  };
  using Keys = std::array<Key, key_count>;
  [[nodiscard]] static std::string name_of(const Keys& keys, std::size_t at) {
    // mo: relaxed: an old name is a work that is done.
    const int name = keys[at].name.load(std::memory_order_relaxed);
    return "k" + std::to_string(at) + "." + std::to_string(name);
  }

  Worker(net::Node& node, Keys& keys, std::uint64_t seed, Resp dialect)
      : keys_(keys), random_(seed), client_(node, dialect) {}

  void work() {
    for (int i = 0; i < rounds; ++i) round(random_() % key_count);
  }
  int granted = 0;
  int wrong = 0;

 private:
  void round(std::size_t at) {
    const std::string key = " jobs " + name_of(keys_, at) + " ";
    const bool binds = random_() % 2 == 0;
    const bool leaves = random_() % 8 == 0;
    const std::string ask = random_() % 2 == 0 ? "SEMEL.WAIT 0" : "SEMEL.CLAIM";
    std::string line = client_.say(ask + key + (binds ? "BIND" : ""));
    if (line == "(waits)" && leaves) return come_back();
    if (line == "(waits)") line = client_.hear_when_woken();
    if (line.starts_with("outcome granted")) return own(at, key, binds);
    if (!line.starts_with("outcome replay") && !line.starts_with("outcome in_flight")) ++wrong;
  }
  void own(std::size_t at, const std::string& key, bool bound) {
    ++granted;
    // mo: relaxed: one variable's own order will do; the claims order the rest, or are wrong.
    if (keys_[at].owners.fetch_add(1, std::memory_order_relaxed) != 0) ++wrong;
    keys_[at].owners.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: as above
    if (random_() % 4 == 0) {                                  // leaves with the claim
      if (!bound) client_.say("SEMEL.RESOLVE" + key + "RELEASED");
      return come_back();
    }
    const std::array<std::string, 3> ends{"SEMEL.COMPLETE", "SEMEL.FAIL", "SEMEL.RELEASE"};
    const std::size_t end = random_() % ends.size();
    if (client_.say(ends[end] + key + "%") != "outcome ok, late no") ++wrong;
    // mo: relaxed: as in name_of().
    if (end == 0) keys_[at].name.fetch_add(1, std::memory_order_relaxed);
  }
  void come_back() {
    client_.disconnect();
    client_.connect();
  }

  Keys& keys_;
  std::mt19937_64 random_;
  Client client_;
};

}  // namespace

TEST_CASE("SEMEL: two connections at once never own the same, and nothing is lost",
          "[net][claims][wait][race]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  NodeFixture f;
  Worker::Keys keys{};
  {
    Worker one{*f.node, keys, seed, Resp::two};
    Worker two{*f.node, keys, seed + 1, Resp::three};
    std::thread other{[&two] { two.work(); }};
    one.work();
    other.join();
    CHECK(one.wrong == 0);
    CHECK(two.wrong == 0);
    CHECK(one.granted > Worker::rounds / 8);
    CHECK(two.granted > Worker::rounds / 8);
  }
  Client last{*f.node};
  CHECK(f.engine->stats().waiters == 0);
  for (std::size_t at = 0; at < Worker::key_count; ++at) {
    // Perhaps over an owner that left with it.
    CHECK(last.say("SEMEL.CLAIM jobs " + Worker::name_of(keys, at)).starts_with("outcome granted"));
  }
}

}  // namespace semel::tests
