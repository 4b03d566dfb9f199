// What steps of a claim's work do to its record, cell by cell.
// Words: memo = what a step has brought about; payload = the fingerprint of a claim; owner = the
//        holder of the epoch; room = what the limits leave; held, over and vacant as in
//        claim_rules_test.cpp.
#include "engine/rules/memo_rules.hpp"

#include <string>

#include "engine/kinds/kinds.hpp"
#include "engine/rules/memo_list.hpp"
#include "tests/engine/claim_bench.hpp"

using namespace semel;
using namespace semel::engine;
using namespace std::chrono_literals;
using Bench = ClaimBench;

namespace {

constexpr Timestamp never = no_end;

Fingerprint payload(std::uint8_t algorithm, std::uint8_t digest) {
  Fingerprint made{.algorithm = algorithm};
  made.digest.fill(digest);
  return made;
}

/// Held by the returned epoch, with the memo `a` of the step `s`.
Epoch held_with_memo(Bench& b) {
  const Epoch epoch = b.claim().epoch;
  REQUIRE(b.remember(epoch, "s", "a").error == ErrorCode::ok);
  return epoch;
}

}  // namespace

// --- ownership -----------------------------------------------------------------------------------

TEST_CASE("recall: an epoch that is not the record's is not_owner, memo or none",
          "[engine][memos][once-again-1]") {
  Bench b;
  const Epoch old = b.claim().epoch;
  b.now += 1000ms;
  const Epoch fresh = b.claim().epoch;
  for (const bool has_memo : {false, true}) {
    INFO(has_memo);
    if (has_memo) REQUIRE(b.remember(fresh, "s", "a").error == ErrorCode::ok);
    for (const Epoch other : {old, fresh + 1, Epoch{0}}) {
      CHECK(b.recall(other, "s").error == ErrorCode::not_owner);
      CHECK(b.remember(other, "s", "x").error == ErrorCode::not_owner);
      CHECK_FALSE(b.changed());
    }
    CHECK(b.recall(fresh, "s").error == ErrorCode::ok);
    CHECK(b.recall(fresh, "s").memo.has_value() == has_memo);
  }
}

TEST_CASE("recall: an owner is one up to the last millisecond of its lease",
          "[engine][memos][once-again-1]") {
  Bench b;
  const Epoch epoch = held_with_memo(b);
  b.now += 999ms;
  CHECK(b.recall(epoch, "s").memo == "a");
  CHECK(b.recall(epoch, "t").error == ErrorCode::ok);
  CHECK(b.remember(epoch, "s", "a").error == ErrorCode::ok);
  b.owner_dead = true;
  CHECK(b.recall(epoch, "s").error == ErrorCode::not_owner);
  CHECK(b.remember(epoch, "s", "b").error == ErrorCode::not_owner);
  b.owner_dead = false;
  b.now += 1ms;
  CHECK(b.recall(epoch, "s").error == ErrorCode::not_owner);
  CHECK(b.recall(epoch, "t").error == ErrorCode::not_owner);
  CHECK(b.remember(epoch, "s", "b").error == ErrorCode::not_owner);
}

TEST_CASE("recall: work that is not held is nobody's", "[engine][memos][once-again-1]") {
  using End = void (*)(Bench&, Epoch);
  const End ends[] = {
      [](Bench& b, Epoch e) { CHECK(b.complete(e).answer == OwnerAnswer::ok); },
      [](Bench& b, Epoch e) {
        CHECK(b.fail(e, Policy::OnFailure::keep).answer == OwnerAnswer::ok);
      },
      [](Bench& b, Epoch e) {
        CHECK(b.fail(e, Policy::OnFailure::in_doubt).answer == OwnerAnswer::ok);
      },
      [](Bench& b, Epoch e) {
        CHECK(b.fail(e, Policy::OnFailure::release).answer == OwnerAnswer::ok);
      },
      [](Bench& b, Epoch e) { CHECK(b.release(e).answer == OwnerAnswer::ok); },
      [](Bench& b, Epoch) { CHECK(b.resolve(Resolution::done).found); },
      [](Bench& b, Epoch) { CHECK(b.resolve(Resolution::released).found); },
      [](Bench& b, Epoch) { CHECK(b.forget().found); },
      [](Bench& b, Epoch) { b.present = false; },
  };
  for (const bool has_memo : {false, true}) {
    for (const End end : ends) {
      Bench b;
      const Epoch epoch = b.claim().epoch;
      if (has_memo) REQUIRE(b.remember(epoch, "s", "a").error == ErrorCode::ok);
      end(b, epoch);
      CHECK(b.recall(epoch, "s").error == ErrorCode::not_owner);
      CHECK(b.remember(epoch, "s", "x").error == ErrorCode::not_owner);
      CHECK_FALSE(b.changed());
    }
  }
}

