// Rate limits of the once proof: one of each kind. What is allowed, what is left and when more is
// to be had is what a plain count of all calls says, whatever processes end and memory is full
// between.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "semel/patterns/rate_limit.hpp"
#include "tests/patterns/process.hpp"
#include "tests/patterns/true_rates.hpp"
#include "tests/proofs/random.hpp"

namespace semel::proofs {

class LimitStory {
 public:
  LimitStory(Random& random, tests::Process& process);

  /// Some calls. Empty: nothing was outside of the contract.
  [[nodiscard]] std::string play();
  /// Calls that were allowed so far.
  [[nodiscard]] std::uint64_t allowed() const noexcept { return allowed_; }

 private:
  struct Limit {
    const char* key = "";
    RateTerms terms{};
    std::unique_ptr<tests::TrueRate> truth{};
  };

  void take(Limit& limit);
  void complain(const char* what) {
    if (complaint_.empty()) complaint_ = what;
  }

  Random& random_;
  tests::Process& process_;
  std::array<Limit, 3> limits_;
  std::uint64_t allowed_ = 0;
  std::string complaint_;
};

}  // namespace semel::proofs
