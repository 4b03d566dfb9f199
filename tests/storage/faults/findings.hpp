// What a proof has found wrong in the lives of a storage: counted by kind, and the first of it
// shown. Of one thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tests/storage/faults/proofs.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {

class Findings {
 public:
  struct Counts {
    std::uint64_t lost = 0;
    std::uint64_t back = 0;  ///< of them, what was deleted or had ended
    std::uint64_t strange = 0;
    std::uint64_t parted = 0;
    std::uint64_t wrong = 0;  ///< answers
    std::uint64_t not_opened = 0;
  };

  /// `name`: of the proof. `wanted` must outlive this.
  Findings(std::string name, const Wanted& wanted) : name_(std::move(name)), wanted_(wanted) {}

  /// What the lines are about from now on.
  void look_at(std::string place) { place_ = std::move(place); }
  /// Shows a line: one of the first twelve, and none of a disk that lies.
  void say(const std::string& what);
  void lost(const std::string& what);
  void wrong(const std::string& what);
  void not_opened(const std::string& what);
  /// The wrong answers of a worker.
  void add(const Tally& tally);

  struct Expected {
    Timestamp horizon{};         ///< of compare()
    Epoch largest_epoch = 0;     ///< that somebody was given
    Millis slack = clock_slack;  ///< as of compare()
  };
  /// Compares an opened storage with the ledger, and its next version with the epochs before it.
  /// Errors: those of reading, which are not counted.
  [[nodiscard]] Result<Found> judge(World& world, Ledger& ledger, const Clock& clock,
                                    const Expected& expected);

  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  [[nodiscard]] std::uint64_t total() const noexcept {
    return counts_.lost + counts_.strange + counts_.parted + counts_.wrong + counts_.not_opened;
  }

 private:
  const std::string name_;
  const Wanted& wanted_;
  std::string place_;
  std::uint64_t said_ = 0;
  Counts counts_;
};

}  // namespace semel::faults
