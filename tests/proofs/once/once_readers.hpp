// Read/write locks of the once proof: four callers of one lock, readers and writers by turns, some
// of whom ask again under one claim id and want to be next. Never is a writer in with anybody else;
// who is next is not overtaken; who is excluded by nobody is let in; the tokens of a fence never
// refuse who is in, and refuse who was in before a later writer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "semel/patterns/read_write_lock.hpp"
#include "semel/policies.hpp"
#include "tests/patterns/process.hpp"
#include "tests/proofs/random.hpp"

namespace semel::proofs {

class ReaderStory {
 public:
  ReaderStory(Random& random, tests::Process& process) : random_(random), process_(process) {}

  /// Some steps of the callers, who end with it. Empty: nothing was outside of the contract.
  [[nodiscard]] std::string play();
  /// In each process, while there is memory.
  void declare() { static_cast<void>(process_.claims("rw", policies::lock)); }
  /// The process has ended, and all holders with it.
  void next_process() noexcept { leftover_ = Timestamp::min(); }
  /// Grants so far.
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

 private:
  static constexpr Millis lease{30'000};
  static constexpr Millis next_for{12'000};
  struct Caller {
    ClaimId id{};  // of an attempt and its repeats
    Access access = Access::read;
    bool holds = false;  // as it believes
    std::string key;     // of what it holds
    Epoch epoch = 0;
    Epoch token = 0;
    Timestamp until{};       // its lease
    Timestamp next_until{};  // it is next until then, if it is
  };

  [[nodiscard]] Timestamp now() { return process_.clock().now(); }
  [[nodiscard]] bool counts() const noexcept { return process_.alive(); }
  [[nodiscard]] bool has(const Caller& caller) { return caller.holds && now() < caller.until; }
  /// It excludes `access`.
  [[nodiscard]] bool excludes(const Caller& caller, Access access) {
    return has(caller) && (access == Access::write || caller.access == Access::write);
  }
  [[nodiscard]] bool is_next(const Caller& caller) { return now() < caller.next_until; }
  void complain(const char* what) {
    if (complaint_.empty() && counts()) complaint_ = what;
  }
  void step(Caller& caller);
  void take(Caller& caller);
  void judge_grant(Caller& caller, const AccessOutcome& found);
  void judge_refusal(Caller& caller, const AccessOutcome& found, bool wants_next);
  void give(Caller& caller);
  void renew(Caller& caller);

  Random& random_;
  tests::Process& process_;
  std::array<Caller, 4> callers_{};
  Fence fence_;
  Timestamp leftover_ = Timestamp::min();  // until then what an earlier story held may be held
  std::uint64_t ids_ = 0;
  std::uint64_t taken_ = 0;
  std::string complaint_;
};

}  // namespace semel::proofs
