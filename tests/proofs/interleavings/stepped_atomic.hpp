// An atomic whose accesses are the steps of an Explorer (scheduler.hpp). Memory orders are taken
// and ignored: one fiber runs at a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "tests/proofs/interleavings/scheduler.hpp"

namespace semel::proofs {

/// Lies about some accesses, so that the explorer has something to find. Each returns true if it
/// has done the access itself.
class Liar {
 public:
  virtual ~Liar() = default;
  virtual bool exchange(const void* address, std::uint64_t& value, std::uint64_t& expected,
                        std::uint64_t desired, bool& done) = 0;
  virtual bool set_bits(const void* address, std::uint64_t& value, std::uint64_t bits,
                        std::uint64_t& before) = 0;

  /// Null: all accesses are true.
  static inline thread_local Liar* active = nullptr;
};

template <class T>
class SteppedAtomic {
 public:
  SteppedAtomic() noexcept = default;
  constexpr SteppedAtomic(T value) noexcept : value_(value) {}  // NOLINT: as std::atomic

  [[nodiscard]] T load(std::memory_order) const noexcept {
    step(Access::read);
    return saw(value_);
  }
  void store(T desired, std::memory_order) noexcept {
    step(Access::write);
    write(desired);
    static_cast<void>(saw(desired));
  }
  T fetch_add(T more, std::memory_order) noexcept {
    step(Access::add);
    const T before = value_;
    write(static_cast<T>(before + more));
    return before;  // not seen: only statistics and names are counted, and their order is free
  }
  /// fetch_add where the result matters.
  T take(T count) noexcept {
    step(Access::write);
    const T before = saw(value_);
    write(static_cast<T>(before + count));
    return before;
  }
  T fetch_or(T bits, std::memory_order) noexcept {
    step(Access::set_bits);
    T before = value_;
    if constexpr (sizeof(T) == sizeof(std::uint64_t)) {
      if (Liar::active != nullptr && Liar::active->set_bits(this, value_, bits, before)) {
        return saw(before);
      }
    }
    write(static_cast<T>(before | bits));
    return saw(before);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order,
                               std::memory_order) noexcept {
    step(Access::write);
    if constexpr (sizeof(T) == sizeof(std::uint64_t)) {
      bool done = false;
      if (Liar::active != nullptr &&
          Liar::active->exchange(this, value_, expected, desired, done)) {
        static_cast<void>(saw(value_));
        return done;
      }
    }
    const T before = saw(value_);
    if (before != expected) {
      expected = before;
      return false;
    }
    write(desired);
    return true;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                             std::memory_order failure) noexcept {
    return compare_exchange_strong(expected, desired, success, failure);
  }

  /// Outside of any schedule.
  [[nodiscard]] T peek() const noexcept { return value_; }

 private:
  void step(Access kind) const noexcept {
    if (Explorer* const explorer = Explorer::running()) explorer->step(this, kind);
  }
  T saw(T value) const noexcept {
    if (Explorer* const explorer = Explorer::running()) explorer->saw(value);
    return value;
  }
  void write(T fresh) noexcept {
    const T old = value_;
    value_ = fresh;
    if (Explorer* const explorer = Explorer::running()) explorer->wrote(this, old, fresh);
  }

  T value_ = 0;
};

struct SteppedSync {
  template <class T>
  using atomic = SteppedAtomic<T>;
  static constexpr bool vector_lines = false;  // each word read is a step of its own
};

}  // namespace semel::proofs
