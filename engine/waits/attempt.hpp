// A call that may have to wait: what it tries, and where its answer goes. The wait queue knows no
// more of its users than this.
//
// A user tries once by itself. If the answer is "not yet", it hands the attempt to the queue with
// the keys whose changes may alter that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "semel/claim.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// What a try came to. "The next" is the next of its kind, see WaitKind.
enum class Verdict : std::uint8_t {
  answered,        ///< its wait ends, and the next in line is tried
  answered_first,  ///< its wait ends; the next is tried after another change, or after a moment in
                   ///< which there was none: this one will change the key
  waits,           ///< it stays, and none of its kind behind it can be answered either
  passes,          ///< it stays; the next may want something else, and is tried
};

/// What an attempt takes. Attempts of different kinds do not hold each other back in a line: a wait
/// for an element of a list does not block a wait for a claim behind it.
enum class WaitKind : std::uint8_t { claim, list, sorted_set, stream };
inline constexpr std::size_t wait_kinds = 4;

/// What a try saw besides: the holder of the key. A key without one leaves all but `now`.
struct Seen {
  Timestamp now{};                ///< of the try
  Timestamp held_until = no_end;  ///< when to try again though nothing has changed
  SessionId held_session = 0;     ///< whose end changes the answer; 0: of none
  std::uint32_t attempt = 0;      ///< which grant of the holder
  std::string owner{};            ///< the holder's label
};

/// All functions are called without a lock, one at a time, but for give_up().
class Attempt {
 public:
  Attempt() = default;
  virtual ~Attempt() = default;
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  /// Tries for the key at `key` of the keys it waits for, and keeps the answer. May throw
  /// std::bad_alloc before it has changed anything.
  [[nodiscard]] virtual Verdict try_for(std::size_t key, Seen& seen) = 0;
  /// Keeps the answer of a wait that ends without one: timed_out or closing. `seen`: by the last
  /// try in its line. Called under the queue's lock: it calls nothing.
  virtual void give_up(ErrorCode why, Timestamp now, const Seen& seen) noexcept = 0;
  /// Its caller had left by the time it was answered, or it never was: undoes what it was given.
  virtual void give_back() = 0;
  /// What it holds, for the memory limit.
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;
  /// Always the same.
  [[nodiscard]] virtual WaitKind kind() const noexcept { return WaitKind::claim; }
};

/// Where the answer of an attempt goes, apart from it: a caller that leaves takes this away at
/// once, also while its attempt is being tried.
class Receiver {
 public:
  Receiver() = default;
  virtual ~Receiver() = default;
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// Takes the answer. Called once, without a lock.
  virtual void answered() = 0;
};

}  // namespace semel::engine
