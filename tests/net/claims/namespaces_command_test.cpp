// SEMEL.NAMESPACE and the rights to create namespaces. Words: claims_fixture.hpp.
#include <atomic>
#include <set>
#include <thread>

#include "net/claims/claim_spaces.hpp"
#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using net::Resp;

namespace {

constexpr Resp dialects[] = {Resp::two, Resp::three};

}  // namespace

TEST_CASE("SEMEL.NAMESPACE: other terms are refused, and CHANGE says what it changes",
          "[net][claims][namespaces][attack][fault-15]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    CHECK(a.say("SEMEL.NAMESPACE jobs LEASE 5 ISSUED") == "+OK");
    CHECK(a.say("SEMEL.NAMESPACE jobs ISSUED LEASE 5") == "+OK");
    CHECK(a.say("SEMEL.NAMESPACE jobs LEASE 6") ==
          "-ERR namespace 'jobs' is declared with other terms: lease 5 -> 6, issued yes -> no; it "
          "keeps them: its keys are issued, and what was spent or never issued would be free");
    CHECK(a.say("SEMEL.NAMESPACE DECLARE jobs LEASE 6 issued") ==
          "-ERR namespace 'jobs' is declared with other terms: lease 5 -> 6; to change them: "
          "SEMEL.NAMESPACE CHANGE jobs LEASE 6 issued");
    CHECK(a.say("SEMEL.NAMESPACE CHANGE jobs LEASE 6 ISSUED STRICT") ==
          "lease 5 -> 6, strict no -> yes");
    CHECK(a.say("semel.namespace change jobs LEASE 6 ISSUED STRICT").empty());
    CHECK(a.say("SEMEL.NAMESPACE jobs").starts_with("name jobs, db 0, lease_ms 6,"));
    CHECK(a.say("SEMEL.NAMESPACE CHANGE jobs LEASE 6") ==
          "-ERR namespace 'jobs': its keys are issued, and what was spent or never issued "
          "would be free");
    a.say("SELECT 3");
    CHECK(a.say("SEMEL.NAMESPACE CHANGE jobs LEASE 6 ISSUED STRICT") ==
          "-ERR namespace 'jobs': its claims live in database 0, not 3: they would be "
          "forgotten");
    CHECK(a.say("SEMEL.NAMESPACE CHANGE other LEASE 6") ==
          "-ERR namespace 'other': it is not declared");
    CHECK(a.say("SEMEL.NAMESPACE CHANGE jobs LEASE 0").starts_with("-ERR LEASE must be 1.."));
    CHECK(a.say("SEMEL.NAMESPACE CHANGE") ==
          "-ERR wrong number of arguments for 'semel.namespace' command");
  }
}

TEST_CASE("SEMEL.NAMESPACE: SLIDING-MAX lets duplicates keep what is done, up to it",
          "[net][claims][sliding]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    CHECK(a.say("SEMEL.NAMESPACE jobs AS call RESULT-TTL 1600 SLIDING-MAX 5000") == "+OK");
    CHECK(a.say("SEMEL.CLAIM jobs k").starts_with("outcome granted"));
    CHECK(a.say("SEMEL.COMPLETE jobs k % paid").starts_with("outcome ok"));
    for (int i = 0; i < 3; ++i) {
      f.pass(1600ms);
      CHECK(a.say("SEMEL.CLAIM jobs k").starts_with("outcome replay"));
      CHECK(a.say("SEMEL.GETCLAIM jobs k").starts_with("state done"));
    }
    f.pass(199ms);
    CHECK(a.say("SEMEL.CLAIM jobs k").starts_with("outcome replay"));
    f.pass(1ms);
    CHECK(a.say("SEMEL.CLAIM jobs k").starts_with("outcome granted"));
    CHECK_THAT(a.say("SEMEL.NAMESPACE other RESULT-TTL 1600 SLIDING-MAX 1599"),
               Catch::Contains("sliding_max = 1599, allowed 0, or at least"));
    CHECK(a.say("SEMEL.NAMESPACE other") == "nil");
    CHECK(a.say("SEMEL.NAMESPACE other RESULT-TTL 1600 SLIDING-MAX -1")
              .starts_with("-ERR SLIDING-MAX"));
    CHECK(a.say("SEMEL.NAMESPACE CHANGE jobs AS call RESULT-TTL 1600") == "sliding_max 5000 -> 0");
  }
}

