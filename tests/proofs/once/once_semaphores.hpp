// Semaphores of the once proof: four owners of one semaphore, whose number of permits changes from
// attempt to attempt. No permit is given while there are as many holders as permits, whatever the
// number was before; with fewer holders there is one to be had. A slot has one holder, with a
// larger token than all before.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "semel/patterns/semaphore.hpp"
#include "semel/policies.hpp"
#include "tests/patterns/process.hpp"
#include "tests/proofs/random.hpp"

namespace semel::proofs {

class SemaphoreStory {
 public:
  SemaphoreStory(Random& random, tests::Process& process) : random_(random), process_(process) {}

  /// Some steps of the owners, who end with it. Empty: nothing was outside of the contract.
  [[nodiscard]] std::string play();
  /// In each process, while there is memory.
  void declare() { static_cast<void>(process_.claims("pools", policies::lock)); }
  /// The process has ended, and all holders with it.
  void next_process() noexcept { leftover_ = Timestamp::min(); }
  /// Grants so far.
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

 private:
  static constexpr Millis lease{30'000};
  struct Owner {
    std::optional<Watchdog> watchdog;  // before the semaphore, which it must outlive
    std::optional<Semaphore> semaphore;
    std::uint32_t permits = 1;
    bool holds = false;    // as it believes
    Timestamp at_least{};  // it has its permit until then for certain,
    Timestamp at_most{};   // and perhaps until then
    std::uint32_t slot = 0;
  };

  [[nodiscard]] Timestamp now() { return process_.clock().now(); }
  [[nodiscard]] bool counts() const noexcept { return process_.alive(); }
  [[nodiscard]] bool surely_has(const Owner& owner) {
    return owner.holds && now() < owner.at_least;
  }
  [[nodiscard]] bool perhaps_has(const Owner& owner) { return now() < owner.at_most; }
  void complain(const char* what) {
    if (complaint_.empty() && counts()) complaint_ = what;
  }
  void step(Owner& owner);
  void open(Owner& owner);
  void take(Owner& owner);
  void judge_grant(Owner& owner);
  void give(Owner& owner);
  void renew(Owner& owner);
  void pass_time();
  void look();

  Random& random_;
  tests::Process& process_;
  std::array<Owner, 4> owners_;
  std::map<std::uint32_t, Epoch> newest_;  // token, by slot
  Timestamp leftover_ = Timestamp::min();  // until then permits of an earlier story may be held
  std::uint64_t taken_ = 0;
  std::string complaint_;
};

}  // namespace semel::proofs
