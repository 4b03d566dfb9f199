// Work that happens once: the first call with a key runs a function and keeps its result, every
// later one gets that result.
//
//   auto engine = Engine::open().value();
//   auto orders = engine->claims("orders", policies::call).value();
//   auto receipt = once(orders, "order-4711", [&] { return charge(order); });
//   if (receipt.has_value()) show(*receipt.value);        // ran now, or replayed
//
// No other caller runs it meanwhile, a result is replayed also after a restart (with a storage),
// and an owner that was slow cannot overwrite the result of the one that took over. Source:
// docs/patterns.md#once
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
  ran,           ///< the function ran, its result is kept; error result_not_kept: it is done, but
                 ///< the result could not be kept (too long, no memory, encode() threw)
  replayed,      ///< it had run; the value is that result
  expired,       ///< it had run, and its result is not kept any more
  in_flight,     ///< another runs it now
  failed,        ///< it ran and returned an error: given back or kept, as the policy says
  kept_failure,  ///< it had failed finally
  mismatch,      ///< the key was used with another fingerprint
  in_doubt,      ///< its owner went silent, threw, or answered that it does not know its outcome:
                 ///< it may not run before that is resolved. After a run, `failure` has the known
                 ///< facts
  too_old,
  too_new,
  unknown,     ///< a key that was never issued
  busy,        ///< no room now; nothing ran
  refused,     ///< the call is not valid, or the disk is not to be relied on; nothing ran
  superseded,  ///< it ran, but too late: another had taken over. The value is the other's, if done
  unrecorded,  ///< it ran, and that could not be written down: after the lease it may run again
  unguarded,   ///< it ran without protection: no key, or no room in a namespace that fails open
};

/// The options of a call.
struct OnceCall {
  Bytes key{};
  Fingerprint fingerprint{};
  /// To ask again after a lost answer: runs again what the lost call was granted, unless that call
  /// still runs in this process; then it is in_flight.
  std::optional<ClaimId> claim_id{};
  std::optional<std::int64_t> first_sent_unix_ms{};
  Bytes owner{};
  std::optional<Duration> lease{};
  std::optional<SessionId> session{};
  Duration wait{};               ///< for another that runs it now; 0: in_flight at once
  Watchdog* watchdog = nullptr;  ///< keeps the lease while the function runs; one that it cannot
                                 ///< keep is refused before the claim
  unsigned complete_tries = 3;   ///< how often to say that it is done, if the disk does not confirm
  bool without_key = false;      ///< an empty key: run unguarded instead of refused
};

/// What happened, apart from the value.
struct OnceReport {
  OnceAnswer answer = OnceAnswer::unanswered;
  bool takeover = false;  ///< an earlier owner went silent: its effect may be there
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

/// What the function that runs may want to know; for those that take it as an argument.
class Work {
 public:
  Work(const Claims& claims, Bytes key, const ClaimOutcome& claim) noexcept
      : steps_(claim.epoch == 0 ? Steps::unguarded(claims) : Steps(claims, key, claim.epoch)),
        claims_(claims),
        key_(key),
        claim_(&claim) {}
  [[nodiscard]] Bytes key() const noexcept { return key_; }
  /// The fencing token: hand it to whatever the work writes to. 0: the run is not guarded.
  [[nodiscard]] Epoch epoch() const noexcept { return claim_->epoch; }
  [[nodiscard]] std::uint32_t attempt() const noexcept { return claim_->attempt; }
  /// An owner before went silent: its effect may be there already.
  [[nodiscard]] bool takeover() const noexcept { return claim_->takeover; }
  /// False: the lease is lost, and another may run.
  [[nodiscard]] bool renew(std::optional<Duration> lease = {}) {
    return claims_.renew({.key = key_, .epoch = epoch(), .lease = lease}).answer == OwnerAnswer::ok;
  }
  /// Steps that are remembered until the work is over; of a run that is not guarded, in this run.
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

/// Whether the key's record is held by this grant, and its lease is not over.
[[nodiscard]] bool is_live(Claims& claims, Bytes key, Epoch epoch);

/// Gives back a grant under which nothing has run: as if it had not been claimed, but for attempts
/// before it. If that cannot be written down, the end of the lease gives it back.
void give_back(Claims& claims, Bytes key, const ClaimOutcome& grant) noexcept;

/// Claims, and waits until then. A grant whose lease is over when this thread learns of it is given
/// back and asked for again, a few times at most; then the answer is in_flight, timed_out.
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

/// When a claim's answer is acted on: as it comes, or later, when the caller that waited looks.
enum class Pickup : std::uint8_t { at_once, later };

/// The part of a guarded run that does not depend on types.
class GuardedRun {
 public:
  /// A grant that is picked up later may be another's by then: its record is looked at first.
  GuardedRun(Claims& claims, const OnceCall& call, ClaimOutcome&& claim,
             Pickup pickup = Pickup::at_once);
  /// A run that was not finished, because its function threw, ends as the policy's on_exception
  /// says.
  ~GuardedRun() {
    if (open_) abandon();
  }
  GuardedRun(const GuardedRun&) = delete;
  GuardedRun& operator=(const GuardedRun&) = delete;

  /// True: the function is to be run.
  [[nodiscard]] bool runs() const noexcept { return runs_; }
  [[nodiscard]] Work& work() noexcept { return *work_; }
  /// The bytes of a result that is replayed, or of a newer owner's.
  [[nodiscard]] const std::optional<std::string>& stored() const noexcept { return stored_; }
  [[nodiscard]] OnceReport& report() noexcept { return report_; }

  /// The claim is granted and not ended.
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  [[nodiscard]] const ClaimOutcome& claim() const noexcept { return claim_; }
  /// The watchdog lost the lease: another may have the work.
  [[nodiscard]] bool is_lost() const noexcept { return kept_.lost(); }

  void complete(Bytes result, ResultKeeping keeping = ResultKeeping::optional);
  /// It is done, and has a result that cannot be kept.
  void complete_without(std::string why);
  void fail(Error&& error);
  /// Its outcome is not known.
  void doubt(std::string known);
  /// Ends an open claim as failed, for a caller that answers by itself. Up to `tries` calls while
  /// the disk does not confirm; a failure that is not recorded ends with the lease.
  [[nodiscard]] OwnerOutcome give_up(Bytes known, Policy::OnFailure then, unsigned tries);
  /// Nothing has run: an open claim is given back as if it had not been made.
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
  std::shared_ptr<void> here_;  // with a claim id: no other call runs this grant in this process
  std::optional<std::string> stored_;
  OnceReport report_;
  bool runs_ = false;
  bool open_ = false;
};

[[nodiscard]] inline Error not_readable(Bytes key) {
  return {ErrorCode::bad_encoding, "result of '" + std::string{key} + "'"};
}

/// The run is done, whatever becomes of its result. Repeats get the decoded value: if that is known
/// to differ from `value`, the result is not kept; if it cannot be compared, `value` becomes the
/// decoded one.
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
    } catch (...) {  // it is not an exception of the work, and must not be taken for one
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

/// Runs `function` unless it has run, or is running, under this key. It may take a Work&, and
/// return nothing, a value, or a Result<T> whose error gives the claim back (or keeps the failure,
/// as the policy says). Policy::on_exception decides how the claim ends if the function throws or
/// answers unknown_outcome(): given back, kept, or in doubt; an exception goes on. A result that
/// cannot be kept does not undo the work: it is done, and duplicates are answered expired.
/// Progress: that of the function; waits as call.wait says, and for the journal.
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

/// The same with a namespace that is declared here. Answers refused if it cannot be.
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
