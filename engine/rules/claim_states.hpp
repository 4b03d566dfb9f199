// The states of a claim's record: how each is reported, and how it is entered. Shared by the
// decisions about claims (claim_rules.hpp, operator_rules.hpp) and their display (claim_view.hpp).
// Inline, because each claim and completion passes here. Boundaries: a time that is reached is over
// (now >= until).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#ifndef XXH_INLINE_ALL  // the build sets it
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include "engine/rules/claim_codec.hpp"
#include "engine/rules/record.hpp"
#include "semel/claims.hpp"

namespace semel::engine {

// --- reported -------------------------------------------------------------------------------

using ResultDigest = std::array<std::uint8_t, 16>;

[[nodiscard]] inline ResultDigest result_digest_of(Bytes result) noexcept {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(result.data(), result.size()));
  ResultDigest digest;
  static_assert(sizeof canonical.digest == sizeof digest);
  std::memcpy(digest.data(), canonical.digest, sizeof digest);
  return digest;
}

/// The digest is made when the bytes go, not when they come: a completion that is never trimmed
/// never pays for it, and while the bytes are there comparing them is exact.
[[nodiscard]] inline bool same_result(const ClaimRecord& record, Bytes result) noexcept {
  if (record.result_expired) return record.result_digest == result_digest_of(result);
  return record.result == result;
}

/// Not finished: its owner may still end it.
[[nodiscard]] inline bool is_open(const ClaimRecord& record) noexcept {
  return record.state == ClaimState::held || record.state == ClaimState::in_doubt;
}

/// Of a held claim.
[[nodiscard]] inline bool lease_over(Timestamp lease_until, Timestamp now,
                                     bool owner_dead) noexcept {
  return owner_dead || now >= lease_until;
}
/// An owner in doubt has given its lease up.
[[nodiscard]] inline bool lease_over(const ClaimRecord& record, Timestamp now,
                                     bool owner_dead) noexcept {
  return record.state == ClaimState::in_doubt || lease_over(record.lease_until, now, owner_dead);
}

[[nodiscard]] inline bool result_over(const ClaimRecord& record, Timestamp now) noexcept {
  return record.result_expired || now >= record.result_until;
}

enum class ClaimFound : std::uint8_t { absent, claim, wrong_kind };

/// Reads `live`; `record` is meant when claim (any stored state but vacant), and holds the
/// attempts and memos of a vacant record when absent.
[[nodiscard]] inline ClaimFound read_claim(const RecordView* live, ClaimRecord& record) noexcept {
  if (live == nullptr) return ClaimFound::absent;
  if (live->kind != Kind::claim || !decode(live->value, record)) return ClaimFound::wrong_kind;
  const bool there = record.state != ClaimState::vacant && record.state != ClaimState::absent;
  return there ? ClaimFound::claim : ClaimFound::absent;
}

// --- entered --------------------------------------------------------------------------------

[[nodiscard]] inline Decision store_claim(const ClaimRecord& record, Timestamp due,
                                          Scratch& scratch) {
  return {
      .action = Action::store, .kind = Kind::claim, .due = due, .value = encode(record, scratch)};
}

inline constexpr Decision erase_claim{
    .action = Action::erase, .kind = Kind::claim, .due = no_end, .value = {}};

/// Of a claim that was granted: its holder must be able to end it.
[[nodiscard]] inline Decision giving_up(Decision decision) noexcept {
  decision.gives_up = decision.action == Action::store;
  return decision;
}

/// Until when a key that is free again is remembered. A key that was issued for longer stays until
/// the end it was issued with: while it is held, unique_until is that end.
[[nodiscard]] inline Timestamp given_back_until(const ClaimRecord& record, const Policy& policy,
                                                Timestamp when) noexcept {
  return std::max(when + policy.attempts_ttl, record.unique_until);
}

/// A record that a policy with doubt holds must not end by itself: its end would be a second run.
[[nodiscard]] inline Timestamp held_due(Timestamp lease_until, Timestamp issued_until,
                                        const Policy& policy) noexcept {
  if (policy.on_lease_end == Policy::OnLeaseEnd::in_doubt) return no_end;
  return std::max(lease_until + policy.attempts_ttl, issued_until);
}
[[nodiscard]] inline Timestamp held_due(const ClaimRecord& record, const Policy& policy) noexcept {
  return held_due(record.lease_until, record.unique_until, policy);
}

[[nodiscard]] inline Timestamp result_end_of(const Policy& policy, Timestamp now) noexcept {
  return now + policy.result_ttl;
}
[[nodiscard]] inline Timestamp done_end_of(const Policy& policy, Timestamp now) noexcept {
  return now + std::max(policy.unique_ttl, policy.result_ttl);
}

// A sliding window. The record keeps the latest end as its unique_until, and ends at `due`, which
// each duplicate moves towards it. Every end is set a share of the window later than the window
// asks for, and moved only once less than the window is left: so duplicates without a pause write
// one record in each 1/16 of the window, and none comes within the window of the one before it and
// finds the record gone.
inline constexpr int sliding_shares = 16;
/// The end that is written for a time to live, counted from now.
[[nodiscard]] inline Timestamp sliding_end_of(Millis ttl, Timestamp now,
                                              Timestamp latest) noexcept {
  return std::min(now + ttl + ttl / sliding_shares, latest);
}
/// Whether `until` leaves less than that.
[[nodiscard]] inline bool falls_short(Timestamp until, Millis ttl, Timestamp now,
                                      Timestamp latest) noexcept {
  return until < std::min(now + ttl, latest);
}
[[nodiscard]] inline Millis window_of(const Policy& policy) noexcept {
  return std::max(policy.unique_ttl, policy.result_ttl);
}
/// Of a completion in a sliding window.
[[nodiscard]] inline DoneEnds sliding_ends_of(const Policy& policy, Timestamp now) noexcept {
  const Timestamp latest = now + policy.sliding_max;
  return {sliding_end_of(policy.result_ttl, now, latest), latest,
          sliding_end_of(window_of(policy), now, latest)};
}

