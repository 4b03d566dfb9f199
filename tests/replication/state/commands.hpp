// Random commands of every kind, which know what they were answered.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "replication/state/answer.hpp"
#include "replication/state/command.hpp"
#include "tests/proofs/random.hpp"

namespace semel::tests {

class Commands {
 public:
  /// `level`: that of the group; what it does not know is not asked.
  explicit Commands(std::uint64_t seed,
                    replication::FeatureLevel level = replication::feature_level_newest)
      : random_(seed), level_(level) {}

  /// Its bytes are kept until forget_bytes().
  [[nodiscard]] replication::Command next();
  /// What it was answered: epochs and sessions are named by later commands.
  void note(const replication::Command& command, const replication::Answer& answer);
  void forget_bytes() { bytes_.clear(); }
  /// Of the log: when the next entry is made.
  [[nodiscard]] std::int64_t next_time();
  /// How often claims were answered so.
  [[nodiscard]] std::uint64_t answered(ClaimAnswer answer) const {
    return answered_[static_cast<std::size_t>(answer)];
  }
  [[nodiscard]] proofs::Random& random() noexcept { return random_; }

 private:
  struct Owned {
    std::string name;
    std::string key;
    Epoch epoch;
  };
  [[nodiscard]] Bytes keep(std::string text) { return bytes_.emplace_back(std::move(text)); }
  [[nodiscard]] Bytes key();
  [[nodiscard]] Bytes value();
  [[nodiscard]] std::uint8_t db();
  [[nodiscard]] Expiry expiry();
  [[nodiscard]] Bytes name();
  [[nodiscard]] replication::Command one();
  [[nodiscard]] replication::StoreCommand store();
  [[nodiscard]] replication::HashCommand hash();
  [[nodiscard]] ClaimRequest request();
  [[nodiscard]] replication::ClaimCommand claim();
  [[nodiscard]] replication::OwnerCommand owner();
  [[nodiscard]] replication::MemoCommand memo();
  [[nodiscard]] replication::OperatorCommand operate();
  [[nodiscard]] replication::NamespaceCommand name_space();
  [[nodiscard]] replication::SessionCommand session();
  [[nodiscard]] replication::LibraryCommand libraries();
  [[nodiscard]] replication::Command whole();

  proofs::Random random_;
  replication::FeatureLevel level_;
  std::deque<std::string> bytes_;  // deque: what it holds does not move
  std::deque<Owned> owned_;        // granted lately
  std::vector<SessionId> sessions_;
  std::array<std::uint64_t, 16> answered_{};
  std::int64_t unix_ms_ = 1'700'000'000'000;
};

}  // namespace semel::tests
