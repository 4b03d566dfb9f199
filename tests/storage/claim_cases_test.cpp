// The cases of claims that need a disk: a restart (I), a full machine with room on disk (H).
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/patterns/steps.hpp"
#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "tests/claim_rules/claim_table.hpp"
#include "tests/storage/cold/cold_fixture.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

Policy case_policy(bool in_doubt) {
  Policy policy;
  policy.lease = 1000ms;
  policy.result_ttl = 5000ms;
  policy.unique_ttl = 60'000ms;
  policy.attempts_max = 3;
  if (in_doubt) policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  return policy;
}

/// An engine on a storage, as one process has it that ends without a word.
struct ClaimProcess {
  ClaimProcess(const Directory& directory, ManualClock& clock, bool in_doubt) {
    auto opened = Storage::open({.directory = directory.path()}, clock);
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::logged,
                              .memory_bytes = std::size_t{64} << 20,
                              .first_version = storage->first_version()});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    const auto report = storage->recover(*engine);
    if (!report) FAIL(report.error().message());
    claims.emplace(engine->claims("ns", case_policy(in_doubt)).value());
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;
  std::optional<Claims> claims;
};

/// Puts a record of this state (a word of the claim table) under `key`; its owner's epoch.
Epoch put_record(ClaimProcess& process, ManualClock& clock, Bytes key, const std::string& record,
                 SessionId session, bool has_memo = false) {
  Claims& claims = *process.claims;
  const Epoch epoch = claims.claim({.key = key, .owner = "owner", .session = session}).epoch;
  if (has_memo) REQUIRE(Steps(claims, key, epoch).remember("step", "memo"));
  if (record == "absent") REQUIRE(*claims.forget(key));
  if (record == "over") clock.advance(1000ms);
  if (record == "closed") process.engine->close_session(session);
  if (record == "vacant" || record == "failed") {
    const auto how = record == "failed" ? Policy::OnFailure::keep : Policy::OnFailure::release;
    REQUIRE(claims.fail({.key = key, .epoch = epoch, .payload = "why", .on_failure = how}).answer ==
            OwnerAnswer::ok);
  }
  if (record == "doubt") {
    REQUIRE(claims
                .fail({.key = key,
                       .epoch = epoch,
                       .payload = "why",
                       .on_failure = Policy::OnFailure::in_doubt})
                .answer == OwnerAnswer::ok);
  }
  if (record == "poison") {
    Epoch last = epoch;
    for (int i = 0; i < 3; ++i) {
      REQUIRE(claims.fail({.key = key, .epoch = last}).answer == OwnerAnswer::ok);
      last = claims.claim({.key = key}).epoch;
    }
    REQUIRE(claims.claim({.key = key}).poison);
    return epoch;
  }
  if (record != "done" && record != "spent" && record != "digest") return epoch;
  REQUIRE(claims.complete({.key = key, .epoch = epoch, .payload = "42"}).answer == OwnerAnswer::ok);
  if (record != "done") clock.advance(5000ms);
  if (record == "digest") process.engine->advance();
  return epoch;
}

/// What is under `key`, in the table's words; what has no lease running is only "over".
std::string record_of(Claims& claims, Bytes key) {
  const ClaimView view = *claims.get(key);
  if (view.state == ClaimState::absent) {
    return claims.claim({.key = key}).attempt > 1 ? "vacant" : "absent";
  }
  if (view.state == ClaimState::done) return view.result_expired ? "spent" : "done";
  if (view.state == ClaimState::failed) return view.poison ? "poison" : "failed";
  if (view.state == ClaimState::in_doubt && view.result == "why") return "doubt";
  return view.lease_remaining > 0ms ? "held" : "over";
}

bool has_memos(Engine& engine, Bytes table_key) {
  bool found = false;
  REQUIRE(engine.host().snapshot([&](const Mutation& mutation) {
    const bool is_it = mutation.key == table_key && mutation.claim.has_value();
    found = found || (is_it && !mutation.claim->memos.empty());
  }));
  return found;
}

std::string as_seen(const std::string& record) {
  if (record == "digest") return "spent";
  return record == "closed" ? "over" : record;
}

}  // namespace