TEST_CASE("recall: another kind of record under the key is wrong_kind", "[engine][memos]") {
  Bench b;
  b.present = true;
  b.kind = Kind::string;
  b.due = never;
  CHECK(b.recall(1, "s").error == ErrorCode::wrong_kind);
  CHECK(b.remember(1, "s", "x").error == ErrorCode::wrong_kind);
}

// --- the life of a memo --------------------------------------------------------------------------

TEST_CASE("remember: the record ends when it would without memos",
          "[engine][memos][once-again-2]") {
  Bench b;
  const Epoch epoch = b.claim().epoch;
  const Timestamp due = b.due;
  b.now += 500ms;
  REQUIRE(b.remember(epoch, "s", "a").error == ErrorCode::ok);
  CHECK(b.due == due);
  CHECK(b.record().lease_until == due - b.policy.attempts_ttl);
  REQUIRE(b.renew(epoch, 90'000ms).answer == OwnerAnswer::ok);
  CHECK(b.due == b.now + 90'000ms + b.policy.attempts_ttl);
  b.now += 89'999ms;
  CHECK(b.recall(epoch, "s").memo == "a");

  Bench doubts;
  doubts.policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  REQUIRE(doubts.remember(doubts.claim().epoch, "s", "a").error == ErrorCode::ok);
  CHECK(doubts.due == never);
}

TEST_CASE("memos: go on to the next owner however the last one gave up",
          "[engine][memos][once-again-2]") {
  using End = void (*)(Bench&, Epoch);
  const End ends[] = {
      [](Bench& b, Epoch) { b.now += 1000ms; },  // taken over
      [](Bench& b, Epoch e) { REQUIRE(b.release(e).answer == OwnerAnswer::ok); },
      [](Bench& b, Epoch e) {
        REQUIRE(b.fail(e, Policy::OnFailure::release).answer == OwnerAnswer::ok);
      },
      [](Bench& b, Epoch e) {
        REQUIRE(b.fail(e, Policy::OnFailure::in_doubt).answer == OwnerAnswer::ok);
        CHECK(b.due == never);
        b.now += 25h;
        REQUIRE(b.resolve(Resolution::released).found);
      },
  };
  for (const End end : ends) {
    for (const bool has_limit : {false, true}) {
      Bench b;
      if (has_limit) b.policy.attempts_max = 5;
      const Epoch first = held_with_memo(b);
      end(b, first);
      const ClaimOutcome next = b.claim();
      REQUIRE(next.answer == ClaimAnswer::granted);
      CHECK(b.recall(next.epoch, "s").memo == "a");
      CHECK(b.recall(first, "s").error == ErrorCode::not_owner);
    }
  }
}

TEST_CASE("memos: what is given back with memos answers as absent, for attempts_ttl",
          "[engine][memos]") {
  Bench b;
  const Epoch epoch = held_with_memo(b);
  REQUIRE(b.release(epoch).answer == OwnerAnswer::ok);
  CHECK(b.record().state == ClaimState::vacant);
  CHECK(b.due == b.now + b.policy.attempts_ttl);
  CHECK(b.view().state == ClaimState::absent);
  CHECK_FALSE(is_visible(Kind::claim, b.value));
  CHECK(b.release(epoch).answer == OwnerAnswer::unknown);
  CHECK_FALSE(b.resolve(Resolution::released).found);
  b.policy.window = 1000ms;
  CHECK(b.claim({.first_sent_unix_ms = unix_zero - 1000}).answer == ClaimAnswer::too_old);
  CHECK_FALSE(b.forget().found);
  CHECK_FALSE(b.present);

  Bench without;
  REQUIRE(without.release(without.claim().epoch).answer == OwnerAnswer::ok);
  CHECK_FALSE(without.present);  // as ever
}

TEST_CASE("memos: a release takes back its attempt, a failure does not", "[engine][memos]") {
  Bench b;
  REQUIRE(b.release(held_with_memo(b)).answer == OwnerAnswer::ok);
  const ClaimOutcome again = b.claim();
  CHECK(again.attempt == 1);
  REQUIRE(b.fail(again.epoch).answer == OwnerAnswer::ok);
  CHECK(b.claim().attempt == 2);
}

TEST_CASE("memos: end with the work", "[engine][memos][once-again-3]") {
  using End = void (*)(Bench&, Epoch);
  const End ends[] = {
      [](Bench& b, Epoch e) { REQUIRE(b.complete(e).answer == OwnerAnswer::ok); },
      [](Bench& b, Epoch e) {
        REQUIRE(b.fail(e, Policy::OnFailure::keep).answer == OwnerAnswer::ok);
      },
      [](Bench& b, Epoch) { REQUIRE(b.resolve(Resolution::done).found); },
      [](Bench& b, Epoch) { REQUIRE(b.forget().found); },
      [](Bench& b, Epoch) {  // poison
        b.policy.attempts_max = 1;
        b.now += 1000ms;
        REQUIRE(b.claim().poison);
      },
      [](Bench&, Epoch) {},  // nobody comes before attempts_ttl is over
  };
  for (const End end : ends) {
    Bench b;
    const Epoch epoch = held_with_memo(b);
    end(b, epoch);
    if (b.present && b.record().state != ClaimState::held) CHECK(b.record().memos.empty());
    b.policy.attempts_max = 0;
    b.now += 10'000ms;  // every end is over
    const ClaimOutcome next = b.claim();
    REQUIRE(next.answer == ClaimAnswer::granted);
    CHECK(b.recall(next.epoch, "s").error == ErrorCode::ok);
    CHECK(b.recall(next.epoch, "s").memo == std::nullopt);
  }
}

// --- payloads ------------------------------------------------------------------------------------

TEST_CASE("memos: payloads that take turns keep their own", "[engine][memos][once-again-3]") {
  Bench b;
  const auto attempt = [&](Fingerprint print, Bytes memo) {
    const ClaimOutcome grant = b.claim({.fingerprint = print});
    REQUIRE(grant.answer == ClaimAnswer::granted);
    const MemoOutcome known = b.recall(grant.epoch, "s");
    REQUIRE(known.error == ErrorCode::ok);
    if (!known.memo) REQUIRE(b.remember(grant.epoch, "s", memo).error == ErrorCode::ok);
    REQUIRE(b.fail(grant.epoch).answer == OwnerAnswer::ok);
    return known.memo;
  };
  CHECK(attempt(payload(1, 'A'), "a") == std::nullopt);
  CHECK(attempt(payload(1, 'B'), "b") == std::nullopt);
  CHECK(attempt(payload(1, 'A'), "a2") == "a");
  CHECK(attempt(payload(1, 'B'), "b2") == "b");
  // What cannot be compared takes the newest, and leaves the others.
  CHECK(attempt({}, "none") == "b");
  CHECK(attempt(payload(2, 'A'), "c") == "b");
  CHECK(attempt(payload(1, 'A'), "a3") == "a");
  CHECK(attempt(payload(1, 'C'), "c") == std::nullopt);
}

TEST_CASE("memos: of a step the payload's own comes first, then the newest that may be its own",
          "[engine][memos]") {
  std::string list;
  const auto add = [&](Fingerprint print, Bytes bytes) {
    list = with_memo(list, {.payload = print, .step = "s", .bytes = bytes});
  };
  add(payload(1, 1), "old");
  add({}, "none");
  add(payload(2, 1), "other algorithm");
  CHECK(find_memo(list, payload(1, 1), "s") == "old");
  CHECK(find_memo(list, {}, "s") == "none");
  CHECK(find_memo(list, payload(2, 1), "s") == "other algorithm");
  CHECK(find_memo(list, payload(1, 2), "s") == "other algorithm");
  CHECK(find_memo(list, payload(2, 2), "s") == "none");
  CHECK(find_memo(list, payload(3, 1), "s") == "other algorithm");
  CHECK(find_memo(list, payload(1, 1), "t") == std::nullopt);
  add(payload(1, 1), "new");  // in its own place, and the newest
  CHECK(find_memo(list, payload(1, 1), "s") == "new");
  CHECK(find_memo(list, payload(3, 1), "s") == "new");
  CHECK(size_with(list, {.payload = payload(1, 1), .step = "s"}).count == 3);
}

// --- bounds --------------------------------------------------------------------------------------

TEST_CASE("memos: a step's name has 1 to step_name_max bytes", "[engine][memos][limits]") {
  CHECK(check_step("") == ErrorCode::bad_option);
  CHECK(check_step("s") == ErrorCode::ok);
  CHECK(check_step(Bytes{"\0", 1}) == ErrorCode::ok);
  CHECK(check_step(std::string(limits::step_name_max, 's')) == ErrorCode::ok);
  CHECK(check_step(std::string(limits::step_name_max + 1, 's')) == ErrorCode::bad_option);
}

TEST_CASE("memos: a claim has memos_max of them", "[engine][memos][limits]") {
  Bench b;
  b.policy.lease = 3'600'000ms;
  const Epoch epoch = b.claim().epoch;
  for (std::size_t i = 0; i < limits::memos_max; ++i) {
    REQUIRE(b.recall(epoch, std::to_string(i)).error == ErrorCode::ok);
    REQUIRE(b.remember(epoch, std::to_string(i), "m").error == ErrorCode::ok);
  }
  const MemoOutcome no_room = b.recall(epoch, "more");  // said before the step runs
  CHECK(no_room.error == ErrorCode::value_too_long);
  CHECK(no_room.given == limits::memos_max + 1);
  CHECK(no_room.limit == limits::memos_max);
  CHECK(b.remember(epoch, "more", "m").error == ErrorCode::value_too_long);
  CHECK_FALSE(b.changed());
  CHECK(b.remember(epoch, "7", "again").error == ErrorCode::ok);
  CHECK(b.recall(epoch, "7").memo == "again");
}

TEST_CASE("memos: the bytes of all of a claim's are bounded", "[engine][memos][limits]") {
  Bench b;
  const Epoch epoch = b.claim({.fingerprint = payload(1, 1)}).epoch;
  constexpr std::size_t head = 1 + 16 + 2 + 4 + 1;  // with a name of one byte
  const std::size_t limit = 1000;
  REQUIRE(b.remember(epoch, "a", std::string(400 - head, 'm'), limit).error == ErrorCode::ok);
  const MemoOutcome too_long = b.remember(epoch, "b", std::string(601 - head, 'm'), limit);
  CHECK(too_long.error == ErrorCode::value_too_long);
  CHECK(too_long.given == limit + 1);
  CHECK(too_long.limit == limit);
  CHECK_FALSE(b.changed());
  CHECK(b.remember(epoch, "b", std::string(600 - head, 'm'), limit).error == ErrorCode::ok);
  CHECK(b.record().memos.size() == limit);
  CHECK(b.recall(epoch, "c", limit + head - 1).error == ErrorCode::value_too_long);
  CHECK(b.recall(epoch, "c", limit + head).error == ErrorCode::ok);
}

// --- bytes of a disk -----------------------------------------------------------------------------

TEST_CASE("memos: bytes that were cut or changed are never read beyond their end",
          "[engine][memos][codec]") {
  std::string list;
  list = with_memo(list, {.payload = payload(1, 1), .step = "one", .bytes = "first"});
  const std::size_t middle = list.size();
  list = with_memo(list, {.payload = {}, .step = "two", .bytes = "second"});
  CHECK(is_sound_memos({}));
  for (std::size_t size = 1; size <= list.size(); ++size) {
    const std::string cut = list.substr(0, size);
    CHECK(is_sound_memos(cut) == (size == middle || size == list.size()));
    CHECK(find_memo(cut, payload(1, 1), "none") == std::nullopt);
  }
  for (std::size_t at = 0; at < list.size(); ++at) {
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string changed = list;
      changed[at] = byte;
      MemoReader reader{changed};
      std::size_t read = 0;
      for (MemoView memo; reader.next(memo);) read += memo.step.size() + memo.bytes.size();
      CHECK(read <= changed.size());
    }
  }
  ClaimRecord record;
  record.state = ClaimState::held;
  record.memos = "\x01 no memo";
  Scratch scratch;
  CHECK_FALSE(is_sound(Kind::claim, encode(record, scratch)));
  record.memos = list;
  CHECK(is_sound(Kind::claim, encode(record, scratch)));
  record.memos = {};
  CHECK(is_sound(Kind::claim, encode(record, scratch)));
}
