// Scripts of one node that use the same keys run one after the other: two at once would read the
// same versions, and one of them would have run for nothing. An aid and no guard: what decides is
// whether the keys are as they were read (docs/decisions/0044-scripts-by-effect.md).
//
// Keys are known by 64 classes of their hashes. A turn is over all classes of a script's keys; it
// is given in the order of asking, when no earlier one that shares a class is there.
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
  /// A bit.
  [[nodiscard]] static std::uint64_t class_of(std::uint8_t db, std::string_view key) noexcept;

  /// One's place among them; given back when it ends. Belongs to one thread.
  class Turn {
   public:
    Turn() noexcept = default;
    ~Turn() { give_back(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    /// Asks, once. `classes`: not 0. True: it is one's turn. Else see when_given().
    [[nodiscard]] bool ask(ScriptTurns& turns, std::uint64_t classes);
    /// Calls `then` once, when it is one's turn: at once or on some thread, without a lock. Not if
    /// it is given back before.
    void when_given(std::function<void()> then);
    void give_back() noexcept;
    [[nodiscard]] std::uint64_t classes() const noexcept { return classes_; }

   private:
    ScriptTurns* turns_ = nullptr;
    std::uint64_t number_ = 0;
    std::uint64_t classes_ = 0;
  };

  /// The keys of a script, or of a transaction, of some node were not as it had read them.
  void note_conflict(std::uint64_t classes) noexcept {
    contended_.fetch_or(classes, std::memory_order_relaxed);  // mo: relaxed: a hint
  }
  /// Whether one was noted of these since this was asked last. Who goes on at once then takes the
  /// keys from those who ask from farther away, again and again.
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

  /// Gives one who may have it a turn. False: nobody may.
  [[nodiscard]] bool give_next(std::function<void()>& then) noexcept;

  base::Mutex mutex_;
  std::list<Place> places_ SEMEL_GUARDED_BY(mutex_);  // in the order of asking
  std::uint64_t numbers_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> contended_{0};
};

}  // namespace semel::net