/// Whether a duplicate of done work moves the ends of its record, which is at `due`. A record that
/// was completed while the window was fixed has no later end than its own; its result may be kept
/// up to that. `margin`: whether it may move them at a time that is up to so much later.
[[nodiscard]] inline bool slides(const ClaimRecord& record, Timestamp due, const Policy& policy,
                                 Timestamp now, Millis margin = Millis{0}) noexcept {
  if (policy.sliding_max == Millis{0}) return false;
  const Timestamp latest = record.unique_until;
  const Timestamp last = now + margin;
  return falls_short(due, window_of(policy), last, latest) ||
         (!result_over(record, now) &&
          falls_short(record.result_until, policy.result_ttl, last, latest));
}
/// Of a record that slides: moves its ends. Returns the record's own.
[[nodiscard]] inline Timestamp slide(ClaimRecord& record, Timestamp due, const Policy& policy,
                                     Timestamp now) noexcept {
  const Timestamp latest = record.unique_until;
  if (!result_over(record, now)) {
    record.result_until =
        std::max(record.result_until, sliding_end_of(policy.result_ttl, now, latest));
  }
  return std::max(due, sliding_end_of(window_of(policy), now, latest));
}

[[nodiscard, gnu::always_inline]] inline DoneEnds done_ends_of(const Policy& policy,
                                                               Timestamp now) noexcept {
  if (policy.sliding_max != Millis{0}) [[unlikely]]
    return sliding_ends_of(policy, now);
  const Timestamp until = done_end_of(policy, now);
  return {result_end_of(policy, now), until, until};
}

/// Whether `record`, a claim's bytes, is held by the caller, and its completion leaves a result
/// with an end that has bytes: then what store_done() makes is written without a record of all that
/// a claim can have.
[[nodiscard, gnu::always_inline]] inline bool is_plain_completion(Bytes record,
                                                                  const OwnerCall& call,
                                                                  const DoneEnds& ends,
                                                                  HeldClaim& held) noexcept {
  return read_held(record, held) && held.epoch == call.epoch &&
         call.keeping != ResultKeeping::none && ends.result_until > Timestamp{};
}

/// Whether a caller says no more than its key, as most do: then what a first grant makes is written
/// without a record of all that a claim can have.
[[nodiscard, gnu::always_inline]] inline bool is_bare(const ClaimRequest& request) noexcept {
  return request.fingerprint.algorithm == 0 && !request.claim_id && !has_labels(request);
}
[[nodiscard, gnu::always_inline]] inline Timestamp lease_end_of(const ClaimRequest& request,
                                                                const Policy& policy,
                                                                Timestamp now) noexcept {
  return now + Millis{request.lease.value_or(policy.lease)};
}

/// `record` is the one read, and becomes the one stored: these are too large to be copied about.
[[nodiscard]] inline Decision store_done(ClaimRecord& record, Bytes result, const Policy& policy,
                                         Timestamp now, Scratch& scratch, bool drop = false) {
  record.state = ClaimState::done;
  record.session = 0;
  record.lease_until = Timestamp{};
  record.claim_id.reset();
  record.memos = {};  // the work is over
  record.result = result;
  const DoneEnds ends = done_ends_of(policy, now);
  record.result_until = ends.result_until;
  record.unique_until = ends.unique_until;
  if (drop) {  // as after its expiry: a digest, for an owner that repeats it
    record.result_digest = result_digest_of(result);
    record.result = {};
    record.result_expired = true;
  }
  return store_claim(record, ends.due, scratch);
}

[[nodiscard]] inline Decision store_failed(ClaimRecord& record, Bytes failure, bool poison,
                                           const Policy& policy, Timestamp now, Scratch& scratch) {
  record.state = ClaimState::failed;
  record.poison = poison;
  record.session = 0;
  record.lease_until = Timestamp{};
  record.claim_id.reset();
  record.memos = {};  // the work is over
  record.result = failure;
  record.result_until = now + policy.failure_ttl;
  record.unique_until = record.result_until;
  return store_claim(record, record.unique_until, scratch);
}

/// Must not end by itself: its end would be a second run.
[[nodiscard]] inline Decision store_doubt(ClaimRecord& record, Bytes known, Scratch& scratch) {
  record.state = ClaimState::in_doubt;
  record.session = 0;
  record.lease_until = Timestamp{};
  record.claim_id.reset();
  record.result = known;
  return store_claim(record, no_end, scratch);
}

/// Without an owner, and free to be claimed. The next grant goes on with the memos.
[[nodiscard]] inline Decision store_vacant(std::uint32_t attempts, Epoch epoch, Bytes memos,
                                           Timestamp due, Scratch& scratch) {
  ClaimRecord vacant;
  vacant.state = ClaimState::vacant;
  vacant.attempts = attempts;
  vacant.epoch = epoch;
  vacant.memos = memos;
  return store_claim(vacant, due, scratch);
}

/// As if `record` had never been granted, except for the memos of its steps; an issued key can be
/// claimed again.
[[nodiscard]] inline Decision give_back(const ClaimRecord& record, const Policy& policy,
                                        Timestamp now, Scratch& scratch) {
  if (!policy.issued && record.memos.empty()) return erase_claim;
  return store_vacant(record.attempts - 1, record.epoch, record.memos,
                      given_back_until(record, policy, now), scratch);
}

}  // namespace semel::engine
