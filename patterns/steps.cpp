// See semel/patterns/steps.hpp. The memos are the fields of one hash beside the claim: its key
// begins with "steps/", which no namespace can, so that it is no claim's key. One more field has
// the fingerprint of the payload that made them: a claim that was given back keeps none, and the
// next may be for another payload. Memos of releases before 0.2 have no such field and are taken as
// they are.
#include "semel/patterns/steps.hpp"

#include <array>
#include <new>

#include "semel/hashes.hpp"
#include "semel/store.hpp"

namespace semel {
namespace {

struct StepKeys {
  std::string claim;
  std::string memos;
  std::uint8_t db;
  [[nodiscard]] std::array<KeyRef, 2> refs() const noexcept {
    return {KeyRef{db, claim}, KeyRef{db, memos}};
  }
};

[[nodiscard]] StepKeys keys_of(const Claims& claims, Bytes key) {
  std::string claim{claims.name()};
  claim.append(":").append(key);
  return {.claim = claim, .memos = "steps/" + claim, .db = claims.policy().db};
}

constexpr Bytes maker_field{"\0payload", 8};

[[nodiscard]] Status check_name(Bytes name) {
  if (!name.starts_with('\0')) return Done{};
  return Error{ErrorCode::bad_option, "a step's name begins with a NUL byte"};
}

[[nodiscard]] std::string text_of(const Fingerprint& fingerprint) {
  std::string text(1, static_cast<char>(fingerprint.algorithm));
  for (const std::uint8_t byte : fingerprint.digest) text += static_cast<char>(byte);
  return text;
}

/// By the rule of claims: fingerprints of different algorithms are not compared.
[[nodiscard]] bool differ(const std::optional<std::string>& maker, const Fingerprint& mine) {
  if (!maker || maker->empty() || mine.algorithm == 0) return false;
  return static_cast<std::uint8_t>(maker->front()) == mine.algorithm && *maker != text_of(mine);
}

}  // namespace

Result<std::optional<std::string>> Steps::recall(Bytes name) {
  used_ = true;
  SEMEL_CHECK(check_name(name));
  const StepKeys keys = keys_of(claims_, key_);
  const std::array fields{name, maker_field};
  SEMEL_TRY(memo, claims_.engine().hashes(keys.db).hmget(keys.memos, fields));
  if (!memo[0] || epoch_ == 0) return std::move(memo[0]);
  SEMEL_TRY(view, claims_.get(key_));
  if (view.epoch != epoch_) {
    return Error{ErrorCode::not_owner, "step '" + std::string{name} + "'"};
  }
  if (differ(memo[1], view.fingerprint)) return std::optional<std::string>{};
  return std::move(memo[0]);
}

Status Steps::remember(Bytes name, Bytes bytes) {
  used_ = true;
  SEMEL_CHECK(check_name(name));
  const StepKeys keys = keys_of(claims_, key_);
  SEMEL_TRY(section, claims_.engine().section(keys.refs()));
  // Both in one step: an owner that was replaced while it ran must not leave memos to the next.
  SEMEL_TRY(view, claims_.get(key_));
  if (view.state != ClaimState::held || view.epoch != epoch_ || view.lease_remaining == Millis{0}) {
    return Error{ErrorCode::not_owner, "step '" + std::string{name} + "'"};
  }
  Hashes memos = claims_.engine().hashes(keys.db);
  SEMEL_TRY(maker, memos.hget(keys.memos, maker_field));
  const bool foreign = differ(maker, view.fingerprint);
  const std::string mine = text_of(view.fingerprint);
  const std::array pairs{FieldValue{name, bytes}, FieldValue{maker_field, mine}};
  // A claim without a fingerprint goes on with the memos that are there, and they stay whose they
  // were.
  const bool keeps_maker = view.fingerprint.algorithm == 0;
  if (foreign) {
    SEMEL_CHECK(claims_.engine().store(keys.db).del(keys.memos));
  }
  SEMEL_TRY(fresh, memos.hset(keys.memos, std::span{pairs}.first(keeps_maker ? 1 : 2)));
  // As long as the claim itself is remembered if its owner goes silent now.
  const Millis kept = view.lease_remaining + claims_.policy().attempts_ttl;
  const Expiry expiry = Expiry::in(std::min(kept, limits::ttl_max));
  Store store = claims_.engine().store(keys.db);
  const auto set_end = [&]() -> Result<bool> {
    try {
      return store.expire(keys.memos, expiry);
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::memory_full, {}};
    }
  };
  if (const Result<bool> ends = set_end(); !ends.ok()) {
    // The first memos have no end yet, and would stay for good; later ones end with those before.
    // If they cannot be deleted either, the caller still gets the first error.
    const Result<std::int64_t> fields = memos.hlen(keys.memos);
    if (fields.ok() && *fields == fresh) static_cast<void>(store.del(keys.memos));
    return ends.error();
  }
  return section.commit();
}

OwnerOutcome Steps::complete(Bytes result, ResultKeeping keeping) {
  const OwnerCall call{.key = key_, .epoch = epoch_, .payload = result, .keeping = keeping};
  if (!used_) return claims_.complete(call);
  const StepKeys keys = keys_of(claims_, key_);
  Result<Section> section = claims_.engine().section(keys.refs());
  if (!section) {
    OwnerOutcome refused;
    refused.answer = OwnerAnswer::refused;
    refused.error = section.error().code;
    return refused;
  }
  OwnerOutcome outcome = claims_.complete(call);
  if (outcome.error == ErrorCode::ok && outcome.answer == OwnerAnswer::ok) {
    // The memos end by themselves; that the work is done must not depend on them.
    static_cast<void>(claims_.engine().store(keys.db).del(keys.memos));
  }
  if (const Status ended = section->commit(); !ended) {
    outcome = {};
    outcome.answer = OwnerAnswer::refused;
    outcome.error = ended.error().code;
  }
  return outcome;
}

}  // namespace semel
