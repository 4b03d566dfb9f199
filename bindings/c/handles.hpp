// The structs behind the handles of semel.h, and what every function of it has in common.
#pragma once

#include <cxxabi.h>

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "semel.h"
#include "semel/claims.hpp"
#include "semel/engine.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/watchdog.hpp"
#include "semel/process.hpp"
#include "semel/store.hpp"

struct semel_claims {
  semel::Claims claims;
  semel_engine* engine;
};

struct semel_engine {
  // In the order in which they may go, the last first.
  std::unique_ptr<semel::Clock> clock;
  semel::ManualClock* manual = nullptr;  // the same, if it is one
  std::unique_ptr<semel::Journal> storage;
  std::unique_ptr<semel::Engine> engine;
  std::size_t key_bytes_max = semel::limits::key_bytes_max;
  std::size_t value_bytes_max = semel::limits::value_bytes_default;
  semel::ProcessMark process;
  std::atomic<bool> has_leader{false};  // of those in semel_wait_for
  semel::base::Mutex mutex;
  std::unique_ptr<semel::Watchdog> watchdog SEMEL_GUARDED_BY(mutex);
  std::map<std::string, std::unique_ptr<semel_claims>, std::less<>> claims SEMEL_GUARDED_BY(mutex);
  // of namespaces that are gone
  std::vector<std::unique_ptr<semel_claims>> dropped SEMEL_GUARDED_BY(mutex);

  /// Renews leases on a thread of its own, which starts with the first call.
  [[nodiscard]] semel::Watchdog& keeper();
  semel::Millis work_max = semel::WatchdogOptions{}.work_max;
  [[nodiscard]] semel::Store store() noexcept { return engine->store(); }
};

struct semel_lock {
  semel::Lock lock;
  semel_claims& claims;
};

struct semel_out {
  std::string bytes;
};

namespace semel::c {

/// How often a keeper looks: leases of a second are still renewed three times before they end.
inline constexpr Millis keeper_every{100};

[[nodiscard]] constexpr int number_of(ErrorCode code) noexcept {
  return static_cast<int>(code);
}

/// Remembers the detail for this thread, and returns the number.
int say(ErrorCode code, const std::string& text = {}) noexcept;
inline int say(const Error& error) noexcept {
  return say(error.code, error.detail);
}
inline int say(const Status& status) noexcept {
  return status ? SEMEL_OK : say(status.error());
}
/// For a call that may have had an effect whose outcome could not be returned.
int say_unknown_outcome(const char* why) noexcept;

/// Runs `function`, which returns an error's number; whatever it throws becomes one. The end of a
/// thread that is cancelled inside goes on: it is not an error, and cannot be held up.
template <class Function>
int guarded(Function&& function) {
  try {
    return function();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const std::bad_alloc&) {
    return say_unknown_outcome("no memory");
  } catch (const std::exception& thrown) {
    return say_unknown_outcome(thrown.what());
  } catch (...) {
    return say_unknown_outcome("an exception");
  }
}

[[nodiscard]] inline Bytes bytes_of(const void* data, std::size_t length) noexcept {
  return data == nullptr ? Bytes{} : Bytes{static_cast<const char*>(data), length};
}
/// False: a length without bytes.
[[nodiscard]] constexpr bool is_sound(const void* data, std::size_t length) noexcept {
  return data != nullptr || length == 0;
}
int say_null(const char* what) noexcept;
/// SEMEL_FORKED in a child of the engine's process: none of its mutexes is to be waited for.
[[nodiscard]] inline int check_process(const semel_engine& engine) noexcept {
  return engine.process.is_here() ? int{SEMEL_OK} : say(ErrorCode::forked);
}

}  // namespace semel::c
