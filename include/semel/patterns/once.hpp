// Work that happens once: the first call with a key runs a function and keeps its result; every
// later call gets that result.
//
//   auto engine = Engine::open().value();
//   auto orders = engine->claims("orders", policies::call).value();
//   auto receipt = once(orders, "order-4711", [&] { return charge(order); });
//   if (receipt.has_value()) show(*receipt.value);        // ran now, or replayed
//
// While the function runs, no other caller runs it. With a storage, results are replayed after a
// restart as well. A slow owner cannot overwrite the result of an owner that has taken over.
// Source: docs/patterns.md#once
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "semel/claims.hpp"
#include "semel/codec.hpp"
#include "semel/engine.hpp"
#include "semel/patterns/returns.hpp"
#include "semel/patterns/steps.hpp"
#include "semel/patterns/watchdog.hpp"
#include "semel/policies.hpp"

namespace semel {

enum class OnceAnswer : std::uint8_t {
  unanswered,
  ran,        ///< the function ran and its result is kept. With error result_not_kept the work is
              ///< done without a kept result (too long, no memory, encode() threw)
  replayed,   ///< an earlier call ran the function; the value is its result
  expired,    ///< an earlier call ran the function; its result is not kept any more
  in_flight,  ///< another caller runs the function now
  failed,     ///< the function returned an error: claim given back or failure kept, by the policy
  kept_failure,  ///< an earlier call failed finally
  mismatch,      ///< the key was used with another fingerprint
  in_doubt,      ///< the owner went silent, threw, or does not know the outcome: the work may not
                 ///< run again before an operator resolves it. After a run `failure` has the known
                 ///< facts
  too_old,
  too_new,
  unknown,     ///< a key that was never issued
  busy,        ///< no room now; nothing ran
  refused,     ///< the call is not valid, or the disk fails; nothing ran
  superseded,  ///< the function ended after another owner took over. The value is that owner's, if
               ///< it has one
  unrecorded,  ///< the function ran, but the journal did not confirm it: the work may run again
               ///< after the lease
  unguarded,   ///< the function ran without a claim: no key, or no room in a namespace that fails
               ///< open
};

/// The options of a call.
struct OnceCall {
  Bytes key{};
  Fingerprint fingerprint{};
  /// The same id repeats a call whose answer was lost: the function runs again under the grant of
  /// that call. If that call still runs in this process, the answer is in_flight.
  std::optional<ClaimId> claim_id{};
  std::optional<std::int64_t> first_sent_unix_ms{};
  Bytes owner{};
  std::optional<Duration> lease{};
  std::optional<SessionId> session{};
  Duration wait{};               ///< how long to wait for another owner; 0: in_flight at once
  Watchdog* watchdog = nullptr;  ///< renews the lease while the function runs; a lease that is too
                                 ///< short for it is refused before the claim
  unsigned complete_tries = 3;   ///< attempts to record the completion if the disk does not confirm
  bool without_key = false;      ///< an empty key runs the function unguarded; else it is refused
};

/// The outcome of a call, apart from the value.
struct OnceReport {
  OnceAnswer answer = OnceAnswer::unanswered;
  bool takeover = false;  ///< an earlier owner went silent: its effect may have happened
  bool late =
      false;  ///< the lease had ended before the result came, but no other owner had the key
  std::uint32_t attempt = 0;  ///< 1 for the first
  Epoch epoch = 0;            ///< of the run: the fencing token
  Millis retry_after{0};      ///< in_flight, busy: a hint
  std::string failure;        ///< failed, kept_failure
  Error error;  ///< failed, busy, refused, unrecorded, replayed without a value; ran: see there
};

template <class T>
struct OnceOutcome : OnceReport {
  std::optional<T> value;  ///< ran, replayed, unguarded, unrecorded; superseded if there is one
  [[nodiscard]] bool has_value() const noexcept { return value.has_value(); }
};

/// The run, as a function sees it that takes a Work& as its argument.
class Work {
 public:
  Work(const Claims& claims, Bytes key, const ClaimOutcome& claim) noexcept
      : steps_(claim.epoch == 0 ? Steps::unguarded(claims) : Steps(claims, key, claim.epoch)),
        claims_(claims),
        key_(key),
        claim_(&claim) {}
  [[nodiscard]] Bytes key() const noexcept { return key_; }
  /// The fencing token: pass it to every system that the work writes to. 0: the run is unguarded.
  [[nodiscard]] Epoch epoch() const noexcept { return claim_->epoch; }
  [[nodiscard]] std::uint32_t attempt() const noexcept { return claim_->attempt; }
  /// True: an earlier owner went silent, and its effect may have happened already.
  [[nodiscard]] bool takeover() const noexcept { return claim_->takeover; }
  /// Extends the lease. False: the lease is lost, and another owner may run the work.
  [[nodiscard]] bool renew(std::optional<Duration> lease = {}) {
    return claims_.renew({.key = key_, .epoch = epoch(), .lease = lease}).answer == OwnerAnswer::ok;
  }
  /// Steps of the work, remembered until it is over; in an unguarded run, until this run ends.
  [[nodiscard]] Steps& steps() noexcept { return steps_; }