TEST_CASE("SEMEL.NAMESPACE: a word of its own comes before a name", "[net][claims][namespaces]") {
  NodeFixture f;
  Client a{*f.node};
  CHECK(a.say("SEMEL.NAMESPACE DECLARE list LEASE 7") == "+OK");
  CHECK(a.say("SEMEL.NAMESPACE SHOW list").starts_with("name list, db 0, lease_ms 7,"));
  CHECK(a.say("SEMEL.NAMESPACE SHOW nobody") == "nil");
  CHECK(a.say("SEMEL.NAMESPACE LIST") == "[0 | [list]]");
  CHECK(a.say("SEMEL.CLAIM list k").starts_with("outcome granted"));
  CHECK(a.say("SEMEL.NAMESPACE DECLARE plain") == "+OK");
  CHECK(a.say("SEMEL.NAMESPACE SHOW").starts_with("-ERR wrong number"));
  CHECK(a.say("SEMEL.NAMESPACE SHOW list more").starts_with("-ERR wrong number"));
}

TEST_CASE("SEMEL.NAMESPACE DROP: by its rule, and never inside a transaction",
          "[net][claims][namespaces][attack][fault-8]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    Client b{*f.node, dialect};
    CHECK(a.say("SEMEL.NAMESPACE DROP jobs") == "-ERR namespace 'jobs': it is not declared");
    a.say("SEMEL.CLAIM jobs k");
    b.say("SEMEL.CLAIM jobs other");
    const std::string held = "-ERR namespace 'jobs': there is a claim that is held or in doubt";
    CHECK(a.say("SEMEL.NAMESPACE DROP jobs").starts_with(held));
    CHECK(a.say("SEMEL.NAMESPACE DROP jobs FINISHED").starts_with(held));
    CHECK(a.say("SEMEL.COMPLETE jobs k % r") == "outcome ok, late no");
    CHECK(b.say("SEMEL.RELEASE jobs other %") == "outcome ok, late no");
    CHECK(a.say("SEMEL.NAMESPACE DROP jobs")
              .starts_with("-ERR namespace 'jobs': there is a finished claim"));
    CHECK(a.say("SEMEL.NAMESPACE DROP jobs NOW") ==
          "-ERR unknown word 'NOW', allowed are FINISHED, ALL");
    CHECK(a.say("SEMEL.NAMESPACE DROP jobs ALL more").starts_with("-ERR wrong number"));
    a.say("MULTI");
    a.say("SEMEL.NAMESPACE DROP jobs ALL");
    CHECK(a.say("EXEC") ==
          "[-ERR namespace 'jobs': it cannot be dropped inside a transaction or script]");
    CHECK(a.say("SEMEL.NAMESPACE DROP jobs FINISHED") == "1");
    CHECK(a.say("DBSIZE") == "0");
    CHECK(a.say("SEMEL.NAMESPACE jobs") == "nil");
    // A client that used it before meets what is there now, in its present database.
    b.say("SELECT 2");
    CHECK(b.say("SEMEL.CLAIM jobs k").starts_with("outcome granted"));
    CHECK(a.say("SEMEL.CLAIM jobs k") == "-ERR namespace 'jobs': lives in database 2, not 0");
    CHECK(b.say("SEMEL.NAMESPACE DROP jobs ALL") == "1");
    CHECK(a.say("SEMEL.CLAIM jobs k").starts_with("outcome granted"));
  }
}

