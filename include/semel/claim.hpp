// Claims: an owner-fenced record of one piece of work. Words, requests and answers.
// The state machine itself is engine/rules/claim_rules.hpp; its table is docs/semantics.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "semel/limits.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

/// Digest of the work's payload. Fingerprints of different algorithms are never compared, so an
/// upgrade of the algorithm cannot turn old keys into mismatches. Algorithm 0 is "none given".
struct Fingerprint {
  std::uint8_t algorithm = 0;
  std::array<std::uint8_t, 16> digest{};
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// Chosen by the caller once per attempt, so that a claim whose reply was lost can be asked again.
using ClaimId = std::array<std::uint8_t, limits::claim_id_bytes>;

/// The lifetime of a claim's owner, if the engine knows it. 0: a remote owner, alive until its
/// lease ends. Other values come from Engine::open_session() and end with close_session().
using SessionId = std::uint64_t;

enum class ClaimState : std::uint8_t {
  absent,
  held,
  done,
  failed,    ///< kept failure
  in_doubt,  ///< must not run before resolve(): the lease ended in a namespace that never re-runs
             ///< by itself, or the owner reported an unknown outcome
  vacant,    ///< given back, with its attempts remembered: answers as absent. In a namespace of
             ///< issued keys: issued and unclaimed
};

/// A claim record as stored. Bytes point into the record and live as long as the callee says.
struct ClaimRecord {
  ClaimState state =
      ClaimState::absent;       ///< never absent when stored; in_doubt: reported by its owner
  bool result_expired = false;  ///< the bytes are gone, result_digest remains
  bool poison = false;          ///< failed by the attempt limit, not by an owner
  std::uint32_t attempts = 0;   ///< grants so far, this one included
  Epoch epoch = 0;
  SessionId session = 0;
  Timestamp lease_until{};
  Timestamp result_until{};
  Timestamp unique_until{};  ///< of done work in a sliding window: the latest end it can get
  Fingerprint fingerprint{};
  std::optional<ClaimId> claim_id;
  std::array<std::uint8_t, 16> result_digest{};
  Bytes owner;
  Bytes result;  ///< or the failure, or the owner's facts about its doubt
  Bytes memos;   ///< of the steps of unfinished work; packed by engine/rules/memo_list.hpp
};

/// The terms of a namespace. Times in milliseconds, each 1..limits::ttl_max; 0 only where stated.
struct Policy {
  enum class OnLeaseEnd : std::uint8_t {
    retry,     ///< the next claim takes over
    in_doubt,  ///< not re-run before resolve()
  };
  enum class OnFailure : std::uint8_t {
    release,   ///< the claim is given back: the next caller may run the work
    keep,      ///< the failure is final
    in_doubt,  ///< the effect is unknown: the work is not run again before resolve()
  };

