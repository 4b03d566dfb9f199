// Locks of the once proof: three owners of one lock, and what the contract allows of them. An owner
// has it from its grant until it gives it back or its lease is over; meanwhile no other gets it,
// and it gets a larger token than all before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "semel/patterns/lock.hpp"
#include "semel/policies.hpp"
#include "tests/patterns/process.hpp"
#include "tests/proofs/random.hpp"

namespace semel::proofs {

class LockStory {
 public:
  LockStory(Random& random, tests::Process& process)
      : random_(random),
        process_(process),
        policy_(random.chance(1, 3) ? policies::fair_lock : policies::lock) {}

  /// Some steps of the owners, who end with it. Empty: nothing was outside of the contract.
  [[nodiscard]] std::string play();
  /// In each process, while there is memory.
  void declare() { static_cast<void>(process_.claims("locks", policy_)); }
  /// The process has ended, and the holder of the lock with it.
  void next_process() noexcept { has_it_.reset(); }
  /// Grants so far.
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

 private:
  static constexpr Millis lease{30'000};
  struct Owner {
    std::optional<Watchdog> watchdog;  // before the lock, which it must outlive
    std::optional<Lock> lock;
    unsigned holds = 0;  // that it believes in
    Epoch token = 0;
  };
  /// The holder of the lock: for certain until `at_least`, perhaps until `at_most`.
  struct Holder {
    std::size_t owner = 0;
    Timestamp at_least{};
    Timestamp at_most{};
  };

  [[nodiscard]] Timestamp now() { return process_.clock().now(); }
  /// What was answered counts: the process lives.
  [[nodiscard]] bool counts() const noexcept { return process_.alive(); }
  [[nodiscard]] bool surely_has(std::size_t owner) {
    return has_it_ && has_it_->owner == owner && now() < has_it_->at_least;
  }
  [[nodiscard]] bool perhaps_has(std::size_t owner) {
    return has_it_ && has_it_->owner == owner && now() < has_it_->at_most;
  }
  void complain(const char* what) {
    if (complaint_.empty() && counts()) complaint_ = what;
  }
  void begin();
  void step(std::size_t owner);
  void take(std::size_t owner);
  void take_again(std::size_t owner, bool taken);
  void give(std::size_t owner);
  void renew(std::size_t owner);
  void write(std::size_t owner);
  void pass_time();
  void count_holders();

  Random& random_;
  tests::Process& process_;
  const Policy policy_;
  std::array<Owner, 3> owners_;
  std::optional<Holder> has_it_;
  Fence fence_;
  Epoch newest_token_ = 0;
  Epoch newest_write_ = 0;
  std::uint64_t taken_ = 0;
  std::string complaint_;
};

}  // namespace semel::proofs