TEST_CASE("SEMEL.NAMESPACE LIST: pages, and only the names that match",
          "[net][claims][namespaces][attack][fault-8]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    std::set<std::string> wanted;
    for (int i = 0; i < 5'000; ++i) {
      const std::string name = "z" + std::to_string(i);
      REQUIRE(a.say("SEMEL.CLAIM " + name + " k").starts_with("outcome granted"));
      wanted.insert(name);
    }
    CHECK(f.engine->stats().namespaces == 5'000);
    const auto all = [&](const std::string& options) {
      std::set<std::string> names;
      std::string cursor = "0";
      do {
        const std::string bytes = a.raw(words_in("SEMEL.NAMESPACE LIST " + cursor + " " + options));
        std::string_view rest{bytes};
        const RespValue page = read_reply(rest);
        REQUIRE(page.items.size() == 2);
        cursor = page.items[0].text;
        for (const RespValue& name : page.items[1].items) CHECK(names.insert(name.text).second);
      } while (cursor != "0");
      return names;
    };
    CHECK(all("COUNT 777") == wanted);
    CHECK(all("MATCH z499? COUNT 1000").size() == 10);
    CHECK(a.say("SEMEL.NAMESPACE LIST x") == "-ERR cursor must be 0..9223372036854775807, not 'x'");
    CHECK(a.say("SEMEL.NAMESPACE LIST 0 COUNT 65537") ==
          "-ERR COUNT must be 1..65536, not '65537'");
    CHECK(a.say("SEMEL.NAMESPACE LIST 0 COUNT 0") == "-ERR COUNT must be 1..65536, not '0'");
    CHECK(a.say("SEMEL.NAMESPACE LIST 0 COUNT").starts_with("-ERR wrong number"));
    CHECK(a.say("SEMEL.NAMESPACE LIST 0 TYPE string") ==
          "-ERR unknown word 'TYPE', allowed are MATCH, COUNT");
    CHECK(a.say("FLUSHALL") == "+OK");
    CHECK(f.engine->stats().namespaces == 5'000);  // policies stay
    CHECK(a.say("DBSIZE") == "0");
  }
}

TEST_CASE("namespaces: what only looks declares none", "[net][claims][namespaces]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    CHECK(a.say("SEMEL.GETCLAIM z k") == "state absent");
    CHECK(a.say("SEMEL.INFLIGHT z") == "[]");
    CHECK(a.say("SEMEL.COMPLETE z k 1 r") == "outcome unknown");
    CHECK(a.say("SEMEL.FAIL z k 1") == "outcome unknown");
    CHECK(a.say("SEMEL.RENEW z k 1") == "outcome unknown");
    CHECK(a.say("SEMEL.RELEASE z k 1") == "outcome unknown");
    CHECK(a.say("SEMEL.COMPLETES z 1 k 1 r") == "[outcome unknown]");
    CHECK(a.say("SEMEL.FORGET z k") == "0");
    CHECK(a.say("SEMEL.RESOLVE z k RELEASED") == "0");
    CHECK(a.say("SEMEL.ISSUE z k") ==
          "-ERR namespace 'z': no keys are issued in it: declare it ISSUED");
    CHECK(a.say("SEMEL.NAMESPACES") == "[]");
  }
}

TEST_CASE("namespaces: to create one is a right", "[net][claims][namespaces][attack][fault-8]") {
  NodeFixture f;
  Client admin{*f.node};
  admin.say("SEMEL.NAMESPACE orders AS message");
  CHECK(admin.say("ACL SETUSER worker on nopass ~* &* +@all -semel.namespace") == "+OK");
  CHECK(admin.say("ACL SETUSER writer on nopass ~* &* +@all -@admin") == "+OK");
  for (const char* user : {"worker", "writer"}) {
    Client client{*f.node};
    CHECK(client.say(std::string{"AUTH "} + user + " x") == "+OK");
    CHECK(client.say("SEMEL.CLAIM orders " + std::string{user}).starts_with("outcome granted"));
    const std::string refused =
        "-ERR namespace 'z0': it is not declared, and a claim of yours does not declare it";
    for (const char* line : {"SEMEL.CLAIM z0 k", "SEMEL.WAIT 0 z0 k", "SEMEL.CLAIMS z0 KEYS 1 k",
                             "SEMEL.CLAIMALL z0 KEYS 1 k"}) {
      CHECK(client.say(line) == refused);
    }
    CHECK(client.say("SEMEL.NAMESPACE z0 LEASE 5").starts_with("-NOPERM"));
    CHECK(client.say("SEMEL.NAMESPACE DROP orders ALL").starts_with("-NOPERM"));
    client.say("MULTI");
    client.say("SEMEL.CLAIM z0 k");
    CHECK(client.say("EXEC") == "[" + refused + "]");
  }
  CHECK(f.engine->namespaces() == std::vector<std::string>{"orders"});

  // Not even an admin, where the setting says so: namespaces are declared first.
  CHECK(admin.say("CONFIG SET namespace-creation declared") == "+OK");
  CHECK(admin.say("SEMEL.CLAIM z1 k") ==
        "-ERR namespace 'z1': it is not declared, and a claim of yours does not declare it");
  CHECK(admin.say("SEMEL.NAMESPACE z1 LEASE 5") == "+OK");
  CHECK(admin.say("SEMEL.CLAIM z1 k").starts_with("outcome granted"));
  CHECK(admin.say("CONFIG SET namespace-creation any") == "+OK");
  CHECK(admin.say("SEMEL.CLAIM z2 k").starts_with("outcome granted"));
  CHECK(admin.say("CONFIG SET namespace-creation none").starts_with("-ERR"));
}

