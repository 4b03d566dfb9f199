// One key and the claim rules, without a table: applies each decision to itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include "tests/support/catch.hpp"

#include "engine/rules/claim_rules.hpp"
#include "engine/rules/claim_view.hpp"
#include "engine/rules/memo_rules.hpp"
#include "engine/rules/operator_rules.hpp"

namespace semel::engine {

inline constexpr std::int64_t unix_zero = 1'700'000'000'000;

struct ClaimBench {
  Policy policy{};
  Timestamp now{Millis{1'000'000}};
  Version version = 100;
  bool owner_dead = false;
  std::int64_t unix_now = unix_zero;

  bool present = false;
  Kind kind = Kind::claim;
  std::string value;
  Timestamp due = no_end;
  Version seen_version = 0;
  Decision last{};

  ClaimBench() {
    policy.lease = Millis{1000};
    policy.result_ttl = Millis{5000};
    policy.failure_ttl = Millis{3000};
    policy.attempts_ttl = Millis{2000};
    policy.retry_after_max = Millis{400};
  }

  [[nodiscard]] std::optional<RecordView> live() const {
    if (!present || now >= due) return std::nullopt;
    return RecordView{.kind = kind, .value = value, .due = due, .version = seen_version};
  }
  void commit(const Decision& decision) {
    last = decision;
    last.value = {};  // it pointed into the scratch
    if (decision.action == Action::keep) return;
    ++version;
    present = decision.action == Action::store;
    if (!present) return;
    kind = decision.kind;
    value = std::string{decision.value};
    due = decision.due;
    seen_version = version;
  }
  /// When the wheel would look at the record.
  [[nodiscard]] Timestamp wake() const { return claim_wake_of(value, due); }
  [[nodiscard]] ClaimFacts facts() const {
    return {.now = now,
            .candidate = version + 1,
            .owner_dead = owner_dead,
            .session = 7,
            .unix_now = unix_now};
  }

  ClaimOutcome claim(const ClaimRequest& request = {}) {
    Scratch scratch;
    ClaimOutcome outcome;
    ClaimFacts given = facts();
    const auto record = live();
    commit(decide_claim(record ? &*record : nullptr, request, policy, given, outcome, scratch));
    return outcome;
  }
  OwnerOutcome call(OwnerVerb verb, const OwnerCall& what) {
    Scratch scratch;
    OwnerOutcome outcome;
    const auto record = live();
    commit(
        decide_owner(verb, record ? &*record : nullptr, what, policy, facts(), outcome, scratch));
    return outcome;
  }
  OwnerOutcome complete(Epoch epoch, Bytes result = "result") {
    return call(OwnerVerb::complete, {.epoch = epoch, .payload = result});
  }
  OwnerOutcome fail(Epoch epoch, std::optional<Policy::OnFailure> then = {},
                    Bytes failure = "failure") {
    return call(OwnerVerb::fail, {.epoch = epoch, .payload = failure, .on_failure = then});
  }
  OwnerOutcome renew(Epoch epoch, std::optional<Millis> lease = {}) {
    return call(OwnerVerb::renew, {.epoch = epoch, .lease = lease});
  }
  OwnerOutcome release(Epoch epoch) { return call(OwnerVerb::release, {.epoch = epoch}); }
  MemoOutcome remember(Epoch epoch, Bytes step, Bytes bytes,
                       std::size_t bytes_limit = limits::memos_bytes_max) {
    Scratch scratch;
    MemoOutcome outcome;
    const auto record = live();
    commit(
        decide_remember(record ? &*record : nullptr,
                        {.epoch = epoch, .step = step, .bytes = bytes, .bytes_limit = bytes_limit},
                        policy, facts(), outcome, scratch));
    return outcome;
  }
  MemoOutcome recall(Epoch epoch, Bytes step, std::size_t bytes_limit = limits::memos_bytes_max) {
    MemoOutcome outcome;
    const auto record = live();
    decide_recall(record ? &*record : nullptr,
                  {.epoch = epoch, .step = step, .bytes_limit = bytes_limit}, facts(), outcome);
    last = {};
    return outcome;
  }
  OperatorOutcome forget() {
    OperatorOutcome outcome;
    const auto record = live();
    commit(decide_forget(record ? &*record : nullptr, outcome));
    return outcome;
  }
  OperatorOutcome resolve(Resolution how, Bytes result = {}) {
    Scratch scratch;
    OperatorOutcome outcome;
    const auto record = live();
    commit(decide_resolve(record ? &*record : nullptr, how, result, policy, now, outcome, scratch));
    return outcome;
  }
  ClaimView view() {
    ClaimView seen;
    const auto record = live();
    REQUIRE(view_claim(record ? &*record : nullptr, policy, facts(), seen) == ErrorCode::ok);
    return seen;
  }
  [[nodiscard]] ClaimRecord record() const {
    ClaimRecord read;
    REQUIRE(present);
    REQUIRE(decode(value, read));
    return read;
  }
  void trim_now() {
    Scratch scratch;
    const auto record = live();
    REQUIRE(record);
    commit(trim(*record, now, scratch));
  }
  bool changed() const { return last.action != Action::keep; }

  /// held, with its lease just over.
  Epoch overdue() {
    const Epoch epoch = claim({.owner = "first"}).epoch;
    now += policy.lease;
    return epoch;
  }
};

inline Fingerprint print(std::uint8_t algorithm, std::uint8_t fill) {
  Fingerprint made{.algorithm = algorithm, .digest = {}};
  made.digest.fill(fill);
  return made;
}

inline ClaimId id_of(std::uint8_t fill) {
  ClaimId id{};
  id.fill(fill);
  return id;
}

}  // namespace semel::engine
