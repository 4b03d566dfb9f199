// The SEMEL commands, each with each of its outcomes, in both dialects. Words: claims_fixture.hpp.
#include <set>

#include "semel/policies.hpp"
#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using net::Resp;

namespace {

/// The same client in either dialect; all replies must be the same.
constexpr Resp dialects[] = {Resp::two, Resp::three};

const std::string hex_a(32, 'a');
const std::string hex_b(32, 'b');

}  // namespace

TEST_CASE("SEMEL.CLAIM: the reply is a map in RESP3 and its pairs in RESP2, byte for byte",
          "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client client{*f.node, dialect};
    const std::string reply = client.raw({"SEMEL.CLAIM", "jobs", "k"});
    std::string_view rest{reply};
    std::string line;
    CHECK(reply_line(read_reply(rest), client.epoch) ==
          "outcome granted, epoch E, attempt 1, takeover no");
    const std::string epoch = client.epoch;
    const std::string three = "%4\r\n$7\r\noutcome\r\n$7\r\ngranted\r\n$5\r\nepoch\r\n:" + epoch +
                              "\r\n$7\r\nattempt\r\n:1\r\n$8\r\ntakeover\r\n#f\r\n";
    const std::string two = "*8\r\n$7\r\noutcome\r\n$7\r\ngranted\r\n$5\r\nepoch\r\n$" +
                            std::to_string(epoch.size()) + "\r\n" + epoch +
                            "\r\n$7\r\nattempt\r\n$1\r\n1\r\n$8\r\ntakeover\r\n$1\r\n0\r\n";
    CHECK(reply == (dialect == Resp::two ? two : three));
    CHECK(client.raw({"semel.complete", "jobs", "k", epoch, "r"}) ==
          (dialect == Resp::two ? "*4\r\n$7\r\noutcome\r\n$2\r\nok\r\n$4\r\nlate\r\n$1\r\n0\r\n"
                                : "%2\r\n$7\r\noutcome\r\n$2\r\nok\r\n$4\r\nlate\r\n#f\r\n"));
  }
}

