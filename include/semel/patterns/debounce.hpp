// Not again so soon: a click that comes twice, a webhook that rings, a rebuild that is asked for a
// hundred times.
//
//   Debounce clicks{*engine, claims, {.interval = Millis{45'000}}};
//   auto pressed = clicks.run(user, [&] { return submit(form); });
//   if (pressed == DebounceAnswer::suppressed) ..
//
// The interval is the claim's lease. It is longer than the work takes, or a Watchdog keeps it: what
// lasts longer than its interval may run beside the next.
// Source: docs/patterns.md#debounce
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "semel/patterns/once.hpp"
#include "semel/patterns/returns.hpp"

namespace semel {

enum class DebounceAnswer : std::uint8_t {
  unanswered,
  ran,
  suppressed,      ///< it ran, or runs, within the interval
  will_run_again,  ///< it runs, and will be run once more when it ends
  failed,          ///< it ran, and returned an error
  busy,            ///< no room: nothing ran
  refused,         ///< the call is not valid, or run_latest_after a function that cannot be copied
};

struct DebounceOptions {
  Millis interval{45'000};        ///< from the beginning of a run
  bool remove_on_finish = false;  ///< the next may run as soon as this one has ended well
  bool remove_on_error = false;   ///< .. or has failed
  /// A call during a run is not lost: there is one more run after it, for all such calls. Runs
  /// then do not wait for the interval. It is the running call's own function that runs again, as
  /// for work that reads its input itself (a rebuild).
  bool run_once_more_after = false;
  /// The same, but what runs again is the function of the last call that came meanwhile, as for
  /// work whose input is what the call captures (a form that is saved). It is copied, may run on
  /// another thread, and after its own call has returned: capture by value. Calls of another
  /// Debounce object, or process, cannot hand a function over; for them the running call's own one
  /// runs again.
  bool run_latest_after = false;
  Watchdog* watchdog = nullptr;
};

class Debounce {
 public:
  /// `claims` should have policies::debounce; nothing else uses its keys.
  Debounce(Engine& engine, const Claims& claims, const DebounceOptions& options = {});

  /// Runs `function` unless it ran within the interval. It may return nothing, a bool, a Status or
  /// a Result; nothing else compiles. One that throws has failed; the one more run that
  /// others were promised comes all the same, and the first exception, or the cancellation of the
  /// thread, goes on after that.
  /// Progress: that of the function; waits for the journal.
  template <class Function>
  DebounceAnswer run(Bytes key, Function&& function);

  /// How long until it may run again; 0: now.
  [[nodiscard]] Result<Millis> remaining(Bytes key);

 private:
  class Turn;

  class Handed;

  Engine* engine_;
  Claims claims_;
  DebounceOptions options_;
  std::shared_ptr<Handed> handed_;  // run_latest_after: functions of calls during a run
};

/// One call: the claim, and whether other calls came while it ran.
class Debounce::Turn {
 public:
  using Function = std::function<bool()>;
  /// `latest`: to be handed over to the call that runs, if there is one; perhaps empty.
  Turn(Debounce& debounce, Bytes key, Function latest);
  /// If the thread is being cancelled, the run that others were promised is here.
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  [[nodiscard]] bool runs() const noexcept { return runs_; }
  /// Runs `function` until no other call waits for a run.
  void run(const Function& function);
  [[nodiscard]] DebounceAnswer answer() const noexcept { return answer_; }

 private:
  void ask();
  /// Runs the call's own function, or one that was handed over.
  [[nodiscard]] bool run_one();
  /// Ends a run. Afterwards runs() says whether there is one more.
  void end(bool ok);
  [[nodiscard]] bool announce();
  [[nodiscard]] bool others_asked();

  Debounce& debounce_;
  Bytes key_;
  std::string asked_key_;
  const Function* own_ = nullptr;
  Function handed_over_;
  std::shared_ptr<void> turn_;  // run_latest_after: functions are kept while it is under way
  std::uint64_t place_ = 0;     // of the function handed over; 0: none
  Watchdog::Guard kept_;
  Epoch epoch_ = 0;
  Version seen_ = 0;
  bool runs_ = false;
  DebounceAnswer answer_ = DebounceAnswer::unanswered;
};

namespace detail {

template <class Function>
bool succeeds(Function& function) {
  using Plain = std::remove_cvref_t<decltype(function())>;
  static_assert(!is_lazy<Plain>,
                "the function returns work that is still to be done (a future, a coroutine, a "
                "callable, a lazy range): wait for it or call it, and return what became of it");
  static_assert(is_lazy<Plain> || SaysWhetherDone<Plain>,
                "the function returns nothing, bool, Status, or a Result of a bool or of a value "
                "that says nothing by itself: of another type it is not known which value is "
                "success");
  if constexpr (is_lazy<Plain> || !SaysWhetherDone<Plain>) {
    return false;
  } else if constexpr (std::is_void_v<Plain>) {
    function();
    return true;
  } else if constexpr (std::is_same_v<Plain, bool>) {
    return function();
  } else if constexpr (std::is_same_v<Plain, Result<bool>>) {
    const Result<bool> result = function();
    return result.ok() && *result;
  } else {
    return function().ok();
  }
}

}  // namespace detail

template <class Function>
DebounceAnswer Debounce::run(Bytes key, Function&& function) {
  Turn::Function latest;
  if constexpr (std::is_copy_constructible_v<std::decay_t<Function>>) {
    if (options_.run_latest_after) {
      latest = [copy = std::decay_t<Function>(function)]() mutable {
        return detail::succeeds(copy);
      };
    }
  }
  // Only a copy can run later, in another call.
  if (options_.run_latest_after && !latest) return DebounceAnswer::refused;
  // Outlives the turn, whose end runs it where the thread is being cancelled.
  const Turn::Function own = [&] { return detail::succeeds(function); };
  Turn turn{*this, key, std::move(latest)};
  if (turn.runs()) turn.run(own);
  return turn.answer();
}

}  // namespace semel
