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
// A crash at any point leaves the message to the broker, which delivers it again: the claim then
// says whether it was done. Between an effect and its mark a crash lets the effect happen again,
// unless both are one write (semel/rocksdb.hpp) or the effect knows its fencing token. Source:
// docs/patterns.md#consume-once
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
  unanswered,     ///< of an object that no call has filled: say nothing to the broker
  ack,            ///< it was handled by this call
  retry_later,    ///< another handles it, it failed, or there is no room: deliver it again
  ack_duplicate,  ///< it was handled before
  dead_letter,    ///< not to be tried again: too many tries, rejected, too old, or another payload;
                  ///< a fault of the consumer alone (its lease, its watchdog, its session) is
                  ///< retry_later with answer refused
};

struct Message {
  Bytes id{};  ///< of the message, the same in each delivery. Empty: it is handled unguarded
  Fingerprint fingerprint{};
  std::optional<std::int64_t> first_sent_unix_ms{};
  Bytes owner{};
};

struct ConsumeOptions {
  std::optional<Duration> lease{};
  std::optional<SessionId> session{};
  Watchdog* watchdog = nullptr;    ///< a lease that it cannot keep is refused before the claim
  bool refuse_without_id = false;  ///< a message without an id: dead_letter instead of unguarded
};

struct Consumed {
  Verdict verdict = Verdict::unanswered;
  OnceAnswer answer = OnceAnswer::unanswered;  ///< why
  bool unguarded = false;      ///< the handler ran without protection: no id, or fail-open
  std::uint32_t attempts = 0;  ///< how often it was tried, this one included
  Epoch epoch = 0;
  Millis retry_after{0};           ///< retry_later
  std::string failure;             ///< what the handler said or threw, or had said
  std::exception_ptr exception{};  ///< of a batch: what its handler threw
  Error error;  ///< unrecorded: handled, but not written down; busy, refused: why
};

/// What a handler may return beside a Status: the message is wrong, and no other try will help.
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

/// What a handler may return. A conversion to bool is no verdict.
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
  /// With an answer that is there already (a batch); start() follows.
  Consumption(Claims& claims, const Message& message, const ConsumeOptions& options,
              ClaimOutcome&& claim);
  /// If the handler has begun and not ended, it threw. If it has not begun, the claim is given back
  /// as if it had not been made.
  ~Consumption();
  Consumption(Consumption&&) = delete;

  /// The handler is about to run: renews the lease if a third of it has passed, and claims again if
  /// the claim is lost: its lease is over, or another call has ended it.
  void start();
  [[nodiscard]] bool runs() const noexcept { return run_ && run_->runs(); }
  [[nodiscard]] Work& work() noexcept { return run_->work(); }
  /// Runs `handler`, which takes a Work&, if the message is to be handled, and ends the claim as it
  /// says. An exception of the handler goes on; threw() or the destructor follows.
  template <class Handler>
  void handle(Handler&& handler) {
    if (runs() && finish(handler(work()))) complete();
  }
  /// True: the claim is to be completed.
  [[nodiscard]] bool finish(Handling&& handling);
  void complete();
  /// The handler threw, and the exception ends here.
  void threw(std::exception_ptr exception);
  [[nodiscard]] Consumed& consumed() noexcept { return consumed_; }

 private:
  void guard(ClaimOutcome&& claim);
  [[nodiscard]] bool keep_for_handler();
  void refuse(Error error);
  /// Of a message that was sent too far in the future.
  [[nodiscard]] Millis until_in_window() const noexcept;
  void fail(Handling&& handling);
  /// The handler threw, or does not know: as the policy's on_exception says.
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

/// Runs `handler` if this message was not handled yet, and returns what to answer to the broker.
/// The handler may take a Work&, and return nothing, a bool, a Status, Rejected,
/// std::optional<Rejected>, a Result of one of these, or a Result of another value, which is
/// dropped; nothing else compiles. A Status of
/// outcome_unknown says "I don't know": it ends as the policy's on_exception says, and so does a
/// handler that throws; its exception goes on.
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

/// The same for a batch of any size: the claims are asked for up to 256 at a time, then the
/// handlers run one after another in order, and each message is completed when its own handler
/// ends. Nothing that one handler does changes the fate of another message: one that throws ends
/// its own as the policy's on_exception says, the exception is in Consumed::exception, and the next
/// one runs. Before each handler its lease is looked at: renewed if a third of it has passed, asked
/// for again if it is over. options.watchdog keeps the leases of all that are claimed. A message
/// that comes twice is handled once, and the second is a duplicate; if the first failed, the second
/// is redelivered, or is tried again if it is more than 256 away. `handler` takes a const Message&,
/// and perhaps a Work&.
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
