// What Semaphore and ReadWriteLock have in common: an object that holds one claim at most, which
// the attempt names. It is no pattern of its own.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "semel/claims.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/watchdog.hpp"

namespace semel::detail {

/// What an attempt has found.
struct Attempted {
  ClaimOutcome claim;
  std::string key;         ///< of the claim
  std::uint32_t kind = 0;  ///< what the holder has of it: a slot, an access
  Epoch token = 0;         ///< for a fence
};

/// Safe from any thread; an attempt while it holds, or while another thread asks, is refused
/// (object_in_use). `name` begins the details of errors.
class OneHold {
 public:
  OneHold(const Claims& claims, Bytes key, const LockOptions& options, std::string name);
  /// Gives it back.
  ~OneHold();
  OneHold(const OneHold&) = delete;
  OneHold& operator=(const OneHold&) = delete;

  /// `ask` takes Claims& and a ClaimRequest, and returns Attempted. True: held now. If `ask`
  /// throws, a grant is given back before the exception propagates.
  template <class Ask>
  [[nodiscard]] bool attempt(const Ask& ask) {
    if (!begin()) return false;
    Attempted found;
    try {
      found = ask(claims_, request());
      return finish(found);
    } catch (...) {
      abandon(found);
      throw;
    }
  }
  /// Throws std::system_error of error_category() with the code of why_not().
  [[noreturn]] void throw_why() const;
  bool release() noexcept;
  [[nodiscard]] bool is_held() const;
  [[nodiscard]] Epoch token() const noexcept;
  [[nodiscard]] std::uint32_t kind() const noexcept;
  [[nodiscard]] bool renew();
  [[nodiscard]] Error why_not() const;
  /// `wait` from now on.
  [[nodiscard]] Timestamp end_of(Duration wait) const;

 private:
  [[nodiscard]] bool begin();
  [[nodiscard]] bool finish(Attempted& found);
  void abandon(const Attempted& found) noexcept;
  [[nodiscard]] bool take(Attempted& found);
  bool give_back() noexcept;
  [[nodiscard]] bool refuse(ErrorCode code, std::string why);
  [[nodiscard]] ClaimRequest request() const noexcept;

  mutable Claims claims_;
  const std::string key_;
  const std::string owner_;
  const std::string name_;
  const LockOptions options_;
  mutable std::mutex mutex_;  // guards the members below; not held while the engine is asked
  Watchdog::Guard kept_;
  std::string held_key_;
  Epoch epoch_ = 0;  // 0: holds nothing
  std::uint32_t kind_ = 0;
  Epoch token_ = 0;
  Error error_;
  bool asking_ = false;
};

}  // namespace semel::detail
