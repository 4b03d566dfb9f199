// Consuming a message once from a broker that delivers it at least once.
//
//   auto claims = engine->claims("payments", policies::message).value();
//   const Consumed consumed = consume_once(claims, {.id = id}, [&] { return pay(message); });
//   switch (consumed.verdict) {
//     case Verdict::ack:
//     case Verdict::ack_duplicate: broker.ack(message); break;
//     case Verdict::retry_later: broker.requeue(message, consumed.retry_after); break;
//     case Verdict::dead_letter: broker.reject(message); break;
//     case Verdict::unanswered: break;    // of a Consumed that no call has filled
//   }
//
// After a crash the broker delivers the message again, and the claim knows whether it was handled.
// A crash between an effect and the completion of the claim repeats the effect, unless both are one
// write (semel/rocksdb.hpp) or the effect checks the fencing token.
// Source: docs/patterns.md#consume-once
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "semel/patterns/once.hpp"
#include "semel/patterns/returns.hpp"

namespace semel {

/// The answer to the broker.
enum class Verdict : std::uint8_t {
  unanswered,     ///< no call has filled this object: do not answer the broker
  ack,            ///< this call handled the message
  retry_later,    ///< another consumer handles it, it failed, or there is no room: deliver it again
  ack_duplicate,  ///< an earlier delivery was handled
  dead_letter,    ///< do not deliver again: too many tries, rejected, too old, or another payload.
                  ///< An error of the consumer alone (its lease, its watchdog, its session) is
                  ///< retry_later with answer refused
};

struct Message {
  Bytes id{};  ///< the same in each delivery. Empty: the message is handled unguarded
  Fingerprint fingerprint{};
  std::optional<std::int64_t> first_sent_unix_ms{};
  Bytes owner{};
};

struct ConsumeOptions {
  std::optional<Duration> lease{};
  std::optional<SessionId> session{};
  Watchdog* watchdog = nullptr;    ///< a lease too short for it is refused before the claim
  bool refuse_without_id = false;  ///< a message without an id gets dead_letter, and does not run
};

struct Consumed {
  Verdict verdict = Verdict::unanswered;
  OnceAnswer answer = OnceAnswer::unanswered;  ///< the reason
  bool unguarded = false;      ///< the handler ran without protection: no id, or fail-open
  std::uint32_t attempts = 0;  ///< tries so far, this one included
  Epoch epoch = 0;
  Millis retry_after{0};           ///< retry_later
  std::string failure;             ///< the text of the handler's failure, now or kept
  std::exception_ptr exception{};  ///< of a batch: the handler's exception
  Error error;                     ///< unrecorded, busy, refused: the reason
};

/// A handler may return this instead of a Status: the message is wrong, and a retry will not help.
struct Rejected {
  std::string reason;
};

namespace detail {

enum class Handled : std::uint8_t { unanswered, ok, failed, rejected, unknown };
struct Handling {
  Handled how = Handled::unanswered;
  std::string reason;
};

inline Handling handling_of(const Error& error) {
  // outcome_unknown: the effect may be there.
  const bool known = retry_of(error.code) != Retry::read_first;
  return {known ? Handled::failed : Handled::unknown, error.message()};
}
inline Handling handling_of(bool ok) {
  return {ok ? Handled::ok : Handled::failed, ok ? "" : "the handler said no"};
}
inline Handling handling_of(Rejected&& rejected) {
  return {Handled::rejected, std::move(rejected.reason)};
}
inline Handling handling_of(std::optional<Rejected>&& rejected) {
  return rejected ? handling_of(*std::move(rejected)) : Handling{Handled::ok, {}};
}

template <class T>
concept SaysRejected = std::is_same_v<T, Rejected> || std::is_same_v<T, std::optional<Rejected>>;
template <class T>
Handling handling_of(Result<T>&& result) {
  if (!result.ok()) return handling_of(result.error());
  if constexpr (std::is_same_v<T, bool> || SaysRejected<T>) {
    return handling_of(*std::move(result));
  } else {
    return {Handled::ok, {}};
  }
}

/// The types that a handler may return. A type that only converts to bool is not one of them.
template <class T>
concept HandlerAnswer =
    SaysWhetherDone<T> || SaysRejected<T> || std::is_same_v<T, Result<std::optional<Rejected>>>;

template <class Handler, class... Arguments>
Handling call_handler(Handler& handler, Arguments&&... arguments) {
  using Plain = std::remove_cvref_t<decltype(handler(std::forward<Arguments>(arguments)...))>;
  static_assert(!is_lazy<Plain>,
                "the handler returns work that is still to be done (a future, a coroutine, a "
                "callable, a lazy range): wait for it or call it, and return what became of it");
  static_assert(is_lazy<Plain> || HandlerAnswer<Plain>,
                "a handler returns nothing, bool, Status, Rejected, std::optional<Rejected>, or a "
                "Result of one of these or of a value that says nothing by itself: of another type "
                "it is not known which value is success");
  if constexpr (is_lazy<Plain> || !HandlerAnswer<Plain>) {
    return {};
  } else if constexpr (std::is_void_v<Plain>) {
    handler(std::forward<Arguments>(arguments)...);
    return {Handled::ok, {}};
  } else {
    return handling_of(handler(std::forward<Arguments>(arguments)...));
  }
}

/// One message between its claim and its verdict: a guarded run whose answer is for the broker.
class Consumption {
 public:
  Consumption(Claims& claims, const Message& message, const ConsumeOptions& options);
  /// With the answer of a claim of a batch; call start() next.
  Consumption(Claims& claims, const Message& message, const ConsumeOptions& options,
              ClaimOutcome&& claim);
  /// A handler that has begun and not ended threw. If it has not begun, the claim is given back as
  /// if it had not been made.
  ~Consumption();
  Consumption(Consumption&&) = delete;

