// Semaphore, claim_permit and permits_held. Words: a permit is a slot that is held; the width is
// the largest number of permits that was asked for lately.
#include "semel/patterns/semaphore.hpp"

#include <atomic>
#include <list>
#include <set>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/policies.hpp"
#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

namespace {

/// Holders of one semaphore, each with the number of permits it believes in.
class Holders {
 public:
  Holders(Process& process, const Policy& policy = policies::lock)
      : claims_(process.claims("pools", policy)) {}

  /// Null: there was no permit.
  Semaphore* take(std::uint32_t permits) {
    Semaphore& one = all_.emplace_back(claims_, "k", SemaphoreOptions{.permits = permits});
    if (one.try_acquire()) return &one;
    CHECK(one.why_not().code == ErrorCode::timed_out);
    all_.pop_back();
    return nullptr;
  }
  [[nodiscard]] std::size_t held() { return permits_held(claims_, "k").value().size(); }
  [[nodiscard]] Claims& claims() { return claims_; }

 private:
  Claims claims_;
  std::list<Semaphore> all_;
};

/// Takes permits of keys until memory has no room for one; returns its key.
std::string until_full(Claims& claims) {
  for (unsigned i = 0; i < 100'000; ++i) {
    std::string key = "full" + std::to_string(i);
    const ClaimAnswer answer = claim_permit(claims, {.key = key}, 2).claim.answer;
    if (answer != ClaimAnswer::granted) return key;
  }
  FAIL("memory does not fill up");
  return {};
}

}  // namespace

TEST_CASE("semaphore: as many holders as permits, each in a slot of its own",
          "[patterns][semaphore]") {
  Process process;
  Holders holders{process};
  std::set<std::uint32_t> slots;
  Semaphore* second = nullptr;
  for (unsigned i = 0; i < 3; ++i) {
    Semaphore* const one = holders.take(3);
    REQUIRE(one != nullptr);
    CHECK(one->fencing_token() != 0);
    CHECK(slots.insert(one->slot()).second);
    if (i == 1) second = one;
  }
  CHECK(*slots.rbegin() == 2);
  CHECK(holders.take(3) == nullptr);
  const std::uint32_t slot = second->slot();
  const Epoch token = second->fencing_token();
  CHECK(second->release());
  CHECK_FALSE(second->release());
  CHECK(second->fencing_token() == 0);
  Semaphore* const next = holders.take(3);
  REQUIRE(next != nullptr);
  CHECK(next->slot() == slot);
  CHECK(next->fencing_token() > token);
}