TEST_CASE("namespaces: a full node says so, and holds what it has",
          "[net][claims][namespaces][attack][fault-8]") {
  NodeFixture f{{.memory_bytes = limits::memory_bytes_min}};
  Client a{*f.node};
  CHECK(a.say("SEMEL.CLAIM first k").starts_with("outcome granted"));
  std::string answer;
  int count = 0;
  for (; count < 100'000; ++count) {
    answer = a.say("SEMEL.NAMESPACE z" + std::to_string(count) + " LEASE 5");
    if (answer != "+OK") break;
  }
  INFO(answer);
  CHECK(count > 1'000);
  CHECK(answer.starts_with("-OOM namespace 'z" + std::to_string(count) + "': "));
  CHECK(a.say("SEMEL.NAMESPACE z" + std::to_string(count)) == "nil");
  CHECK(a.say("SEMEL.COMPLETE first k % r") == "outcome ok, late no");
  for (int i = 0; i < count; i += 2) {
    REQUIRE(a.say("SEMEL.NAMESPACE DROP z" + std::to_string(i)) == "0");
  }
  CHECK(a.say("SEMEL.CLAIM anew k").starts_with("outcome granted"));
}

TEST_CASE("namespaces: the file of release 0.1 is read, and what is there already stays",
          "[net][claims][namespaces]") {
  NodeFixture f;
  REQUIRE(f.engine->claims("known", {.lease = 9ms}));
  const std::string text =
      "payments 3 LEASE 5000 RESULT-TTL 1 UNIQUE-TTL 0 FAILURE-TTL 7 ATTEMPTS-TTL 8 WINDOW 9 "
      "AHEAD 0 RETRY-AFTER-MAX 10 ATTEMPTS-MAX 3 ON-LEASE-END IN-DOUBT ON-FAILURE KEEP STRICT\n"
      "known 0 LEASE 1\n";
  CHECK(net::import_namespaces(*f.engine, text).ok());
  const Policy payments = f.engine->claims("payments")->policy();
  CHECK(payments.db == 3);
  CHECK(payments.lease == 5000ms);
  CHECK(payments.attempts_max == 3);
  CHECK(payments.on_lease_end == Policy::OnLeaseEnd::in_doubt);
  CHECK(payments.strict);
  CHECK(f.engine->claims("known")->policy().lease == 9ms);
  CHECK(net::import_namespaces(*f.engine, "ok 0 LEASE 1\nbroken 99 LEASE 1\n").error().detail ==
        "line 2: expected a name, a database and a policy");
}

TEST_CASE("namespaces: sixteen clients claim in new ones at once, each is created once",
          "[net][claims][namespaces][race][attack][fault-8]") {
  NodeFixture f;
  std::vector<std::thread> threads;
  std::atomic<int> granted{0};
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      Client client{*f.node};
      for (int i = 0; i < 200; ++i) {
        const std::string answer = client.say("SEMEL.CLAIM z" + std::to_string(i) + " k");
        if (!answer.starts_with("outcome granted")) continue;
        granted.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a count
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // mo: relaxed: the threads have ended
  CHECK(granted.load(std::memory_order_relaxed) == 200);
  CHECK(f.engine->stats().namespaces == 200);
}

}  // namespace semel::tests