  /// Call before the handler runs: renews the lease if a third of it has passed, and claims again
  /// if the claim is lost, because its lease is over or another call has ended it.
  void start();
  [[nodiscard]] bool runs() const noexcept { return run_ && run_->runs(); }
  [[nodiscard]] Work& work() noexcept { return run_->work(); }
  /// Runs `handler`, which takes a Work&, if the claim was granted, and ends the claim by its
  /// answer. An exception of the handler propagates; call threw() or the destructor then.
  template <class Handler>
  void handle(Handler&& handler) {
    if (runs() && finish(handler(work()))) complete();
  }
  /// True: call complete() next.
  [[nodiscard]] bool finish(Handling&& handling);
  void complete();
  /// Takes the exception of the handler, which does not propagate further.
  void threw(std::exception_ptr exception);
  [[nodiscard]] Consumed& consumed() noexcept { return consumed_; }

 private:
  void guard(ClaimOutcome&& claim);
  [[nodiscard]] bool keep_for_handler();
  void refuse(Error error);
  /// How long a message that was sent in the future must wait.
  [[nodiscard]] Millis until_in_window() const noexcept;
  void fail(Handling&& handling);
  /// The handler threw, or does not know the outcome: ends the claim by the policy's on_exception.
  void unknown(std::string&& what);
  void end(Policy::OnFailure then, unsigned tries);
  void superseded();

  Claims& claims_;
  const OnceCall call_;            // of the message; run_ refers to it
  const Millis granted_for_;       // its lease, if it is granted
  std::optional<GuardedRun> run_;  // none: a message without an id that is refused
  Consumed consumed_;
  bool started_ = false;     // the handler has begun
  bool completing_ = false;  // the handler has ended well
};

}  // namespace detail

/// Runs `handler` if the message was not handled yet, and returns the verdict for the broker. The
/// handler may take a Work&, and return nothing, a bool, a Status, Rejected,
/// std::optional<Rejected>, a Result of one of these, or a Result of another value, which is
/// dropped; nothing else compiles. If the handler throws, or returns a Status of outcome_unknown,
/// the policy's on_exception decides; an exception propagates.
///   on_exception   the claim            verdict
///   release        given back           retry_later
///   keep           failed finally       dead_letter
///   in_doubt       held for resolve()   retry_later, answer in_doubt, until it is resolved
/// Progress: that of the handler; waits for the journal.
template <class Handler>
Consumed consume_once(Claims& claims, const Message& message, Handler&& handler,
                      const ConsumeOptions& options = {}) {
  detail::Consumption run{claims, message, options};
  run.handle([&](Work& work) {
    if constexpr (std::is_invocable_v<Handler&, Work&>) {
      return detail::call_handler(handler, work);
    } else {
      static_cast<void>(work);
      return detail::call_handler(handler);
    }
  });
  return std::move(run.consumed());
}

/// The same for a batch of any size. Claims up to 256 messages at a time; then the handlers run one
/// after another in order, and each message is completed when its own handler ends. A handler
/// affects only its own message: if it throws, the policy's on_exception decides, the exception is
/// in Consumed::exception, and the next handler runs. Before each handler its lease is renewed if a
/// third of it has passed, and claimed again if it is over. options.watchdog renews the leases of
/// all claimed messages. A message that comes twice is handled once, and the second is a duplicate;
/// if the first failed, the second gets retry_later, or is tried if it is more than 256 messages
/// away. `handler` takes a const Message&, and optionally a Work&.
template <class Handler>
std::vector<Consumed> consume_batch(Claims& claims, std::span<const Message> messages,
                                    Handler&& handler, const ConsumeOptions& options = {});

namespace detail {

/// What consume_batch does around its handlers.
class BatchConsumption {
 public:
  using RunOne = std::function<Handling(const Message&, Work&)>;
  BatchConsumption(Claims& claims, std::span<const Message> messages,
                   const ConsumeOptions& options) noexcept
      : claims_(claims), messages_(messages), options_(options) {}
  [[nodiscard]] std::vector<Consumed> run(const RunOne& handler);

 private:
  void claim(std::size_t begin, std::size_t end);
  void handle(std::size_t at, Consumption& run, const RunOne& handler);

  Claims& claims_;
  std::span<const Message> messages_;
  const ConsumeOptions& options_;
  bool can_claim_ = true;
  std::vector<std::unique_ptr<Consumption>> runs_;    // of those that are claimed now
  std::vector<std::optional<std::size_t>> first_of_;  // of each message that was folded
};

}  // namespace detail

template <class Handler>
std::vector<Consumed> consume_batch(Claims& claims, std::span<const Message> messages,
                                    Handler&& handler, const ConsumeOptions& options) {
  return detail::BatchConsumption{claims, messages, options}.run(
      [&](const Message& message, Work& work) {
        if constexpr (std::is_invocable_v<Handler&, const Message&, Work&>) {
          return detail::call_handler(handler, message, work);
        } else {
          static_cast<void>(work);
          return detail::call_handler(handler, message);
        }
      });
}

}  // namespace semel