TEST_CASE("SEMEL.CLAIM: granted, in flight, taken over", "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    Client b{*f.node, dialect};
    CHECK(a.say("SEMEL.CLAIM jobs k LEASE 5000 OWNER worker-1") ==
          "outcome granted, epoch E, attempt 1, takeover no");
    f.pass(1'000ms);
    CHECK(b.say("SEMEL.CLAIM jobs k") ==
          "outcome in_flight, remaining_ms 4000, retry_after_ms 1000, attempt 1, owner worker-1");
    f.pass(3'999ms);
    CHECK(b.say("SEMEL.CLAIM jobs k") ==
          "outcome in_flight, remaining_ms 1, retry_after_ms 1, attempt 1, owner worker-1");
    f.pass(1ms);
    CHECK(b.say("SEMEL.CLAIM jobs k") == "outcome granted, epoch E, attempt 2, takeover yes");
    CHECK(b.epoch != a.epoch);
    CHECK(a.say("SEMEL.COMPLETE jobs k % late") == "outcome stale_owner");
  }
}

TEST_CASE("SEMEL.CLAIM: a repeat gets the result, and later only that it was done",
          "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    CHECK(a.say("SEMEL.NAMESPACE jobs RESULT-TTL 1000 UNIQUE-TTL 5000") == "+OK");
    a.say("SEMEL.CLAIM jobs k");
    CHECK(a.say("SEMEL.COMPLETE jobs k % 'two words'") == "outcome ok, late no");
    CHECK(a.say("SEMEL.COMPLETE jobs k % 'two words'") == "outcome ok, late no");  // retried
    CHECK(a.say("SEMEL.COMPLETE jobs k % other") == "outcome conflict");
    CHECK(a.say("SEMEL.CLAIM jobs k") ==
          "outcome replay, attempt 1, result_expired no, result two words");
    f.pass(1'000ms);
    CHECK(a.say("SEMEL.CLAIM jobs k") ==
          "outcome replay, attempt 1, result_expired yes, result nil");
    f.pass(4'000ms);
    CHECK(a.say("SEMEL.CLAIM jobs k") == "outcome granted, epoch E, attempt 1, takeover no");
    CHECK(a.say("SEMEL.COMPLETE jobs k %") == "outcome ok, late no");
    CHECK(a.say("SEMEL.CLAIM jobs k") == "outcome replay, attempt 1, result_expired no, result ");
  }
}

TEST_CASE("SEMEL.CLAIM: the same claim id is granted the same epoch again", "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    a.say("SEMEL.CLAIM jobs k LEASE 5000 CLAIM-ID 0123456789abcdef0123456789ABCDEF");
    const std::string epoch = a.epoch;
    f.pass(1'000ms);
    CHECK(a.say("SEMEL.CLAIM jobs k CLAIM-ID 01234567-89ab-cdef-0123-456789abcdef") ==
          "outcome regranted, epoch E, attempt 1, remaining_ms 4000");
    CHECK(a.epoch == epoch);
    CHECK(a.say("SEMEL.CLAIM jobs k CLAIM-ID " + hex_a).starts_with("outcome in_flight"));
  }
}

TEST_CASE("SEMEL.CLAIM: another fingerprint of the same algorithm is a mismatch", "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    a.say("SEMEL.CLAIM jobs k FINGERPRINT " + hex_a);
    CHECK(a.say("SEMEL.CLAIM jobs k FINGERPRINT " + hex_b) == "outcome mismatch");
    CHECK(a.say("SEMEL.CLAIM jobs k FINGERPRINT " + hex_a).starts_with("outcome in_flight"));
    CHECK(a.say("SEMEL.CLAIM jobs k ALGORITHM 2 FINGERPRINT " + hex_b)
              .starts_with("outcome in_flight"));
    CHECK(a.say("SEMEL.CLAIM jobs k FINGERPRINT " + hex_b + " ALGORITHM 1") == "outcome mismatch");
    CHECK(a.say("SEMEL.CLAIM jobs k ALGORITHM 2") == "-ERR ALGORITHM needs a FINGERPRINT");
  }
}

TEST_CASE("SEMEL.CLAIM: kept failure, poison, doubt, too old", "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    a.say("SEMEL.NAMESPACE doubt ON-LEASE-END IN-DOUBT LEASE 1000");
    a.say("SEMEL.NAMESPACE few ATTEMPTS-MAX 1 ON-FAILURE RELEASE");
    a.say("SEMEL.NAMESPACE window WINDOW 60000");

    a.say("SEMEL.CLAIM jobs k");
    CHECK(a.say("SEMEL.FAIL jobs k % 'no such card' KEEP") == "outcome ok, late no");
    CHECK(a.say("SEMEL.CLAIM jobs k") ==
          "outcome kept_failure, attempt 1, poison no, failure no such card");

    a.say("SEMEL.CLAIM few k");
    a.say("SEMEL.FAIL few k %");
    CHECK(a.say("SEMEL.CLAIM few k") == "outcome kept_failure, attempt 1, poison yes, failure ");

    a.say("SEMEL.CLAIM doubt k OWNER w1");
    f.pass(1'000ms);
    CHECK(a.say("SEMEL.CLAIM doubt k") == "outcome in_doubt, attempt 1, owner w1");

    const std::int64_t now = f.clock.unix_ms();
    CHECK(a.say("SEMEL.CLAIM window k FIRST-SENT " + std::to_string(now - 60'000)) ==
          "outcome too_old, window_start_ms " + std::to_string(now - 60'000));
    CHECK(a.say("SEMEL.CLAIM window k FIRST-SENT " + std::to_string(now - 59'999))
              .starts_with("outcome granted"));
  }
}

TEST_CASE("SEMEL.CLAIM: a full memory is busy, or unprotected where the namespace fails open",
          "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f{{.memory_bytes = limits::memory_bytes_min, .shard_count = 1}};
    Client a{*f.node, dialect};
    a.say("SEMEL.NAMESPACE open FAIL-OPEN");
    const std::string owner(64, 'o');
    std::string line;
    for (int i = 0; i < 100'000 && !line.starts_with("outcome busy"); ++i) {
      line = a.say("SEMEL.CLAIM jobs k" + std::to_string(i) + " OWNER " + owner);
    }
    CHECK(line == "outcome busy, reason memory_full");
    CHECK(a.say("SEMEL.CLAIM open one-more") == "outcome unprotected");
    for (int i = 0; i < 100'000 && !line.starts_with("outcome not_granted"); ++i) {
      line = a.say("SEMEL.CLAIMALL open KEYS 1 m" + std::to_string(i));
    }
    CHECK(line == "outcome not_granted, claims [outcome unprotected]");
  }
}

TEST_CASE("SEMEL owner calls: each answer", "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    Client b{*f.node, dialect};
    a.say("SEMEL.NAMESPACE strict STRICT LEASE 1000");
    a.say("SEMEL.CLAIM jobs k LEASE 1000");
    CHECK(a.say("SEMEL.RENEW jobs k % LEASE 3000") == "outcome ok, late no");
    f.pass(2'999ms);
    CHECK(a.say("SEMEL.RENEW jobs k %") == "outcome ok, late no");
    f.pass(60'000ms);
    CHECK(a.say("SEMEL.RENEW jobs k %") == "outcome refused");
    CHECK(a.say("SEMEL.COMPLETE jobs k % done") == "outcome ok, late yes");
    CHECK(a.say("SEMEL.RENEW jobs k %") == "outcome conflict");
    CHECK(a.say("SEMEL.FAIL jobs k %") == "outcome conflict");
    CHECK(a.say("SEMEL.RELEASE jobs k %") == "outcome not_owner");
    CHECK(a.say("SEMEL.COMPLETE jobs nothing %") == "outcome unknown");

    b.say("SEMEL.CLAIM strict k");
    f.pass(1'000ms);
    CHECK(b.say("SEMEL.COMPLETE strict k %") == "outcome refused");
    a.say("SEMEL.CLAIM strict k");
    CHECK(a.say("SEMEL.COMPLETE strict k % 'of the newer'") == "outcome ok, late no");
    CHECK(b.say("SEMEL.COMPLETE strict k %") == "outcome stale_owner, result of the newer");
    CHECK(b.say("SEMEL.FAIL strict k %") == "outcome stale_owner");
    CHECK(b.say("SEMEL.RELEASE strict k %") == "outcome not_owner");

    a.say("SEMEL.CLAIM jobs free");
    CHECK(a.say("SEMEL.RELEASE jobs free %") == "outcome ok, late no");
    CHECK(a.say("SEMEL.CLAIM jobs free").starts_with("outcome granted"));
  }
}

TEST_CASE("SEMEL.FAIL: the word behind the epoch is a failure unless it says what to do",
          "[net][claims]") {
  NodeFixture f;
  Client a{*f.node};
  const auto after = [&](std::string_view fail) {
    a.say("SEMEL.FORGET jobs k");
    a.say("SEMEL.CLAIM jobs k");
    CHECK(a.say(fail) == "outcome ok, late no");
    return a.say("SEMEL.CLAIM jobs k");
  };
  const std::string granted = "outcome granted, epoch E, attempt 1, takeover no";
  CHECK(after("SEMEL.FAIL jobs k %") == granted);
  CHECK(after("SEMEL.FAIL jobs k % why") == granted);
  CHECK(after("SEMEL.FAIL jobs k % keep") ==
        "outcome kept_failure, attempt 1, poison no, failure ");
  CHECK(after("SEMEL.FAIL jobs k % keep KEEP") ==
        "outcome kept_failure, attempt 1, poison no, failure keep");
  CHECK(after("SEMEL.FAIL jobs k % why RELEASE") == granted);
  CHECK(a.say("SEMEL.FAIL jobs k % why SOMEHOW") ==
        "-ERR unknown word 'SOMEHOW', allowed are KEEP, RELEASE, IN-DOUBT");
}

TEST_CASE("SEMEL.GETCLAIM: each state as a view", "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    a.say("SEMEL.NAMESPACE jobs LEASE 1000 RESULT-TTL 2000 UNIQUE-TTL 5000 FAILURE-TTL 3000");
    a.say("SEMEL.NAMESPACE doubt ON-LEASE-END IN-DOUBT");
    CHECK(a.say("SEMEL.GETCLAIM jobs k") == "state absent");
    a.say("SEMEL.CLAIM jobs k OWNER w FINGERPRINT " + hex_a + " ALGORITHM 7");
    CHECK(a.say("SEMEL.GETCLAIM jobs k") ==
          "state held, epoch E, attempts 1, lease_remaining_ms 1000, owner w, algorithm 7, "
          "fingerprint " +
              hex_a);
    a.say("SEMEL.COMPLETE jobs k % r");
    CHECK(a.say("SEMEL.GETCLAIM jobs k") ==
          "state done, epoch E, attempts 1, unique_remaining_ms 5000, result_remaining_ms 2000, "
          "result r, algorithm 7, fingerprint " +
              hex_a);
    f.pass(2'000ms);
    CHECK(a.say("SEMEL.GETCLAIM jobs k") ==
          "state done, epoch E, attempts 1, unique_remaining_ms 3000, result_remaining_ms 0, "
          "result nil, algorithm 7, fingerprint " +
              hex_a);
    a.say("SEMEL.CLAIM jobs f");
    a.say("SEMEL.FAIL jobs f % why KEEP");
    CHECK(a.say("SEMEL.GETCLAIM jobs f") ==
          "state failed, epoch E, attempts 1, failure_remaining_ms 3000, poison no, failure why, "
          "algorithm 0, fingerprint nil");
    a.say("SEMEL.CLAIM doubt k LEASE 1");
    f.pass(1ms);
    CHECK(a.say("SEMEL.GETCLAIM doubt k") ==
          "state in_doubt, epoch E, attempts 1, lease_remaining_ms 0, owner , algorithm 0, "
          "fingerprint nil");
  }
}

TEST_CASE("SEMEL batches: an outcome for each key, in order", "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    a.say("SET jobs:text x");
    CHECK(a.say("SEMEL.CLAIMS jobs LEASE 1000 OWNER w KEYS 4 a a text '' ") ==
          "[outcome granted, epoch E, attempt 1, takeover no"
          " | outcome in_flight, remaining_ms 1000, retry_after_ms 1000, attempt 1, owner w, "
          "folded_onto 0"
          " | outcome error, message WRONGTYPE the key holds something else than a claim"
          " | outcome error, message ERR key is empty]");
    CHECK(a.say("SEMEL.COMPLETES jobs 4 a % r text % r nothing % r '' % r") ==
          "[outcome ok, late no"
          " | outcome error, message WRONGTYPE the key holds something else than a claim"
          " | outcome unknown | outcome error, message ERR key is empty]");
    CHECK(a.say("SEMEL.CLAIMALL jobs KEYS 2 a b") ==
          "outcome not_granted, claims [outcome replay, attempt 1, result_expired no, result r"
          " | outcome free]");
    CHECK(a.say("SEMEL.GETCLAIM jobs b") == "state absent");
    CHECK(a.say("SEMEL.CLAIMALL jobs KEYS 3 b c b") ==
          "outcome granted, claims [outcome granted, epoch E, attempt 1, takeover no"
          " | outcome granted, epoch E, attempt 1, takeover no"
          " | outcome granted, epoch E, attempt 1, takeover no, folded_onto 0]");
  }
}

TEST_CASE("SEMEL batches: limits::batch_max keys are taken, one more is refused",
          "[net][claims][limits]") {
  NodeFixture f;
  Client a{*f.node};
  const auto ask = [&](std::size_t count) {
    std::vector<std::string> words{"SEMEL.CLAIMS", "jobs", "KEYS", std::to_string(count)};
    for (std::size_t i = 0; i < count; ++i) words.push_back("k" + std::to_string(i));
    return a.raw(words);
  };
  CHECK(ask(limits::batch_max).starts_with("*65536\r\n%4\r\n$7\r\noutcome\r\n$7\r\ngranted"));
  CHECK(ask(limits::batch_max + 1) == "-ERR the number of keys must be 1..65536, not '65537'\r\n");
}

TEST_CASE("SEMEL operators: resolve, forget, and what is in flight", "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    a.say("SEMEL.NAMESPACE doubt ON-LEASE-END IN-DOUBT");
    CHECK(a.say("SEMEL.INFLIGHT doubt") == "[]");
    a.say("SEMEL.CLAIM doubt late LEASE 3000 OWNER w3");
    a.say("SEMEL.CLAIM doubt first LEASE 1000 OWNER w1");
    a.say("SEMEL.CLAIM doubt middle LEASE 2000");
    a.say("SEMEL.CLAIM other first");
    a.say("SEMEL.CLAIM doubt done");
    a.say("SEMEL.COMPLETE doubt done %");
    f.pass(1'500ms);
    const std::string first =
        "key first, state in_doubt, epoch E, attempts 1, lease_remaining_ms 0, owner w1";
    const std::string middle =
        "key middle, state held, epoch E, attempts 1, lease_remaining_ms 500, owner ";
    CHECK(a.say("SEMEL.INFLIGHT doubt") ==
          "[" + first + " | " + middle +
              " | key late, state held, epoch E, attempts 1, lease_remaining_ms 1500, owner w3]");
    CHECK(a.say("SEMEL.INFLIGHT doubt COUNT 2") == "[" + first + " | " + middle + "]");

    CHECK(a.say("SEMEL.RESOLVE doubt first DONE found") == "1");
    CHECK(a.say("SEMEL.CLAIM doubt first") ==
          "outcome replay, attempt 1, result_expired no, result found");
    CHECK(a.say("SEMEL.RESOLVE doubt first DONE") == "0");
    CHECK(a.say("SEMEL.RESOLVE doubt middle RELEASED") == "1");
    CHECK(a.say("SEMEL.CLAIM doubt middle").starts_with("outcome granted"));
    CHECK(a.say("SEMEL.FORGET doubt first") == "1");
    CHECK(a.say("SEMEL.FORGET doubt first") == "0");
    CHECK(a.say("SEMEL.RESOLVE doubt k MAYBE") ==
          "-ERR unknown word 'MAYBE', allowed are DONE, RELEASED");
    CHECK(a.say("SEMEL.RESOLVE doubt k RELEASED result") ==
          "-ERR wrong number of arguments for 'semel.resolve' command");
    CHECK(a.say("SEMEL.INFLIGHT doubt COUNT 0") == "-ERR COUNT must be 1..10000, not '0'");
    CHECK(a.say("SEMEL.INFLIGHT doubt COUNT 10000").starts_with("["));
    CHECK(a.say("SEMEL.INFLIGHT doubt COUNT 10001") == "-ERR COUNT must be 1..10000, not '10001'");
  }
}

TEST_CASE("SEMEL.INFLIGHT: of many, those whose leases end first", "[net][claims]") {
  NodeFixture f;
  Client a{*f.node};
  for (int i = 0; i < 3'000; ++i) {
    a.say("SEMEL.CLAIM jobs k" + std::to_string(i) + " LEASE " +
          std::to_string(10'000 + i * 7'919 % 3'001));
  }
  std::string expected;
  for (int rank = 0; rank < 3; ++rank) {  // i * 7919 = rank mod 3001, for each i once
    int i = 0;
    while (i * 7'919 % 3'001 != rank) ++i;
    expected += (rank == 0 ? "[key k" : " | key k") + std::to_string(i) +
                ", state held, epoch E, attempts 1, lease_remaining_ms " +
                std::to_string(10'000 + rank) + ", owner ";
  }
  CHECK(a.say("SEMEL.INFLIGHT jobs COUNT 3") == expected + "]");
}

TEST_CASE("SEMEL.NAMESPACE: declares as a whole, shows, lists", "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    CHECK(a.say("SEMEL.NAMESPACE jobs") == "nil");
    CHECK(a.say("SEMEL.NAMESPACES") == "[]");
    CHECK(a.say("SEMEL.NAMESPACE jobs LEASE 1 RESULT-TTL 2 UNIQUE-TTL 3 FAILURE-TTL 4 "
                "ATTEMPTS-TTL 5 WINDOW 6 RETRY-AFTER-MAX 7 ATTEMPTS-MAX 8 ON-LEASE-END in-doubt "
                "sliding-max 10 on-failure KEEP strict FAIL-OPEN ahead 9 ISSUED on-exception "
                "in-doubt fair") == "+OK");
    CHECK(a.say("SEMEL.NAMESPACE jobs") ==
          "name jobs, db 0, lease_ms 1, result_ttl_ms 2, unique_ttl_ms 3, failure_ttl_ms 4, "
          "attempts_ttl_ms 5, window_ms 6, retry_after_max_ms 7, attempts_max 8, on_lease_end "
          "in-doubt, on_failure keep, strict yes, fail_open yes, ahead_ms 9, issued yes, fair yes, "
          "on_exception in-doubt, sliding_max_ms 10");
    // All else as if never value.
    CHECK(a.say("SEMEL.NAMESPACE plain LEASE 9") == "+OK");
    CHECK(a.say("SEMEL.NAMESPACE plain") ==
          "name plain, db 0, lease_ms 9, result_ttl_ms 86400000, unique_ttl_ms 0, failure_ttl_ms "
          "86400000, attempts_ttl_ms 86400000, window_ms 0, retry_after_max_ms 1000, attempts_max "
          "0, on_lease_end retry, on_failure release, strict no, fail_open no, ahead_ms 0, "
          "issued no, fair no, on_exception release, sliding_max_ms 0");
    a.say("SEMEL.CLAIM by-use k");
    REQUIRE(f.engine->claims("in-process", {}).has_value());
    CHECK(a.say("SEMEL.NAMESPACES") == "[by-use | in-process | jobs | plain]");
    CHECK(a.say("SEMEL.NAMESPACE by-use").starts_with("name by-use, db 0, lease_ms 60000"));
  }
}

TEST_CASE("SEMEL.NAMESPACE: AS takes a policy by its name, and what follows changes it",
          "[net][claims]") {
  NodeFixture f;
  Client a{*f.node};
  CHECK(a.say("SEMEL.NAMESPACE tokens AS token LEASE 5000") == "+OK");
  Policy token = policies::token;
  token.lease = Millis{5'000};
  const Policy declared = f.engine->claims("tokens")->policy();
  CHECK(declared.issued);
  CHECK(declared.lease == token.lease);
  CHECK(declared.attempts_ttl == token.attempts_ttl);
  CHECK(declared.attempts_max == token.attempts_max);
  for (const NamedPolicy& each : policies::all) {
    INFO(each.name);
    CHECK(a.say("SEMEL.NAMESPACE as-" + std::string{each.name} + " as " + std::string{each.name}) ==
          "+OK");
    CHECK(f.engine->claims("as-" + std::string{each.name})->policy().lease == each.policy.lease);
    CHECK(policies::named(each.name)->result_ttl == each.policy.result_ttl);
  }
  CHECK_FALSE(policies::named("tokens"));
  CHECK(a.say("SEMEL.NAMESPACE jobs AS wishes") ==
        "-ERR AS must be one of call, debounce, dedup, fair-lock, lock, message, nonce, payment, "
        "token, not 'wishes'");
  CHECK(a.say("SEMEL.NAMESPACE jobs AS") == "-ERR AS needs a value behind it");
  CHECK(a.say("SEMEL.NAMESPACE jobs LEASE 5 AS lock").starts_with("-ERR unknown word 'AS'"));
}

TEST_CASE("SEMEL.ISSUE: only what was issued can be claimed, and it is free again after a failure",
          "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    CHECK(a.say("SEMEL.NAMESPACE tokens AS token") == "+OK");
    CHECK(a.say("SEMEL.CLAIM tokens t-1") == "outcome unknown");
    CHECK(a.say("SEMEL.ISSUE tokens t-1 TTL 1000") == "1");
    CHECK(a.say("SEMEL.ISSUE tokens t-1") == "0");
    CHECK(a.say("SEMEL.GETCLAIM tokens t-1") == "state issued, attempts 0, remaining_ms 1000");
    CHECK(a.say("SEMEL.CLAIM tokens t-1") == "outcome granted, epoch E, attempt 1, takeover no");
    CHECK(a.say("SEMEL.ISSUE tokens t-1") == "0");
    const std::string epoch = std::to_string(f.engine->claims("tokens")->get("t-1")->epoch);
    CHECK(a.say("SEMEL.FAIL tokens t-1 " + epoch) == "outcome ok, late no");
    CHECK(a.say("SEMEL.GETCLAIM tokens t-1") == "state issued, attempts 1, remaining_ms 6000");
    CHECK(a.say("SEMEL.ISSUE jobs k") ==
          "-ERR namespace 'jobs': no keys are issued in it: declare it ISSUED");
    CHECK(a.say("SEMEL.ISSUE tokens t-2 TTL 0") == "-ERR TTL must be 1..3162240000000, not '0'");
    CHECK(a.say("SEMEL.ISSUE tokens t-2 TIL 9") == "-ERR unknown word 'TIL', allowed are TTL");
  }
}

TEST_CASE("SEMEL.CAS: sets a value that has not changed, and returns what is there",
          "[net][claims]") {
  NodeFixture f;
  Client a{*f.node};
  CHECK(a.say("SEMEL.GET k") == "nil");
  const auto version = [&] {
    return std::to_string(f.engine->store().get_versioned("k").value()->version);
  };
  CHECK(a.say("SEMEL.CAS k 0 one PX 1000").starts_with("outcome stored, version "));
  CHECK(a.say("SEMEL.GET k") == "version " + version() + ", value one");
  const std::string before = version();
  CHECK(a.say("SEMEL.CAS k 0 two") == "outcome changed, version " + before + ", value one");
  const std::string second = a.say("SEMEL.CAS k " + before + " two");
  CHECK(second == "outcome stored, version " + version());
  CHECK(a.say("PTTL k") == "1000");
  const std::string third = a.say("SEMEL.CAS k " + version() + " three PERSIST");
  CHECK(third == "outcome stored, version " + version());
  CHECK(a.say("PTTL k") == "-1");
  CHECK(a.say("SEMEL.CAS gone 17 x") == "outcome changed, version 0");
  CHECK(a.say("SEMEL.CAS k -1 x") == "-ERR value is not an integer or out of range");
  CHECK(a.say("SEMEL.CAS k 1 x WHEN 5") == "-ERR syntax error");
  a.say("HSET h f v");
  CHECK(a.say("SEMEL.GET h").starts_with("-WRONGTYPE"));
  CHECK(a.say("SEMEL.CAS h 0 x").starts_with("-WRONGTYPE"));
}

TEST_CASE("SEMEL.NAMESPACE: lives in the database it was declared in", "[net][claims]") {
  NodeFixture f;
  Client a{*f.node};
  a.say("SELECT 3");
  a.say("SEMEL.CLAIM jobs k");
  CHECK(a.say("EXISTS jobs:k") == "1");
  CHECK(a.say("TYPE jobs:k") == "+claim");
  a.say("SELECT 0");
  CHECK(a.say("EXISTS jobs:k") == "0");
  const std::string refused = "-ERR namespace 'jobs': lives in database 3, not 0";
  CHECK(a.say("SEMEL.CLAIM jobs k") == refused);
  CHECK(a.say("SEMEL.GETCLAIM jobs k") == refused);
  CHECK(a.say("SEMEL.WAIT 0 jobs k") == refused);
  CHECK(a.say("SEMEL.CLAIMS jobs KEYS 1 k") == refused);
  CHECK(a.say("SEMEL.NAMESPACE jobs LEASE 1") == refused);
  CHECK(a.say("SEMEL.NAMESPACE jobs").starts_with("name jobs, db 3, lease_ms 60000"));
}

TEST_CASE("SEMEL.NAMESPACE: names have their limits", "[net][claims][limits]") {
  NodeFixture f;
  Client a{*f.node};
  const std::string longest(limits::namespace_name_max, 'n');
  CHECK(a.say("SEMEL.CLAIM " + longest + " k").starts_with("outcome granted"));
  CHECK(a.say("SEMEL.CLAIM " + longest + "n k") ==
        "-ERR namespace '" + longest + "..': name of 65 bytes, allowed 1..64 of [A-Za-z0-9_.-]");
  CHECK(a.say("SEMEL.CLAIM a:b k").starts_with("-ERR namespace 'a:b': name of 3 bytes,"));
}

TEST_CASE("SEMEL errors name the word and what is allowed", "[net][claims]") {
  NodeFixture f;
  Client a{*f.node};
  const std::string ttl_max = std::to_string(limits::ttl_max.count());
  const std::string longest(limits::owner_label_max, 'o');
  const std::pair<std::string, std::string> cases[] = {
      {"SEMEL.CLAIM jobs", "-ERR wrong number of arguments for 'semel.claim' command"},
      {"SEMEL.CLAIM jobs ''", "-ERR key is empty"},
      {"SEMEL.CLAIM jobs k LEESE 5",
       "-ERR unknown word 'LEESE', allowed are LEASE, FINGERPRINT, ALGORITHM, CLAIM-ID, "
       "FIRST-SENT, OWNER, BIND"},
      {"SEMEL.CLAIM jobs k LEASE", "-ERR LEASE needs a value behind it"},
      {"SEMEL.CLAIM jobs k LEASE 0", "-ERR LEASE must be 1.." + ttl_max + ", not '0'"},
      {"SEMEL.CLAIM jobs k LEASE soon", "-ERR LEASE must be 1.." + ttl_max + ", not 'soon'"},
      {"SEMEL.CLAIM jobs k LEASE " + std::to_string(limits::ttl_max.count() + 1),
       "-ERR LEASE must be 1.." + ttl_max + ", not '" +
           std::to_string(limits::ttl_max.count() + 1) + "'"},
      {"SEMEL.CLAIM jobs k FINGERPRINT " + hex_a + "a",
       "-ERR FINGERPRINT must be 32 hexadecimal digits, not '" + hex_a + "a'"},
      {"SEMEL.CLAIM jobs k FINGERPRINT " + std::string(31, 'a') + "g",
       "-ERR FINGERPRINT must be 32 hexadecimal digits, not '" + std::string(31, 'a') + "g'"},
      {"SEMEL.CLAIM jobs k ALGORITHM 0 FINGERPRINT " + hex_a,
       "-ERR ALGORITHM must be 1..255, not '0'"},
      {"SEMEL.CLAIM jobs k ALGORITHM 256", "-ERR ALGORITHM must be 1..255, not '256'"},
      {"SEMEL.CLAIM jobs k CLAIM-ID 01234567-89ab-cdef-0123-456789abcde",
       "-ERR CLAIM-ID must be 32 hexadecimal digits or a UUID, not "
       "'01234567-89ab-cdef-0123-456789abcde'"},
      {"SEMEL.CLAIM jobs k CLAIM-ID 0123456789ab-cdef-0123-4567-89abcdef",
       "-ERR CLAIM-ID must be 32 hexadecimal digits or a UUID, not "
       "'0123456789ab-cdef-0123-4567-89abcdef'"},
      {"SEMEL.CLAIM jobs k FIRST-SENT -1",
       "-ERR FIRST-SENT must be 0..9223372036854775807, not '-1'"},
      {"SEMEL.CLAIM jobs k OWNER " + longest + "o", "-ERR OWNER must be 0..64 bytes, not 65"},
      {"SEMEL.CLAIM jobs k OWNER " + longest + " LEASE " + ttl_max,
       "outcome granted, epoch E, attempt 1, takeover no"}};
  for (const auto& [line, answer] : cases) {
    INFO(line);
    CHECK(a.say(line) == answer);
  }
}

TEST_CASE("SEMEL errors name the number, the words and what is allowed", "[net][claims]") {
  NodeFixture f;
  Client a{*f.node};
  const std::string ttl_max = std::to_string(limits::ttl_max.count());
  const std::pair<std::string, std::string> cases[] = {
      {"SEMEL.COMPLETE jobs k 0", "-ERR epoch must be 1..9223372036854775807, not '0'"},
      {"SEMEL.COMPLETE jobs k 9223372036854775808",
       "-ERR epoch must be 1..9223372036854775807, not '9223372036854775808'"},
      {"SEMEL.COMPLETE jobs k 9223372036854775807", "outcome unknown"},
      {"SEMEL.COMPLETE jobs k 1 r more",
       "-ERR wrong number of arguments for 'semel.complete' command"},
      {"SEMEL.FAIL jobs k 1 r KEEP more",
       "-ERR wrong number of arguments for 'semel.fail' command"},
      {"SEMEL.RENEW jobs k 1 LEESE 5", "-ERR unknown word 'LEESE', allowed are LEASE"},
      {"SEMEL.RENEW jobs k 1 LEASE", "-ERR wrong number of arguments for 'semel.renew' command"},
      {"SEMEL.RENEW jobs k 1 LEASE 0", "-ERR LEASE must be 1.." + ttl_max + ", not '0'"},
      {"SEMEL.CLAIMS jobs KEYS 2 a", "-ERR 2 keys are announced, 1 follow"},
      {"SEMEL.CLAIMS jobs KEYS 0 a", "-ERR the number of keys must be 1..65536, not '0'"},
      {"SEMEL.CLAIMS jobs BIND OWNER KEYS", "-ERR KEYS n key.. is missing"},
      {"SEMEL.CLAIMALL jobs a b c",
       "-ERR unknown word 'a', allowed are LEASE, FINGERPRINT, ALGORITHM, CLAIM-ID, FIRST-SENT, "
       "OWNER, BIND"},
      {"SEMEL.COMPLETES jobs 2 a 1 r",
       "-ERR 2 times key, epoch and result are announced, 3 words follow"},
      {"SEMEL.COMPLETES jobs 1 a x r", "-ERR epoch must be 1..9223372036854775807, not 'x'"},
      {"SEMEL.WAIT -1 jobs k", "-ERR timeout-ms must be 0.." + ttl_max + ", not '-1'"},
      {"SEMEL.NAMESPACE jobs SIZE 5",
       "-ERR unknown word 'SIZE', allowed are AS, LEASE, RESULT-TTL, UNIQUE-TTL, SLIDING-MAX, "
       "FAILURE-TTL, ATTEMPTS-TTL, WINDOW, AHEAD, RETRY-AFTER-MAX, ATTEMPTS-MAX, ON-LEASE-END, "
       "ON-FAILURE, ON-EXCEPTION, STRICT, FAIL-OPEN, ISSUED, FAIR"},
      {"SEMEL.NAMESPACE jobs WINDOW", "-ERR WINDOW needs a value behind it"},
      {"SEMEL.NAMESPACE jobs ON-LEASE-END", "-ERR ON-LEASE-END needs a value behind it"},
      {"SEMEL.NAMESPACE jobs ON-LEASE-END forget",
       "-ERR ON-LEASE-END must be RETRY or IN-DOUBT, not 'forget'"},
      {"SEMEL.NAMESPACE jobs ON-FAILURE forget",
       "-ERR ON-FAILURE must be RELEASE or KEEP, not 'forget'"},
      {"SEMEL.NAMESPACE jobs ON-EXCEPTION forget",
       "-ERR ON-EXCEPTION must be RELEASE, KEEP or IN-DOUBT, not 'forget'"},
      {"SEMEL.NAMESPACE jobs ATTEMPTS-MAX 4294967296",
       "-ERR ATTEMPTS-MAX must be 0..4294967295, not '4294967296'"},
      {"SEMEL.NAMESPACE jobs ATTEMPTS-MAX 4294967295", "+OK"},
      {"SEMEL.CLAIM jobs k " + std::string(65, 'w'),
       "-ERR unknown word '" + std::string(64, 'w') +
           "..', allowed are LEASE, FINGERPRINT, ALGORITHM, CLAIM-ID, FIRST-SENT, OWNER, BIND"},
      {"SEMEL.NAMESPACE least ATTEMPTS-MAX 0 UNIQUE-TTL 0 WINDOW 0", "+OK"}};
  for (const auto& [line, answer] : cases) {
    INFO(line);
    CHECK(a.say(line) == answer);
  }
}

TEST_CASE("SEMEL.CLAIM: a key with its namespace of key_bytes_max bytes, and one more",
          "[net][claims][limits]") {
  NodeFixture f;
  Client a{*f.node};
  const std::string longest(limits::key_bytes_max - 5, 'k');  // "jobs:"
  CHECK(a.say("SEMEL.CLAIM jobs " + longest).starts_with("outcome granted"));
  const std::string refused = "-ERR key exceeds the limit: " + std::to_string(longest.size() + 1) +
                              " bytes and its namespace";
  CHECK(a.say("SEMEL.CLAIM jobs " + longest + "k") == refused);
  CHECK(a.say("SEMEL.WAIT 1 jobs " + longest + "k") == refused);
  CHECK(a.say("SEMEL.COMPLETE jobs " + longest + "k 1") == refused);
  CHECK(a.say("SEMEL.GETCLAIM jobs " + longest + "k") == refused);
  a.say("SEMEL.CLAIM jobs k");
  CHECK(a.say("SEMEL.COMPLETE jobs k % " + std::string(limits::value_bytes_default, 'v')) ==
        "outcome ok, late no");
  CHECK(a.say("SEMEL.COMPLETE jobs k % " + std::string(limits::value_bytes_default + 1, 'v')) ==
        "-ERR value exceeds the limit");
}

TEST_CASE("SEMEL: a string under the key answers WRONGTYPE, and a claim does to strings' commands",
          "[net][claims]") {
  NodeFixture f;
  Client a{*f.node};
  a.say("SET jobs:text x");
  const std::string wrong = "-WRONGTYPE the key holds something else than a claim";
  for (const char* line :
       {"SEMEL.CLAIM jobs text", "SEMEL.COMPLETE jobs text 1", "SEMEL.FAIL jobs text 1",
        "SEMEL.RENEW jobs text 1", "SEMEL.RELEASE jobs text 1", "SEMEL.GETCLAIM jobs text",
        "SEMEL.WAIT 0 jobs text", "SEMEL.RESOLVE jobs text DONE", "SEMEL.FORGET jobs text"}) {
    INFO(line);
    CHECK(a.say(line) == wrong);
  }
  CHECK(a.say("GET jobs:text") == "x");
  a.say("SEMEL.CLAIM jobs k");
  CHECK(a.say("GET jobs:k") ==
        "-WRONGTYPE Operation against a key holding the wrong kind of value");
}

TEST_CASE("SEMEL in MULTI: the calls are one step, and a wait does not wait", "[net][claims]") {
  for (const Resp dialect : dialects) {
    NodeFixture f;
    Client a{*f.node, dialect};
    Client b{*f.node, dialect};
    b.say("SEMEL.CLAIM jobs held LEASE 1000");
    CHECK(a.say("MULTI") == "+OK");
    for (const char* line :
         {"SEMEL.CLAIM jobs k LEASE 500", "SEMEL.WAIT 0 jobs held", "SEMEL.GETCLAIM jobs k",
          "SEMEL.CLAIMALL jobs KEYS 2 x y", "SEMEL.CLAIMS jobs KEYS 1 k", "SEMEL.INFLIGHT jobs",
          "SEMEL.FORGET jobs k", "SEMEL.NAMESPACE other LEASE 5"}) {
      CHECK(a.say(line) == "+QUEUED");
    }
    const std::string done = a.say("EXEC");
    INFO(done);
    CHECK(done.starts_with(
        "[outcome granted, epoch E, attempt 1, takeover no | outcome in_flight, remaining_ms 1000, "
        "retry_after_ms 1000, attempt 1, owner  | state held, epoch E, attempts 1, "
        "lease_remaining_ms 500, owner , algorithm 0, fingerprint nil | outcome granted, claims "
        "[outcome granted, epoch E, attempt 1, takeover no | outcome granted, epoch E, attempt 1, "
        "takeover no] | [outcome in_flight, remaining_ms 500, retry_after_ms 500, attempt 1, owner "
        "] | [key k, state held"));
    CHECK(done.ends_with("| 1 | +OK]"));
    CHECK_FALSE(a.waits());
    CHECK(a.say("SEMEL.GETCLAIM jobs k") == "state absent");
  }
}

TEST_CASE("SEMEL and WATCH: a claim that came, or changed, undoes the transaction",
          "[net][claims]") {
  NodeFixture f;
  Client a{*f.node};
  Client b{*f.node};
  const auto exec_after = [&](std::string_view watched, std::vector<std::string> lines) {
    a.say("WATCH " + std::string{watched});
    for (const std::string& line : lines) b.say(line);
    a.say("MULTI");
    a.say("PING");
    return a.say("EXEC");
  };
  CHECK(exec_after("jobs:a", {"SEMEL.GETCLAIM jobs a"}) == "[+PONG]");
  CHECK(exec_after("jobs:a", {"SEMEL.CLAIM jobs a"}) == "nil");
  CHECK(exec_after("jobs:a", {"SEMEL.RENEW jobs a %"}) == "nil");
  // Granted and released in between: only an immediate notification can show it.
  CHECK(exec_after("jobs:b", {"SEMEL.CLAIM jobs b", "SEMEL.RELEASE jobs b %"}) == "nil");
  CHECK(exec_after("jobs:c", {"SEMEL.CLAIMS jobs LEASE 5 KEYS 2 b c", "SEMEL.FORGET jobs c"}) ==
        "nil");
  CHECK(exec_after("jobs:d", {"SEMEL.WAIT 5 jobs d", "SEMEL.FORGET jobs d"}) == "nil");
}

TEST_CASE("SEMEL: what came together is answered in order", "[net][claims]") {
  NodeFixture f;
  Client a{*f.node};
  std::string bytes;
  for (const char* line : {"SET x 1", "SEMEL.CLAIM jobs k", "GET x", "SEMEL.COMPLETE jobs k 77"}) {
    bytes += request_bytes(words_in(line));
  }
  net::Batch batch;
  net::Connection connection{*f.node, batch, nullptr, {.id = 99}};
  std::string reply;
  connection.receive(bytes, reply);
  CHECK(reply.starts_with("+OK\r\n*8\r\n"));
  CHECK(reply.find("$1\r\n1\r\n*") != std::string::npos);
}

}  // namespace semel::tests