TEST_CASE("semaphore: a holder that went silent loses its permit, on both sides of its end",
          "[patterns][semaphore]") {
  Process process;
  Holders holders{process};
  Semaphore* const slow = holders.take(1);
  REQUIRE(slow != nullptr);
  process.clock().advance(Millis{29'999});
  CHECK(slow->is_held());
  CHECK(holders.take(1) == nullptr);
  process.clock().advance(Millis{1});
  CHECK_FALSE(slow->is_held());
  Semaphore* const next = holders.take(1);
  REQUIRE(next != nullptr);
  CHECK_FALSE(slow->renew());
  CHECK_FALSE(slow->release());  // another's permit is not given back
  CHECK(next->is_held());
}

TEST_CASE("semaphore: a watchdog keeps permits, and a renewal does not outlive the release",
          "[patterns][semaphore]") {
  Process process;
  Claims claims = process.claims("pools", policies::lock);
  Watchdog watchdog{process.engine()};
  Semaphore kept{claims, "k", {.permits = 2, .watchdog = &watchdog}};
  REQUIRE(kept.try_acquire());
  for (unsigned i = 0; i < 10; ++i) {
    process.clock().advance(Millis{10'001});
    CHECK(watchdog.poll() == 1);
  }
  CHECK(kept.is_held());
  CHECK(kept.release());
  CHECK(watchdog.kept() == 0);
}

TEST_CASE("semaphore: fewer permits give none until there are fewer holders, more at once",
          "[patterns][semaphore]") {
  Process process;
  Holders holders{process};
  std::vector<Semaphore*> wide;
  for (unsigned i = 0; i < 5; ++i) wide.push_back(holders.take(5));
  // Slots 0 and 1 are free, 2..4 are held: more than two.
  CHECK(wide[0]->release());
  CHECK(wide[1]->release());
  CHECK(holders.take(2) == nullptr);
  CHECK(holders.take(3) == nullptr);
  Semaphore* const fourth = holders.take(4);
  REQUIRE(fourth != nullptr);  // a fourth of four
  CHECK(fourth->release());
  CHECK(wide[4]->release());
  CHECK(holders.take(2) == nullptr);  // two are held
  CHECK(wide[3]->release());
  Semaphore* const second = holders.take(2);
  REQUIRE(second != nullptr);
  CHECK(second->slot() == 0);
  CHECK(holders.take(2) == nullptr);
  CHECK(holders.held() == 2);
  CHECK(holders.take(6) != nullptr);  // more: at once
}

TEST_CASE("semaphore: what was held under more permits counts for a day after they were asked for",
          "[patterns][semaphore]") {
  for (const bool is_later : {false, true}) {
    Process process;
    Claims claims = process.claims("pools", policies::lock);
    const ClaimRequest request{.key = "k", .lease = Millis{3LL * 86'400'000}};
    std::vector<PermitOutcome> wide;
    for (unsigned i = 0; i < 2; ++i) wide.push_back(claim_permit(claims, request, 2));
    REQUIRE(wide[1].slot == 1);
    REQUIRE(claims.release({.key = wide[0].key, .epoch = wide[0].claim.epoch}).answer ==
            OwnerAnswer::ok);
    // A day and the lease that was asked for are four days; half a day saves writing each time.
    constexpr Millis hour{3'600'000};
    process.clock().advance(12 * hour);
    REQUIRE(claim_permit(claims, request, 2).slot == 0);
    process.clock().advance(4 * 24 * hour - Millis{1});
    REQUIRE(permits_held(claims, "k").value().empty());  // its lease is over all the same
    CHECK(process.engine().store().exists("pools:{k}#").value());
    if (is_later) process.clock().advance(12 * hour + Millis{1});
    CHECK(process.engine().store().exists("pools:{k}#").value() == !is_later);
  }
}

TEST_CASE("semaphore: a holder under more permits counts for as long as it renews its lease",
          "[patterns][semaphore]") {
  Process process;
  Claims claims = process.claims("pools", policies::lock);
  constexpr Millis hour{3'600'000};
  const ClaimRequest request{.key = "k", .lease = 2 * hour};
  std::vector<PermitOutcome> wide;
  for (unsigned i = 0; i < 2; ++i) wide.push_back(claim_permit(claims, request, 2));
  REQUIRE(wide[1].slot == 1);
  REQUIRE(claims.release({.key = wide[0].key, .epoch = wide[0].claim.epoch}).answer ==
          OwnerAnswer::ok);
  for (int hours = 0; hours < 24 * 7; ++hours) {
    process.clock().advance(hour);
    REQUIRE(claims.renew({.key = wide[1].key, .epoch = wide[1].claim.epoch, .lease = 2 * hour})
                .answer == OwnerAnswer::ok);
    if (hours % 6 != 0) continue;
    INFO(hours);
    REQUIRE(claim_permit(claims, request, 1).claim.answer == ClaimAnswer::in_flight);
  }
  REQUIRE(claims.release({.key = wide[1].key, .epoch = wide[1].claim.epoch}).answer ==
          OwnerAnswer::ok);
  const PermitOutcome alone = claim_permit(claims, request, 1);
  REQUIRE(alone.claim.answer == ClaimAnswer::granted);
  REQUIRE(claims.release({.key = alone.key, .epoch = alone.claim.epoch}).answer == OwnerAnswer::ok);
  // No slot beyond is held any more: it is not renewed.
  for (int hours = 0; hours < 48; hours += 6) {
    process.clock().advance(6 * hour);
    REQUIRE(claim_permit(claims, {.key = "k", .lease = hour}, 1).slot == 0);
  }
  const auto width = process.engine().store().get("pools:{k}#");
  REQUIRE(width.ok());
  CHECK(*width == "1");
}

TEST_CASE("semaphore: a claim id that holds a permit is regranted that one",
          "[patterns][semaphore]") {
  Process process;
  Claims claims = process.claims("pools", policies::lock);
  const ClaimRequest other{.key = "k"};
  const ClaimRequest mine{.key = "k", .claim_id = ClaimId{1, 2, 3}};
  const PermitOutcome first = claim_permit(claims, other, 3);
  const PermitOutcome granted = claim_permit(claims, mine, 3);
  REQUIRE(granted.claim.answer == ClaimAnswer::granted);
  CHECK(granted.slot == 1);
  CHECK(granted.key == permit_key("k", 1));
  // A lower slot is free meanwhile.
  REQUIRE(claims.release({.key = first.key, .epoch = first.claim.epoch}).answer == OwnerAnswer::ok);
  const PermitOutcome again = claim_permit(claims, mine, 3);
  CHECK(again.claim.answer == ClaimAnswer::regranted);
  CHECK(again.claim.epoch == granted.claim.epoch);
  CHECK(again.slot == 1);
  CHECK(permits_held(claims, "k").value().size() == 1);
}

TEST_CASE("semaphore: a claim id that asks again loses nothing and gets no second permit",
          "[patterns][semaphore]") {
  Process process;
  Claims claims = process.claims("pools", policies::lock);
  const ClaimRequest mine{.key = "k", .claim_id = ClaimId{1, 2, 3}};
  const auto regrants = [&](const PermitOutcome& had, std::uint32_t permits) {
    const PermitOutcome again = claim_permit(claims, mine, permits);
    CHECK(again.claim.answer == ClaimAnswer::regranted);
    CHECK(again.claim.epoch == had.claim.epoch);
    CHECK(again.key == had.key);
  };
  SECTION("others are beyond its number") {
    const PermitOutcome had = claim_permit(claims, mine, 2);
    REQUIRE(had.slot == 0);
    for (const std::uint32_t slot : {1U, 2U}) {
      REQUIRE(claim_permit(claims, {.key = "k"}, 3).slot == slot);
    }
    regrants(had, 2);
    CHECK(permits_held(claims, "k").value().size() == 3);
  }
  SECTION("it is beyond its new number itself") {
    std::vector<PermitOutcome> others;
    for (unsigned i = 0; i < 4; ++i) others.push_back(claim_permit(claims, {.key = "k"}, 5));
    const PermitOutcome had = claim_permit(claims, mine, 5);
    REQUIRE(had.slot == 4);
    regrants(had, 2);
    for (const PermitOutcome& each : others) {
      REQUIRE(claims.release({.key = each.key, .epoch = each.claim.epoch}).answer ==
              OwnerAnswer::ok);
    }
    regrants(had, 2);
    CHECK(permits_held(claims, "k").value().size() == 1);
  }
  SECTION("the lease of a lower slot has ended") {
    REQUIRE(claim_permit(claims, {.key = "k", .lease = Millis{1'000}}, 3).slot == 0);
    const PermitOutcome had = claim_permit(claims, mine, 3);
    process.clock().advance(Millis{1'000});
    regrants(had, 3);
    CHECK(permits_held(claims, "k").value().size() == 1);
  }
}

TEST_CASE("semaphore: all that can be wrong with an attempt", "[patterns][semaphore]") {
  Process process;
  Claims claims = process.claims("pools", policies::lock);
  const auto error_of = [&](Bytes key, std::uint32_t permits) {
    const PermitOutcome found = claim_permit(claims, {.key = key}, permits);
    CHECK(found.claim.answer != ClaimAnswer::granted);
    return found.claim.error;
  };
  CHECK(error_of("", 1) == ErrorCode::key_empty);
  CHECK(error_of("k", 0) == ErrorCode::bad_option);
  CHECK(error_of("k", limits::permits_max + 1) == ErrorCode::bad_option);
  CHECK(error_of(std::string(limits::key_bytes_max, 'k'), 1) == ErrorCode::key_too_long);
  CHECK(claim_permit(claims, {.key = "k"}, limits::permits_max).claim.answer ==
        ClaimAnswer::granted);
  // Binary keys, and one that looks like a slot of another.
  const std::string zeros("\0{}\r\n", 5);
  for (const Bytes key : {Bytes{zeros}, Bytes{"{k}#0"}, Bytes{"{k}"}}) {
    CHECK(claim_permit(claims, {.key = key}, 1).claim.answer == ClaimAnswer::granted);
    CHECK(claim_permit(claims, {.key = key}, 1).claim.answer == ClaimAnswer::in_flight);
  }
  CHECK(permits_held(claims, "").error().code == ErrorCode::key_empty);
  // Records of others in the way.
  Store store = process.engine().store();
  REQUIRE(store.set("pools:{w}#0", "mine").ok());
  CHECK(error_of("w", 2) == ErrorCode::wrong_kind);
  REQUIRE(process.engine().hashes().hset("pools:{h}#", "f", "v").ok());
  CHECK(error_of("h", 2) == ErrorCode::wrong_type);
  REQUIRE(store.set("pools:{n}#", "no number").ok());
  CHECK(claim_permit(claims, {.key = "n"}, 2).claim.answer == ClaimAnswer::granted);
}

TEST_CASE("semaphore: full memory refuses, and what was held can be given back",
          "[patterns][semaphore]") {
  Process process{Process::never, limits::memory_bytes_min};
  Claims claims = process.claims("pools", policies::lock);
  Semaphore held{claims, "k", {.permits = 2}};
  REQUIRE(held.try_acquire());
  process.fill();
  const std::string full = until_full(claims);
  Semaphore other{claims, full, {.permits = 2}};
  CHECK_FALSE(other.try_acquire());
  CHECK(other.why_not().code == ErrorCode::memory_full);
  CHECK(held.release());
  process.empty();
  CHECK(other.try_acquire());
}

TEST_CASE("semaphore: a namespace that fails open gives no permit unprotected",
          "[patterns][semaphore]") {
  Process process{Process::never, limits::memory_bytes_min};
  Policy open = policies::lock;
  open.fail_open = true;
  Claims claims = process.claims("pools", open);
  REQUIRE(claim_permit(claims, {.key = "k"}, 2).claim.answer == ClaimAnswer::granted);
  process.fill();
  Semaphore other{claims, until_full(claims), {.permits = 2}};
  CHECK_FALSE(other.try_acquire());
  CHECK(other.why_not().code == ErrorCode::memory_full);
}

TEST_CASE("semaphore: where the end of a lease is a doubt, its permit stays away until resolved",
          "[patterns][semaphore]") {
  Process process;
  Policy doubts = policies::lock;
  doubts.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  Holders holders{process, doubts};
  REQUIRE(holders.take(2) != nullptr);
  process.clock().advance(Millis{30'000});
  REQUIRE(holders.take(2) != nullptr);
  CHECK(holders.take(2) == nullptr);
  REQUIRE(holders.claims().resolve(permit_key("k", 0), Resolution::released).value());
  CHECK(holders.take(2) != nullptr);
}

TEST_CASE("semaphore: one object holds one permit", "[patterns][semaphore]") {
  Process process;
  Claims claims = process.claims("pools", policies::lock);
  Semaphore one{claims, "k", {.permits = 2}};
  REQUIRE(one.try_acquire());
  CHECK_FALSE(one.try_acquire());
  CHECK(one.why_not().code == ErrorCode::object_in_use);
  std::thread{[&] { CHECK(one.release()); }}.join();
  CHECK(one.try_acquire());
  CHECK(one.why_not().code == ErrorCode::ok);
  Semaphore none{claims, "k", {.permits = 0}};
  CHECK_FALSE(none.try_acquire());
  CHECK(none.why_not().code == ErrorCode::bad_option);
  CHECK_THROWS_AS(none.acquire(), std::system_error);
}

TEST_CASE("semaphore: holders and the number of permits outlive a process, as leases do",
          "[patterns][semaphore]") {
  Process process;
  Claims claims = process.claims("pools", policies::lock);
  const ClaimRequest remote{.key = "k", .session = 0};
  for (unsigned i = 0; i < 3; ++i) {
    REQUIRE(claim_permit(claims, remote, 3).claim.answer == ClaimAnswer::granted);
  }
  REQUIRE(claims
              .release({.key = permit_key("k", 0),
                        .epoch = claims.get(permit_key("k", 0)).value().epoch})
              .answer == OwnerAnswer::ok);
  process.restart();
  claims = process.claims("pools", policies::lock);
  CHECK(permits_held(claims, "k").value().size() == 2);
  CHECK(claim_permit(claims, remote, 2).claim.answer == ClaimAnswer::in_flight);
  CHECK(claim_permit(claims, remote, 3).claim.answer == ClaimAnswer::granted);
}

TEST_CASE("semaphore: many threads, never more holders than permits",
          "[patterns][semaphore][race]") {
  std::unique_ptr<Engine> engine = Engine::open().value();
  Claims claims = engine->claims("pools", policies::lock).value();
  constexpr int permits = 3;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<int> runs{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      Semaphore one{claims, "k", {.permits = permits}};
      for (unsigned run = 0; run < 200; ++run) {
        one.acquire();
        const int now = inside.fetch_add(1, std::memory_order_relaxed) + 1;
        int seen = most.load(std::memory_order_relaxed);
        while (now > seen && !most.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
        }
        std::this_thread::yield();
        inside.fetch_sub(1, std::memory_order_relaxed);
        runs.fetch_add(one.release() ? 1 : 0, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(runs.load(std::memory_order_relaxed) == 1'600);
  CHECK(most.load(std::memory_order_relaxed) <= permits);
  CHECK(permits_held(claims, "k").value().empty());
}

TEST_CASE("semaphore: waiters get permits in the order in which they came, whichever slot is freed",
          "[patterns][semaphore][wait]") {
  Process process;
  Holders holders{process};
  Claims& claims = holders.claims();
  Semaphore* const a = holders.take(2);
  Semaphore* const b = holders.take(2);
  REQUIRE(a != nullptr);
  REQUIRE(b != nullptr);
  std::vector<std::string> told;
  const auto wait = [&](const std::string& who, Timestamp deadline) {
    return claim_permit_or_wait(
        claims, {.key = "k", .owner = who}, 2, deadline, [&told, who](PermitOutcome&& found) {
          const bool is_granted = found.claim.answer == ClaimAnswer::granted;
          told.push_back(who + (is_granted ? " gets " : " not ") + std::to_string(found.slot));
        });
  };
  const Timestamp soon = process.engine().now() + Millis{100};
  const WaitTicket c = wait("c", no_end);
  const WaitTicket leaves = wait("leaves", no_end);
  const WaitTicket late = wait("late", soon);
  const WaitTicket d = wait("d", no_end);
  CHECK(c != 0);
  CHECK(late != 0);
  CHECK(d != 0);
  CHECK(claims.cancel_wait(permit_key("k", 0), leaves));
  CHECK_FALSE(claims.cancel_wait(permit_key("k", 0), leaves));
  CHECK(told.empty());
  CHECK(b->release());
  CHECK(told == std::vector<std::string>{"c gets 1"});
  process.clock().advance(Millis{100});
  process.engine().advance();
  CHECK(told == std::vector<std::string>{"c gets 1", "late not 0"});
  CHECK(a->release());
  CHECK(told.back() == "d gets 0");
  CHECK(told.size() == 3);
  CHECK(wait("now", process.engine().now()) == 0);  // a deadline that is past
  CHECK(told.back().starts_with("now not"));
  CHECK(process.engine().stats().waiters == 0);
}

TEST_CASE("semaphore: two waits with one claim id get one permit", "[patterns][semaphore][wait]") {
  Process process;
  Holders holders{process};
  Claims& claims = holders.claims();
  std::vector<Semaphore*> held;
  std::vector<std::string> told;
  const auto wait = [&](const std::string& who, Timestamp deadline) {
    const ClaimRequest request{.key = "k", .claim_id = ClaimId{7}};
    return claim_permit_or_wait(claims, request, 2, deadline, [&, who](PermitOutcome&& found) {
      const ClaimAnswer answer = found.claim.answer;
      told.push_back(who +
                     (answer == ClaimAnswer::granted     ? " gets "
                      : answer == ClaimAnswer::regranted ? " has "
                                                         : " not ") +
                     std::to_string(found.slot));
    });
  };
  SECTION("as many held as permits") {
    for (unsigned i = 0; i < 2; ++i) held.push_back(holders.take(2));
    CHECK(wait("one", no_end) != 0);
    CHECK(wait("two", no_end) != 0);
    CHECK(held[1]->release());
    CHECK(held[0]->release());
    CHECK(told == std::vector<std::string>{"one gets 1", "two has 1"});
    CHECK(permits_held(claims, "k").value().size() == 1);
  }
  SECTION("more held than permits") {
    for (unsigned i = 0; i < 3; ++i) held.push_back(holders.take(3));
    CHECK(wait("one", no_end) != 0);
    CHECK(wait("two", no_end) != 0);
    CHECK(held[2]->release());
    CHECK(told.empty());
    CHECK(held[1]->release());
    CHECK(held[0]->release());
    CHECK(told == std::vector<std::string>{"one gets 1", "two has 1"});
    CHECK(permits_held(claims, "k").value().size() == 1);
  }
  SECTION("it came by a larger number") {
    for (unsigned i = 0; i < 2; ++i) held.push_back(holders.take(2));
    CHECK(wait("freed", no_end) != 0);
    CHECK(wait("late", process.engine().now() + Millis{100}) != 0);
    CHECK(claim_permit(claims, {.key = "k", .claim_id = ClaimId{7}}, 3).slot == 2);
    process.clock().advance(Millis{100});
    process.engine().advance();
    CHECK(told == std::vector<std::string>{"late has 2"});
    CHECK(held[1]->release());
    CHECK(told.back() == "freed has 2");
    CHECK(permits_held(claims, "k").value().size() == 2);
  }
  CHECK(process.engine().stats().waiters == 0);
}

TEST_CASE("semaphore: a waiter sees the end of a holder whose slot came after it",
          "[patterns][semaphore][wait]") {
  Process process;
  Holders holders{process};
  Claims& claims = holders.claims();
  Semaphore* const first = holders.take(2);
  Semaphore* const second = holders.take(2);
  std::uint32_t slot = limits::permits_max;
  const auto note = [&](PermitOutcome&& found) { slot = found.slot; };
  CHECK(claim_permit_or_wait(claims, {.key = "k"}, 2, no_end, note) != 0);
  Semaphore* const more = holders.take(3);
  REQUIRE(more != nullptr);
  CHECK(second->release());
  CHECK(slot == limits::permits_max);  // two are held
  CHECK(more->release());
  process.clock().advance(Millis{100});
  process.engine().advance();
  CHECK(slot == 1);
  CHECK(first->release());
}

TEST_CASE("semaphore: a permit that was waited for is counted, however long the wait was",
          "[patterns][semaphore][wait]") {
  Process process;
  Claims claims = process.claims("pools", policies::lock);
  std::vector<PermitOutcome> held;
  for (unsigned i = 0; i < 2; ++i) held.push_back(claim_permit(claims, {.key = "k"}, 2));
  for (const PermitOutcome& each : held) {
    REQUIRE(claims.renew({.key = each.key, .epoch = each.claim.epoch, .lease = Millis{864'000'000}})
                .answer == OwnerAnswer::ok);
  }
  bool granted = false;
  const auto note = [&](PermitOutcome&& found) {
    granted = found.claim.answer == ClaimAnswer::granted;
  };
  CHECK(claim_permit_or_wait(claims, {.key = "k"}, 2, no_end, note) != 0);
  process.clock().advance(Millis{2LL * 86'400'000});
  process.engine().advance();
  REQUIRE_FALSE(process.engine().store().exists("pools:{k}#").value());
  REQUIRE(claims.release({.key = held[1].key, .epoch = held[1].claim.epoch}).answer ==
          OwnerAnswer::ok);
  CHECK(granted);
  CHECK(permits_held(claims, "k").value().size() == 2);
}

TEST_CASE("semaphore: a callback that a release runs may ask the object that releases",
          "[patterns][semaphore][wait]") {
  Process process;
  Claims claims = process.claims("pools", policies::lock);
  Semaphore one{claims, "k", {.permits = 1}};
  REQUIRE(one.try_acquire());
  bool is_held = true;
  const auto ask = [&](PermitOutcome&&) { is_held = one.is_held(); };
  CHECK(claim_permit_or_wait(claims, {.key = "k"}, 1, no_end, ask) != 0);
  CHECK(one.release());
  CHECK_FALSE(is_held);
  CHECK_FALSE(one.release());
}

TEST_CASE("semaphore: two that are too many together do not both stay",
          "[patterns][semaphore][race]") {
  std::unique_ptr<Engine> engine = Engine::open().value();
  Claims claims = engine->claims("pools", policies::lock).value();
  std::vector<PermitOutcome> wide;
  for (unsigned i = 0; i < 4; ++i) wide.push_back(claim_permit(claims, {.key = "k"}, 4));
  for (unsigned i = 0; i < 3; ++i) {
    REQUIRE(claims.release({.key = wide[i].key, .epoch = wide[i].claim.epoch}).answer ==
            OwnerAnswer::ok);
  }
  // Slot 3 is held under four permits. Of two permits one is left, and slots 0 and 1 are free.
  std::atomic<int> inside{0};
  std::atomic<bool> too_many{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (unsigned run = 0; run < 500; ++run) {
        const PermitOutcome found = claim_permit(claims, {.key = "k"}, 2);
        if (found.claim.answer != ClaimAnswer::granted) continue;
        if (inside.fetch_add(1, std::memory_order_relaxed) > 0) too_many = true;
        std::this_thread::yield();
        inside.fetch_sub(1, std::memory_order_relaxed);
        static_cast<void>(claims.release({.key = found.key, .epoch = found.claim.epoch}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(too_many);
}
