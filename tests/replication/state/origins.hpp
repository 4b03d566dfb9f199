// Random numbers of commands: new ones, such that came before, were forgotten, are too far ahead,
// or are of another life.
#pragma once

#include <array>
#include <cstdint>

#include "engine/logged/answer.hpp"
#include "engine/logged/command.hpp"
#include "replication/state/origin.hpp"
#include "tests/proofs/random.hpp"

namespace semel::tests {

class Origins {
 public:
  struct Next {
    replication::Origin origin;
    bool is_new;  ///< as far as is known before it is applied
  };
  static constexpr std::size_t nodes = 3;  ///< from 1; one more is never known

  explicit Origins(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] Next next();
  /// What a command was answered: lives begin by it.
  void note(const replication::Command& command, const replication::Answer& answer);
  /// How often a command was answered without being carried out, for this reason.
  [[nodiscard]] std::uint64_t refused(replication::NotApplied::Why why) const {
    return refused_[static_cast<std::size_t>(why)];
  }

 private:
  struct Node {
    std::uint64_t life = 0;  // as the log has numbered it
    std::uint64_t former = 0;
    std::uint64_t next = 1;
    std::uint64_t lowest = 1;
  };
  proofs::Random random_;
  std::array<Node, nodes + 1> nodes_{};
  std::array<std::uint64_t, 5> refused_{};
};

}  // namespace semel::tests