 private:
  Steps steps_;
  Claims claims_;
  Bytes key_;
  const ClaimOutcome* claim_;
};

namespace detail {

[[nodiscard]] inline ClaimRequest request_of(const OnceCall& call) {
  return {.key = call.key,
          .lease = call.lease,
          .fingerprint = call.fingerprint,
          .claim_id = call.claim_id,
          .first_sent_unix_ms = call.first_sent_unix_ms,
          .owner = call.owner,
          .session = call.session};
}

/// Whether the caller holds the claim, by this answer or by an earlier one.
[[nodiscard]] inline bool is_granted(const ClaimOutcome& outcome) noexcept {
  return outcome.answer == ClaimAnswer::granted || outcome.answer == ClaimAnswer::regranted;
}

/// Whether this grant still holds the key, with a running lease.
[[nodiscard]] bool is_live(Claims& claims, Bytes key, Epoch epoch);

/// Gives back a grant under which nothing has run. Earlier attempts stay counted. If the journal
/// does not confirm that, the claim is free at the end of its lease.
void give_back(Claims& claims, Bytes key, const ClaimOutcome& grant) noexcept;

/// Claims, and waits until `deadline`. A grant whose lease is over before this thread sees it is
/// given back and claimed again, a few times at most; then the answer is in_flight, timed_out.
[[nodiscard]] ClaimOutcome ask_until(Claims& claims, const ClaimRequest& request,
                                     Timestamp deadline);

/// Claims, and waits as call.wait says.
[[nodiscard]] inline ClaimOutcome ask(Claims& claims, const OnceCall& call) {
  const ClaimRequest request = request_of(call);
  if (call.watchdog != nullptr && !Watchdog::check(call.watchdog, claims, call.lease)) {
    ClaimOutcome refused;
    refused.answer = ClaimAnswer::busy;
    refused.error = ErrorCode::bad_option;
    return refused;
  }
  if (call.wait <= Millis{0}) [[likely]]
    return claims.claim(request);
  return ask_until(claims, request, deadline_after(claims.engine().now(), call.wait));
}

/// When a caller acts on the answer of its claim: at once, or later, when it looks after a wait.
enum class Pickup : std::uint8_t { at_once, later };

/// The part of a guarded run that does not depend on types.
class GuardedRun {
 public:
  /// Another owner may have a grant by the time that it is picked up: `later` checks its record.
  GuardedRun(Claims& claims, const OnceCall& call, ClaimOutcome&& claim,
             Pickup pickup = Pickup::at_once);
  /// Ends a run whose function threw by the policy's on_exception.
  ~GuardedRun() {
    if (open_) abandon();
  }
  GuardedRun(const GuardedRun&) = delete;
  GuardedRun& operator=(const GuardedRun&) = delete;

  /// True: the caller runs the function.
  [[nodiscard]] bool runs() const noexcept { return runs_; }
  [[nodiscard]] Work& work() noexcept { return *work_; }
  /// The bytes of a replayed result, or of the result of a newer owner.
  [[nodiscard]] const std::optional<std::string>& stored() const noexcept { return stored_; }
  [[nodiscard]] OnceReport& report() noexcept { return report_; }

  /// The claim is granted and not ended.
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  [[nodiscard]] const ClaimOutcome& claim() const noexcept { return claim_; }
  /// The watchdog lost the lease: another owner may have the work.
  [[nodiscard]] bool is_lost() const noexcept { return kept_.lost(); }

  void complete(Bytes result, ResultKeeping keeping = ResultKeeping::optional);
  /// Completes the work without its result, which cannot be kept.
  void complete_without(std::string why);
  void fail(Error&& error);
  /// Ends the work in doubt; `known` has the facts.
  void doubt(std::string known);
  /// Ends an open claim as failed, for a caller that makes its own answer. Makes up to `tries`
  /// calls while the disk does not confirm; without a confirmation the claim ends with its lease.
  [[nodiscard]] OwnerOutcome give_up(Bytes known, Policy::OnFailure then, unsigned tries);
  /// Gives an open claim back, under which nothing has run, as if it had not been made.
  void give_back() noexcept;

 private:
  void abandon() noexcept;
  [[nodiscard]] unsigned tries() const noexcept {
    return call_.complete_tries == 0 ? 1 : call_.complete_tries;
  }
  void answer(ClaimOutcome& claim);
  void ask_anew();
  void run_once_here();

