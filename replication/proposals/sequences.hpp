// The numbers of the commands that a node proposes, as long as it waits for their answers.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/assert.hpp"
#include "replication/state/answer_table.hpp"

namespace semel::replication {

/// Belongs to one thread.
class Sequences {
 public:
  /// None: there are answers_window of them from the lowest that is waited for.
  [[nodiscard]] std::optional<std::uint64_t> take() {
    if (!has_free()) return std::nullopt;
    waits_.push_back(true);
    return lowest_ + waits_.size() - 1;
  }
  /// No caller waits for it any longer. Once.
  void end(std::uint64_t sequence) {
    SEMEL_ASSERT(sequence >= lowest_ && sequence - lowest_ < waits_.size());
    SEMEL_ASSERT(waits_[sequence - lowest_]);
    waits_[sequence - lowest_] = false;
    for (; !waits_.empty() && !waits_.front(); ++lowest_) waits_.pop_front();
  }
  [[nodiscard]] bool has_free() const noexcept { return waits_.size() < answers_window; }
  /// That is waited for. Where none is: the next one.
  [[nodiscard]] std::uint64_t lowest() const noexcept { return lowest_; }

 private:
  std::uint64_t lowest_ = 1;
  std::deque<bool> waits_;  // of lowest_, and those behind it
};

}  // namespace semel::replication
