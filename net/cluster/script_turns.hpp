// Serialises the scripts of one node that use the same keys: two at once would read the same
// versions, and one of them would run without effect. An optimisation, not a guard: correctness
// rests on the check that the keys are unchanged (docs/decisions/0044-scripts-by-effect.md).
//
// Keys are mapped to 64 classes by their hashes. A turn covers all classes of a script's keys.
// Turns are granted in the order of request, when no earlier one that shares a class is open.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"

namespace semel::net {

/// Thread-safe.
class ScriptTurns {
 public:
  /// The class of a key, as one bit.
  [[nodiscard]] static std::uint64_t class_of(std::uint8_t db, std::string_view key) noexcept;

  /// A place in the queue, given back by its destructor. Belongs to one thread.
  class Turn {
   public:
    Turn() noexcept = default;
    ~Turn() { give_back(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    /// Requests a turn, once. `classes`: not 0. True: it is granted. Else see when_given().
    [[nodiscard]] bool ask(ScriptTurns& turns, std::uint64_t classes);
    /// Calls `then` once, when the turn is granted: at once or on some thread, without a lock. Not
    /// called if the turn is given back before.
    void when_given(std::function<void()> then);
    void give_back() noexcept;
    [[nodiscard]] std::uint64_t classes() const noexcept { return classes_; }

   private:
    ScriptTurns* turns_ = nullptr;
    std::uint64_t number_ = 0;
    std::uint64_t classes_ = 0;
  };

  /// Notes that keys of a script, or of a transaction, of some node had changed since it read them.
  void note_conflict(std::uint64_t classes) noexcept {
    contended_.fetch_or(classes, std::memory_order_relaxed);  // mo: relaxed: a hint
  }
  /// Whether a conflict of these classes was noted since the last call. Without back-off a local
  /// retry starves remote proposers of the same keys.
  [[nodiscard]] bool take_conflict(std::uint64_t classes) noexcept {
    // mo: relaxed: a hint
    if ((contended_.load(std::memory_order_relaxed) & classes) == 0) return false;
    // mo: relaxed: a hint
    return (contended_.fetch_and(~classes, std::memory_order_relaxed) & classes) != 0;
  }

 private:
  struct Place {
    std::uint64_t number;
    std::uint64_t classes;
    bool is_given;
    std::function<void()> then;
  };

  /// Grants the next eligible turn. False: none is eligible.
  [[nodiscard]] bool give_next(std::function<void()>& then) noexcept;

  base::Mutex mutex_;
  std::list<Place> places_ SEMEL_GUARDED_BY(mutex_);  // in the order of request
  std::uint64_t numbers_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> contended_{0};
};

}  // namespace semel::net
