// See engine/claims/memos.hpp. The memos are the fields of one hash beside the claim: its key
// begins with "steps/", which no namespace can, so that it is no claim's key. One more field has
// the fingerprint of the payload that made them: a claim that was given back keeps none, and the
// next may be for another payload. Memos of releases before 0.2 have no such field and are taken as
// they are.
#include "engine/claims/memos.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "engine/api/engine_impl.hpp"
#include "engine/claims/logged_claims.hpp"
#include "semel/engine.hpp"
#include "semel/hashes.hpp"
#include "semel/store.hpp"

namespace semel::engine {
namespace {

struct MemoKeys {
  std::string claim;
  std::string memos;
  std::uint8_t db;
  [[nodiscard]] std::array<KeyRef, 2> refs() const noexcept {
    return {KeyRef{db, claim}, KeyRef{db, memos}};
  }
};

[[nodiscard]] MemoKeys keys_of(const Claims& claims, Bytes key) {
  std::string claim{claims.name()};
  claim.append(":").append(key);
  return {.claim = claim, .memos = "steps/" + claim, .db = claims.policy().db};
}

constexpr Bytes maker_field{"\0payload", 8};

[[nodiscard]] Status check_step(Bytes step) {
  if (!step.starts_with('\0')) return Done{};
  return Error{ErrorCode::bad_option, "a step's name begins with a NUL byte"};
}

[[nodiscard]] Error not_owner(Bytes step) {
  return {ErrorCode::not_owner, "step '" + std::string{step} + "'"};
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

/// An owner that was replaced while it ran must not leave memos to the next: the claim is looked at
/// and the memos are changed in one section.
[[nodiscard]] Status keep_memo_here(Claims& claims, const Memo& memo) {
  const MemoKeys keys = keys_of(claims, memo.key);
  SEMEL_TRY(section, claims.engine().section(keys.refs()));
  SEMEL_TRY(view, claims.get(memo.key));
  if (view.state != ClaimState::held || view.epoch != memo.epoch ||
      view.lease_remaining == Millis{0}) {
    return not_owner(memo.step);
  }
  Hashes memos = claims.engine().hashes(keys.db);
  SEMEL_TRY(maker, memos.hget(keys.memos, maker_field));
  const std::string mine = text_of(view.fingerprint);
  const std::array pairs{FieldValue{memo.step, memo.bytes}, FieldValue{maker_field, mine}};
  Store store = claims.engine().store(keys.db);
  if (differ(maker, view.fingerprint)) SEMEL_CHECK(store.del(keys.memos));
  // A claim without a fingerprint goes on with the memos that are there, and they stay whose they
  // were.
  const bool keeps_maker = view.fingerprint.algorithm == 0;
  SEMEL_TRY(fresh, memos.hset(keys.memos, std::span{pairs}.first(keeps_maker ? 1 : 2)));
  // As long as the claim itself is remembered if its owner goes silent now.
  const Millis kept = view.lease_remaining + claims.policy().attempts_ttl;
  const Expiry expiry = Expiry::in(std::min(kept, limits::ttl_max));
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

[[nodiscard]] OwnerOutcome not_completed(ErrorCode why) {
  OwnerOutcome outcome;
  outcome.answer = OwnerAnswer::refused;
  outcome.error = why;
  return outcome;
}

}  // namespace

Result<std::optional<std::string>> recall_memo(Claims& claims, const Memo& memo) {
  SEMEL_CHECK(check_step(memo.step));
  if (const LoggedCall log = impl_of(claims.engine()).log_for_call()) {
    // Before the step: what it brings about could not be remembered.
    SEMEL_CHECK(log->knows({replication::MemoCommand{}}));
  }
  const MemoKeys keys = keys_of(claims, memo.key);
  const std::array fields{memo.step, maker_field};
  SEMEL_TRY(found, claims.engine().hashes(keys.db).hmget(keys.memos, fields));
  if (!found[0] || memo.epoch == 0) return std::move(found[0]);
  SEMEL_TRY(view, claims.get(memo.key));
  if (view.epoch != memo.epoch) return not_owner(memo.step);
  if (differ(found[1], view.fingerprint)) return std::optional<std::string>{};
  return std::move(found[0]);
}

Status keep_memo(Claims& claims, const Memo& memo) {
  SEMEL_CHECK(check_step(memo.step));
  if (const LoggedCall log = impl_of(claims.engine()).log_for_call()) {
    // A second decision is as good as the first: the epoch is the same, and so are the bytes.
    const auto kept = decided(
        *log,
        {replication::MemoCommand{claims.name(), memo.key, memo.epoch, memo.step, memo.bytes}},
        Repeat::safe);
    if (kept.ok()) return Done{};
    return kept.error().code == ErrorCode::not_owner ? not_owner(memo.step) : kept.error();
  }
  return keep_memo_here(claims, memo);
}

OwnerOutcome complete_with_memos(Claims& claims, const OwnerCall& call) {
  Engine& engine = claims.engine();
  if (const LoggedCall log = impl_of(engine).log_for_call()) {
    // There are no memos then, and the work is done all the same.
    if (!log->knows({replication::MemoCommand{}})) return claims.complete(call);
    return complete_with_memos_logged(*log, {engine, ClaimsParts::names_of(claims)}, call);
  }
  const MemoKeys keys = keys_of(claims, call.key);
  Result<Section> section = engine.section(keys.refs());
  if (!section) return not_completed(section.error().code);
  OwnerOutcome outcome = claims.complete(call);
  if (outcome.error == ErrorCode::ok && outcome.answer == OwnerAnswer::ok) {
    // The memos end by themselves; that the work is done must not depend on them.
    static_cast<void>(engine.store(keys.db).del(keys.memos));
  }
  if (const Status ended = section->commit(); !ended) return not_completed(ended.error().code);
  return outcome;
}

}  // namespace semel::engine
