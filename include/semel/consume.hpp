// Consuming a message once from a broker that delivers it at least once.
//
//   auto claims = engine->claims("payments", policies::message).value();
//   const Consumed consumed = consume_once(claims, {.id = id}, [&] { return pay(message); });
//   switch (consumed.verdict) {
//     case Verdict::ack:
//     case Verdict::ack_duplicate: broker.ack(message); break;
//     case Verdict::retry_later: broker.requeue(message, consumed.retry_after); break;
//     case Verdict::dead_letter: broker.reject(message); break;
//   }
//
// A crash at any point leaves the message to the broker, which delivers it again: the claim then
// says whether it was done. Between an effect and its mark a crash lets the effect happen again,
// unless both are one write (semel/rocksdb.hpp) or the effect knows its fencing token. Source:
// docs/patterns.md#consume-once
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "semel/once.hpp"

namespace semel {

/// What is to be said to the broker.
enum class Verdict : std::uint8_t {
  ack,            ///< it was handled by this call
  retry_later,    ///< another handles it, it failed, or there is no room: deliver it again
  ack_duplicate,  ///< it was handled before
  dead_letter,    ///< nobody is to try again: too many tries, rejected, too old, or another payload
};

struct Message {
  Bytes id{};  ///< of the message, the same in each delivery. Empty: it is handled unguarded
  Fingerprint fingerprint{};
  std::optional<std::int64_t> first_sent_unix_ms{};
  Bytes owner{};
};

struct ConsumeOptions {
  std::optional<Millis> lease{};
  std::optional<SessionId> session{};
  Watchdog* watchdog = nullptr;
  bool refuse_without_id = false;  ///< a message without an id: dead_letter instead of unguarded
};

struct Consumed {
  Verdict verdict = Verdict::retry_later;
  OnceAnswer answer = OnceAnswer::refused;  ///< why
  bool unguarded = false;      ///< the handler ran without protection: no id, or fail-open
  std::uint32_t attempts = 0;  ///< how often it was tried, this one included
  Epoch epoch = 0;
  Millis retry_after{0};  ///< retry_later
  std::string failure;    ///< what the handler said, or had said
  Error error;            ///< unrecorded: handled, but not written down; busy, refused: why
};

/// What a handler may return beside a Status: the message is wrong, and no other try will help.
struct Rejected {
  std::string reason;
};

namespace detail {

enum class Handled : std::uint8_t { ok, failed, rejected };
struct Handling {
  Handled how = Handled::ok;
  std::string reason;
};

inline Handling handling_of(const Status& status) {
  if (status) return {};
  return {Handled::failed, status.error().message()};
}
inline Handling handling_of(bool ok) {
  return {ok ? Handled::ok : Handled::failed, ok ? "" : "the handler said no"};
}
inline Handling handling_of(Rejected&& rejected) {
  return {Handled::rejected, std::move(rejected.reason)};
}
inline Handling handling_of(std::optional<Rejected>&& rejected) {
  return rejected ? handling_of(*std::move(rejected)) : Handling{};
}

template <class Handler, class... Arguments>
Handling call_handler(Handler& handler, Arguments&&... arguments) {
  using Plain = decltype(handler(std::forward<Arguments>(arguments)...));
  if constexpr (std::is_void_v<Plain>) {
    handler(std::forward<Arguments>(arguments)...);
    return {};
  } else {
    return handling_of(handler(std::forward<Arguments>(arguments)...));
  }
}

/// One message between its claim and its verdict.
class Consumption {
 public:
  Consumption(Claims& claims, const Message& message, const ConsumeOptions& options);
  /// With an answer that is there already (a batch).
  Consumption(Claims& claims, const Message& message, ClaimOutcome&& claim);
  ~Consumption();
  Consumption(Consumption&&) = delete;

  [[nodiscard]] bool runs() const noexcept { return runs_; }
  [[nodiscard]] Work& work() noexcept { return *work_; }
  /// True: the claim is to be completed (a batch does that for all at once).
  [[nodiscard]] bool finish(Handling&& handling);
  void complete();
  void completed(const OwnerOutcome& outcome);
  [[nodiscard]] Consumed& consumed() noexcept { return consumed_; }

 private:
  void judge();
  void fail(Handling&& handling);

  Claims& claims_;
  const Message& message_;
  ClaimOutcome claim_;
  std::optional<Work> work_;
  Watchdog::Guard kept_;
  Consumed consumed_;
  bool runs_ = false;
  bool open_ = false;
};

}  // namespace detail

/// Runs `handler` if this message was not handled yet, and says what the broker is to be told. The
/// handler may take a Work&, and return nothing, a bool, a Status, Rejected, or
/// std::optional<Rejected>. One that throws leaves the message to be retried.
/// Progress: that of the handler; waits for the journal.
template <class Handler>
Consumed consume_once(Claims& claims, const Message& message, Handler&& handler,
                      const ConsumeOptions& options = {}) {
  detail::Consumption run{claims, message, options};
  if (run.runs()) {
    bool handled = false;
    if constexpr (std::is_invocable_v<Handler&, Work&>) {
      handled = run.finish(detail::call_handler(handler, run.work()));
    } else {
      handled = run.finish(detail::call_handler(handler));
    }
    if (handled) run.complete();
  }
  return std::move(run.consumed());
}

/// The same for a batch: one round of claims, the handlers one after another in order, one round of
/// completions. A message that comes twice in it is handled once, and its second is a duplicate.
/// `handler` takes a const Message&, and perhaps a Work&.
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
  Claims& claims_;
  std::span<const Message> messages_;
  const ConsumeOptions& options_;
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