  Millis lease{60'000};           ///< default lease of a claim
  Millis result_ttl{86'400'000};  ///< how long the answer is kept after completion
  Millis unique_ttl{0};  ///< how long the key stays taken; 0 or less than result_ttl: as long
  /// A sliding window: how long after its completion duplicates may keep a record at most; 0: they
  /// do not, the window is fixed. Each replay lets result_ttl and unique_ttl begin again, to the
  /// nearest 1/16 of them above. At least as long as these.
  Millis sliding_max{0};
  Millis failure_ttl{86'400'000};   ///< how long a kept failure is kept
  Millis attempts_ttl{86'400'000};  ///< how long attempts are remembered after a lease ended
  Millis window{0};                 ///< first_sent older than this is too_old; 0 = no check
  Millis ahead{0};                  ///< first_sent later than now by more is too_new; 0 = no check
  Millis retry_after_max{1'000};    ///< ceiling of the hint in in_flight
  std::uint32_t attempts_max = 0;   ///< a grant beyond it becomes a poison failure; 0 = no limit
  OnLeaseEnd on_lease_end = OnLeaseEnd::retry;
  OnFailure on_failure = OnFailure::release;  ///< the work returned an error: release or keep
  bool strict = false;                        ///< a completion after the lease ended is refused
  bool fail_open = false;                     ///< when full: unprotected instead of busy
  bool issued = false;  ///< only keys that issue() made known can be claimed; others are unknown
  bool fair = false;    ///< newcomers queue behind the waiters of a key
  std::uint8_t db = 0;  ///< the numbered database the records live in
  /// How the claim ends if the work throws or returns an unknown outcome. An exception is not a
  /// failure: the effect may have happened. The patterns apply this, as they run the work.
  OnFailure on_exception = OnFailure::release;
};

struct ClaimRequest {
  Bytes key{};                      ///< 1..key_bytes_max minus the namespace prefix
  std::optional<Duration> lease{};  ///< none: the policy's
  Fingerprint fingerprint{};
  std::optional<ClaimId> claim_id{};
  std::optional<std::int64_t> first_sent_unix_ms{};  ///< when the work was first requested
  Bytes owner{};                       ///< label for people, 0..limits::owner_label_max bytes
  std::optional<SessionId> session{};  ///< none: this engine's own; 0: a remote owner
};

enum class ClaimAnswer : std::uint8_t {
  unanswered,  ///< the zero of every answer: no call has filled this one
  granted,
  regranted,
  in_flight,
  replay,
  kept_failure,
  mismatch,
  in_doubt,
  too_old,
  busy,
  unprotected,  ///< full, and the namespace fails open: run, but nothing is remembered
  too_new,
  unknown,  ///< never issued, or ended since
};

/// Answer to a claim. docs/semantics.md lists the fields that each answer has.
struct ClaimOutcome {
  ClaimAnswer answer = ClaimAnswer::unanswered;
  ErrorCode error = ErrorCode::ok;  ///< busy: which limit; other values: the call was not valid
  bool takeover = false;            ///< granted over a lease that ended or an owner that died
  bool result_expired = false;      ///< replay: still unique, the bytes are gone
  bool poison = false;              ///< kept_failure: the attempt limit was reached
  std::uint32_t attempt = 0;        ///< granted: 1 for the first; others: attempts so far
  Epoch epoch = 0;                  ///< granted, regranted: the fencing token
  Millis remaining{0};              ///< in_flight: of the lease
  Millis retry_after{0};            ///< in_flight: hint
  std::optional<std::size_t> folded_onto;  ///< batch: index of the earlier request of this key
  std::optional<std::int64_t> window_start_unix_ms;  ///< too_old
  std::optional<std::int64_t> window_end_unix_ms;    ///< too_new
  Version version = 0;                               ///< of the record seen or written
  std::string owner;                                 ///< in_flight, in_doubt: label of the owner
  std::string result;                                ///< replay, kept_failure
};

enum class OwnerAnswer : std::uint8_t {
  unanswered,
  ok,
  stale_owner,  ///< a newer epoch holds or finished the work; nothing was touched
  conflict,     ///< already finished otherwise
  not_owner,    ///< release only
  unknown,      ///< no such claim; it is never re-created
  refused,      ///< lease over: renew always, complete in strict namespaces
};

struct OwnerOutcome {
  OwnerAnswer answer = OwnerAnswer::unanswered;
  ErrorCode error = ErrorCode::ok;  ///< not ok: nothing was changed
  bool late = false;                ///< ok, but the lease had ended
  ErrorCode dropped =
      ErrorCode::ok;  ///< complete: not ok: the reason why the result of done work is not kept
  bool has_result = false;  ///< stale_owner: the newer owner's result is in `result`
  Version version = 0;
  std::string result;
};

/// A claim as seen by get() and scans.
struct ClaimView {
  ClaimState state = ClaimState::absent;
  bool result_expired = false;
  bool poison = false;
  std::uint32_t attempts = 0;
  Epoch epoch = 0;
  Millis lease_remaining{0};   ///< 0 when over
  Millis result_remaining{0};  ///< 0 when gone
  Millis unique_remaining{0};
  Fingerprint fingerprint{};
  std::string owner;
  std::string result;
};

/// The call of a decision about a key. `ended` is not a call: the record expired and was removed.
enum class DecisionCall : std::uint8_t {
  claim,
  complete,
  fail,
  renew,
  release,
  issue,
  forget,
  resolve,
  ended,
};

/// An entry of the decision log: a call about a claim, its answer and the reason, see
/// Claims::explain(). It stands for one decision, or for several in a row that differ only in time.
struct ClaimDecision {
  std::int64_t first_unix_ms = 0;  ///< by the present wall clock: a step of it moves all times
  std::int64_t last_unix_ms = 0;   ///< of the last decision in the row
  std::uint64_t times = 1;         ///< decisions in the row
  DecisionCall call = DecisionCall::claim;
  std::string_view outcome{};  ///< one word, as in a reply; also takeover, poison, late. Static
  Epoch epoch = 0;             ///< of a grant, or given by an owner; 0: none
  std::uint32_t attempt = 0;   ///< of a claim; 0: not known
  std::string owner{};         ///< the label of a claim's caller
  std::string client{};        ///< on a node: name and address of the connection, perhaps cut
  ClaimState seen = ClaimState::absent;  ///< the record that the call met
  Epoch seen_epoch = 0;
  std::string seen_owner{};
  std::string why{};  ///< in plain words, without bytes that a caller chose
};

}  // namespace semel
