// Files of a storage that are damaged at random, each in a copy of its own. Opening it finds what
// was acknowledged, or is refused and says where the damage is; nothing is lost without a word.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "tests/storage/faults/findings.hpp"
#include "tests/storage/faults/machine_time.hpp"
#include "tests/storage/faults/places.hpp"
#include "tests/storage/faults/scratch.hpp"

namespace semel::faults {

class Damages {
 public:
  /// All of these must outlive it.
  Damages(const Scratch& scratch, proofs::Random& random, Findings& findings)
      : copy_{scratch / "damaged"}, random_(random), findings_(findings) {}

  /// Between two lives.
  void meet(const Place& place, MachineTime& time);
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
  /// A line for each kind of file.
  void print(const std::string& name) const;

 private:
  enum class Verdict { same, refused, vague, changed };
  static constexpr std::size_t verdicts = 4;
  struct Damage {
    std::string file{};  ///< in the place
    std::string what{};  ///< was done with it
    bool has_offset = false;
  };

  [[nodiscard]] Damage draw();
  [[nodiscard]] Verdict judge(Place& copy, const Damage& damage, MachineTime& time,
                              const std::string& boot, std::string& said);

  const std::string copy_;
  proofs::Random& random_;
  Findings& findings_;
  std::uint64_t refused_ = 0;
  std::map<std::string, std::array<std::uint64_t, verdicts>> counts_;  // by the kind of file
};

}  // namespace semel::faults