  Claims& claims_;
  const OnceCall& call_;
  ClaimOutcome claim_;
  std::optional<Work> work_;
  Watchdog::Guard kept_;
  std::shared_ptr<void> here_;  // with a claim id: the only run of this grant in this process
  std::optional<std::string> stored_;
  OnceReport report_;
  bool runs_ = false;
  bool open_ = false;
};

[[nodiscard]] inline Error not_readable(Bytes key) {
  return {ErrorCode::bad_encoding, "result of '" + std::string{key} + "'"};
}

/// Completes the run, with its result if that can be kept. Repeats get the decoded value: if it is
/// known to differ from `value`, the result is not kept; if the two cannot be compared, `value`
/// becomes the decoded one.
template <class Value>
void complete_run(GuardedRun& run, Value& value) {
  if constexpr (ExactCodec<Value>&& noexcept(Codec<Value>::encode(value))) {
    run.complete(Codec<Value>::encode(value));
  } else {
    std::optional<std::string> bytes;
    std::string why = "encode() threw";
    try {
      bytes.emplace(Codec<Value>::encode(value));
      if constexpr (!ExactCodec<Value>) {
        why = "decode() threw";
        if (!reread(value, *bytes)) {
          bytes.reset();
          why = "what decode() makes of it is another value";
        }
      }
    } catch (const std::exception& thrown) {
      bytes.reset();
      why.append(": ").append(thrown.what());
    } catch (...) {  // of the codec: the work did not throw
      bytes.reset();
    }
    bytes ? run.complete(*bytes) : run.complete_without(std::move(why));
  }
}

template <class Function>
auto run_guarded(Function& function, Work& work) {
  if constexpr (std::is_invocable_v<Function&, Work&>) {
    return call_for_result(function, work);
  } else {
    return call_for_result(function);
  }
}

/// See semel::once().
template <class Value, class Outcome, class Function>
OnceOutcome<Value> run_once(Claims& claims, const OnceCall& call, Function& function) {
  OnceOutcome<Value> done;
  ClaimOutcome claim = ask(claims, call);
  if (claim.answer == ClaimAnswer::replay && !claim.result_expired) {  // the most frequent answer
    done.answer = OnceAnswer::replayed;
    done.attempt = claim.attempt;
    if constexpr (std::is_same_v<Value, std::string>) {
      done.value.emplace(std::move(claim.result));
    } else {
      done.value = Codec<Value>::decode(claim.result);
    }
    if (!done.value) done.error = not_readable(call.key);
    return done;
  }
  GuardedRun run{claims, call, std::move(claim)};
  std::optional<Value> value;
  if (run.runs()) {
    Outcome outcome = run_guarded(function, run.work());
    if (outcome.ok()) {
      complete_run(run, *outcome);
      if (run.report().answer != OnceAnswer::superseded) value.emplace(*std::move(outcome));
    } else {
      run.fail(Error{outcome.error()});
    }
  }
  if (run.stored()) {
    value = Codec<Value>::decode(*run.stored());
    if (!value) run.report().error = not_readable(call.key);
  }
  static_cast<OnceReport&>(done) = std::move(run.report());
  done.value = std::move(value);
  return done;
}

}  // namespace detail

/// Runs `function` unless it has run, or is running, under this key. The function may take a Work&,
/// and return nothing, a value, or a Result<T>. An error in it gives the claim back or keeps the
/// failure, by Policy::on_failure. Policy::on_exception decides how the claim ends if the function
/// throws or answers unknown_outcome(): given back, kept, or in doubt; the exception propagates. If
/// the result cannot be kept, the work is done all the same, and duplicates get `expired`.
/// Progress: that of the function; waits for another owner up to call.wait, and for the journal.
template <class Function>
auto once(Claims& claims, const OnceCall& call, Function&& function) {
  using Outcome = decltype(detail::run_guarded(function, std::declval<Work&>()));
  using Value = std::remove_cvref_t<decltype(*std::declval<Outcome&>())>;
  static_assert(!detail::is_lazy<Value>,
                "the function returns work that is still to be done (a future, a coroutine, a "
                "callable, a lazy range): wait for it or call it, and return its value");
  static_assert(detail::is_lazy<Value> || Encodable<Value>,
                "give the result's type encode() and decode(), or a Codec");
  if constexpr (detail::is_lazy<Value> || !Encodable<Value>) {
    return OnceOutcome<Nothing>{};
  } else {
    return detail::run_once<Value, Outcome>(claims, call, function);
  }
}

template <class Function>
auto once(Claims& claims, Bytes key, Function&& function) {
  return once(claims, OnceCall{.key = key}, std::forward<Function>(function));
}

/// The same, and declares the namespace. Answers refused if that fails.
template <class Function>
auto once(Engine& engine, const NamedPolicy& named, const OnceCall& call, Function&& function) {
  Result<Claims> claims = engine.claims(named.name, named.policy);
  if (claims) return once(*claims, call, std::forward<Function>(function));
  decltype(once(*claims, call, function)) refused;
  refused.answer = OnceAnswer::refused;
  refused.error = claims.error();
  return refused;
}

template <class Function>
auto once(Engine& engine, const NamedPolicy& named, Bytes key, Function&& function) {
  return once(engine, named, OnceCall{.key = key}, std::forward<Function>(function));
}

}  // namespace semel
