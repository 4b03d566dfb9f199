// After the last call, once: an index that is rebuilt when the edits have ended, a mail about all
// changes, a form that is saved when its user has stopped typing.
//
//   TrailingDebounce edits{claims, {.terms = {.quiet = Millis{2'000}}}};
//   edits.call("doc7", text);                    // any process, as often as it likes
//   edits.run("doc7", [](Bytes latest) { .. });  // any process, in a loop: runs when it is due
//
// A call stores its payload in place of the one before, and moves the time of the run: `quiet`
// after the last call, at the latest `max_wait` after the first. When it is due, one caller of
// run() gets the payload; the others learn that another runs it. A call during a run begins the
// next quiet time, and its run comes when this one has ended. Payloads survive processes, restarts
// and leaders, as records do; a run whose process has died comes again when its lease is over.
//
// Of a key, "ns:{key}#last" is the payload, a string that ends `keep` after it was due, and the
// claim "{key}#run" is the run.
// Source: docs/patterns.md#after-the-last-call, docs/decisions/0102-trailing-debounce.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "semel/claims.hpp"
#include "semel/patterns/debounce.hpp"
#include "semel/patterns/watchdog.hpp"

namespace semel {

namespace limits {
inline constexpr Millis debounce_max{std::int64_t{366} * 24 * 3600 * 1000};  ///< of each time
inline constexpr std::size_t debounces_max = 10'000;                         ///< of one list
}  // namespace limits

/// Each call states them; those of the last one hold.
struct TrailingTerms {
  Millis quiet{1'000};      ///< 1 ms..limits::debounce_max
  Millis max_wait{60'000};  ///< quiet..limits::debounce_max
  /// How long a payload that is due is kept for a run; then it is forgotten. 1 ms..debounce_max.
  /// That of a run is kept for a day at least behind its lease, as the lease may be renewed.
  Millis keep{86'400'000};
};

struct TrailingCall {
  Millis due_in{0};       ///< until the run, if no other call comes
  bool replaced = false;  ///< a payload that no run has taken
};

enum class TrailingState : std::uint8_t {
  unanswered,
  idle,     ///< nothing is stored
  quiet,    ///< the time of the run has not come
  due,      ///< it has
  running,  ///< a run has taken it, or stands in its way
};

/// The answer to an attempt to run.
struct TrailingTurn {
  TrailingState state = TrailingState::unanswered;
  Millis due_in{0};  ///< quiet: until the run
  /// running: granted or regranted to this caller, with the payload; in_flight: another runs; else
  /// what stands in the way, or an error.
  ClaimOutcome claim{};
  std::string key{};  ///< of the run's claim, for owner calls
  std::string payload{};
};

/// What becomes of the payload of a run.
enum class TrailingEnd : std::uint8_t {
  done,   ///< it is forgotten
  again,  ///< it runs once more, after a quiet time, unless a call has replaced it
};

struct TrailingView {
  std::string key{};
  TrailingState state = TrailingState::unanswered;  ///< quiet, due or running
  Millis due_in{0};
};

/// Stores `payload`. Errors: bad_option (terms), wrong_type (the record holds something else),
/// those of Store::set(); nothing was changed. Progress: lock-free; waits for the journal.
[[nodiscard]] Result<TrailingCall> call_trailing(Claims& claims, Bytes key, Bytes payload,
                                                 const TrailingTerms& terms);
/// Takes the payload of request.key if it is due. A claim id that runs it already gets it again.
/// Errors, also in the claim of the turn: those of Claims::claim() and of the store; wrong_type.
[[nodiscard]] Result<TrailingTurn> take_trailing(Claims& claims, const ClaimRequest& request);
/// Ends the run of this epoch. The payload of a call during the run stays. The answer is that of
/// the release: not_owner, unknown or late if the run was lost. Errors: those of both.
[[nodiscard]] OwnerOutcome end_trailing(Claims& claims, Bytes key, Epoch epoch, TrailingEnd how);
/// The keys of this namespace with a payload, at most `count` (1..limits::debounces_max): the keys
/// that are due longest, a run as if it were due at the end of its lease; not at one moment. Looks
/// at all records of the engine. Errors: bad_option.
[[nodiscard]] Result<std::vector<TrailingView>> debounces(Claims& claims, std::size_t count);
/// The key of the run's claim: "{key}#run".
[[nodiscard]] std::string trailing_run_key(Bytes key);
/// The name of the payload's string within "ns:": "{key}#last".
[[nodiscard]] std::string trailing_last_key(Bytes key);

enum class TrailingAnswer : std::uint8_t {
  unanswered,
  idle,     ///< nothing is stored
  quiet,    ///< it is not due; TrailingRun::due_in
  running,  ///< another runs it
  ran,
  failed,   ///< it ran and returned an error: it comes again after a quiet time
  busy,     ///< no room: nothing ran
  refused,  ///< TrailingRun::error
};

struct TrailingRun {
  using is_answer = void;  // ask the answer
  TrailingAnswer answer = TrailingAnswer::unanswered;
  Millis due_in{0};
  bool lost = false;  ///< ran, failed: the lease had ended before, so that it may run again
  ErrorCode error = ErrorCode::ok;
};

struct TrailingOptions {
  TrailingTerms terms{};
  std::optional<Duration> lease{};  ///< of a run; none: the policy's
  Watchdog* watchdog = nullptr;     ///< keeps the lease; must outlive this
};

/// Safe from any thread.
class TrailingDebounce {
 public:
  /// `claims` should have policies::debounce or lock; nothing else uses its keys.
  explicit TrailingDebounce(const Claims& claims, const TrailingOptions& options = {})
      : claims_(claims), options_(options) {}

  /// See call_trailing().
  [[nodiscard]] Result<TrailingCall> call(Bytes key, Bytes payload) {
    return call_trailing(claims_, key, payload, options_.terms);
  }
  /// Runs function(payload), with the latest payload, if it is due. It may return nothing, a bool,
  /// a Status or a Result, as that of Debounce. One that throws has failed, and the exception goes
  /// on.
  template <class Function>
  TrailingRun run(Bytes key, Function&& function);

 private:
  /// One run; its end is that of the object: `again`, if nothing else was said.
  class Turn {
   public:
    Turn(TrailingDebounce& debounce, Bytes key);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    [[nodiscard]] bool runs() const noexcept { return epoch_ != 0; }
    [[nodiscard]] Bytes payload() const noexcept { return turn_.payload; }
    void end(bool ok);
    [[nodiscard]] const TrailingRun& answer() const noexcept { return answer_; }

   private:
    TrailingDebounce& debounce_;
    const std::string key_;
    TrailingTurn turn_;
    TrailingRun answer_;
    Watchdog::Guard kept_;
    Epoch epoch_ = 0;
  };

  Claims claims_;
  TrailingOptions options_;
};

template <class Function>
TrailingRun TrailingDebounce::run(Bytes key, Function&& function) {
  Turn turn{*this, key};
  if (turn.runs()) {
    auto with_payload = [&] { return function(turn.payload()); };
    turn.end(detail::succeeds(with_payload));
  }
  return turn.answer();
}

}  // namespace semel