TEST_CASE("case I: a restart does to every state what its row of the claim table says",
          "[storage][claims][case]") {
  const ClaimTable table{ClaimTable::text()};
  const TableCall* call = table.call("restart");
  REQUIRE(call != nullptr);
  std::size_t cases = 0;
  table.each(*call, [&](const Combination& at) {
    // The rest of the policy does not matter for a restart, and each case opens a storage twice.
    if (table.value(at, "strict") != "no" || table.value(at, "attempts") != "below") return;
    if (table.value(at, "slides") != "no") return;  // sliding_window_test.cpp
    const TableRow* row = ClaimTable::row(*call, at);
    REQUIRE(row != nullptr);
    INFO("line " << row->line << ": " << table.describe(*call, at));
    const Directory directory{Directory::Medium::memory};
    ManualClock clock;
    const std::string record = table.value(at, "record");
    const bool in_doubt = table.value(at, "lapse") == "in_doubt";
    const bool remote = table.value(at, "owner") == "remote";
    const bool has_memo = table.value(at, "memos") == "kept";
    Epoch epoch = 0;
    Epoch newest = 0;
    {
      ClaimProcess process{directory, clock, in_doubt};
      epoch = put_record(process, clock, "k", record, remote ? 0 : process.engine->open_session(),
                         has_memo);
      newest = process.claims->claim({.key = "newest"}).epoch;
    }
    ClaimProcess process{directory, clock, in_doubt};
    const std::string wanted = row->next == "=" ? record : row->next;
    CHECK(has_memos(*process.engine, "ns:k") == has_memo);
    if (wanted == "held") CHECK(process.claims->get("k")->lease_remaining == 1000ms);
    CHECK(record_of(*process.claims, "k") == as_seen(wanted));
    if (as_seen(wanted) == "done") CHECK(process.claims->claim({.key = "k"}).result == "42");
    if (wanted == "held" || wanted == "closed") {
      CHECK(process.claims->get("k")->epoch == epoch);
      CHECK(process.claims->complete({.key = "k", .epoch = epoch}).answer == OwnerAnswer::ok);
    }
    CHECK(row->carries == std::vector<std::string>{"above"});
    CHECK(process.claims->claim({.key = "another"}).epoch > std::max(epoch, newest));
    ++cases;
  });
  // A remote owner has no session to close; memos are of work that is not over.
  CHECK(cases == 11 * 2 * 2 - 2 + 5 * 2 * 2 - 2);
}

TEST_CASE("case I: after a restart the same questions get the same answers",
          "[storage][claims][case]") {
  const Directory directory;
  ManualClock clock;
  const auto ask = [](Claims& claims) {
    std::vector<std::string> answers;
    const auto note = [&](const ClaimOutcome& o) {
      answers.push_back(std::to_string(static_cast<int>(o.answer)) + " " + o.result + " " +
                        o.owner + " " + std::to_string(o.attempt) + (o.poison ? " poison" : "") +
                        (o.result_expired ? " expired" : ""));
    };
    Fingerprint other{.algorithm = 1, .digest = {}};
    other.digest.fill(9);
    for (const Bytes key : {"done", "failed", "remote", "poison", "spent"}) {
      note(claims.claim({.key = key}));
      note(claims.claim({.key = key, .fingerprint = other}));
    }
    return answers;
  };
  std::vector<std::string> before;
  Epoch done = 0;
  {
    ClaimProcess process{directory, clock, false};
    put_record(process, clock, "spent", "spent", 0);
    done = put_record(process, clock, "done", "done", 0);
    put_record(process, clock, "failed", "failed", 0);
    put_record(process, clock, "poison", "poison", 0);
    Fingerprint given{.algorithm = 1, .digest = {}};
    given.digest.fill(1);
    REQUIRE(
        process.claims->claim({.key = "remote", .fingerprint = given, .owner = "far", .session = 0})
            .answer == ClaimAnswer::granted);
    before = ask(*process.claims);
    REQUIRE(before.size() == 10);
  }
  ClaimProcess process{directory, clock, false};
  CHECK(ask(*process.claims) == before);
  CHECK(process.claims->complete({.key = "done", .epoch = done, .payload = "42"}).answer ==
        OwnerAnswer::ok);
  CHECK(process.claims->complete({.key = "done", .epoch = done, .payload = "43"}).answer ==
        OwnerAnswer::conflict);
}

TEST_CASE("case H: where there is a disk, finished work makes room and is answered from there",
          "[storage][cold][claims][case]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  ColdLife process{directory, clock};
  Claims claims = process.engine->claims("ns", Policy{}).value();
  const std::string result(2000, 'r');
  ClaimOutcome last;
  int done = 0;
  for (;; ++done) {
    const std::string key = "k" + std::to_string(done);
    last = claims.claim({.key = key});
    if (last.answer != ClaimAnswer::granted) break;
    if (claims.complete({.key = key, .epoch = last.epoch, .payload = result}).answer !=
        OwnerAnswer::ok) {
      break;
    }
    REQUIRE(done < 100'000);
  }
  CHECK(done > 1000);
  CHECK(process.engine->host().spill_due());
  CHECK(process.spill().records >= static_cast<std::uint64_t>(done));
  const ClaimOutcome more = claims.claim({.key = "more"});
  CHECK(more.answer == ClaimAnswer::granted);
  int replayed = 0;
  for (int i = 0; i < done; ++i) {
    const ClaimOutcome again = claims.claim({.key = "k" + std::to_string(i)});
    replayed += again.answer == ClaimAnswer::replay && again.result == result ? 1 : 0;
  }
  CHECK(replayed == done);
}

}  // namespace semel::tests
