// Reads of this node, from the call to the proof that its engine shows all that was decided before.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "replication/core/types.hpp"
#include "replication/proposals/proposal.hpp"

namespace semel::replication {

/// Belongs to one thread; times are milliseconds of the loop's clock.
class Reads {
 public:
  /// One question to a majority, for all reads that arrived before it. It ends with the readers'
  /// answers when the question is confirmed and this node has applied both entries.
  struct Round {
    std::uint64_t round = 0;  ///< ConsensusCore::read(); 0: a lease has confirmed it
    LogIndex index = 0;
    LogIndex time_index = 0;       ///< with this entry applied, records ended by the group's time
                                   ///< are gone
    std::uint64_t time_until = 0;  ///< from then on the round ends without that entry
  };

  void add(Reader reader) { waiting_.push_back(std::move(reader)); }
  /// A round is to begin. Reads that arrive while one is under way share the next.
  [[nodiscard]] bool must_ask() const noexcept { return !waiting_.empty() && !round_; }
  void begin(const Round& round) {
    SEMEL_ASSERT(must_ask());
    round_ = round;
    asked_ = std::exchange(waiting_, {});
  }
  /// For the leader, which asks instead.
  [[nodiscard]] std::vector<Reader> take_waiting() noexcept { return std::exchange(waiting_, {}); }
  void finish(std::uint64_t confirmed, LogIndex applied, std::uint64_t now) {
    if (!round_ || confirmed < round_->round || applied < round_->index) return;
    if (applied < round_->time_index && now < round_->time_until) return;
    round_.reset();
    for (Reader& each : std::exchange(asked_, {})) each.done(Answer{PlainAnswer{}});
  }
  /// This node leads no longer.
  void lose(std::uint64_t now) {
    round_.reset();
    refuse(std::exchange(asked_, {}), ErrorCode::not_leader, now);
  }
  /// They wait again, or end with `why`.
  void refuse(std::vector<Reader> readers, ErrorCode why, std::uint64_t now) {
    for (Reader& each : readers) {
      if (now < each.until) {
        add(std::move(each));
      } else {
        each.done(Error{why, {}});
      }
    }
  }
  /// Ends all of them, with the error that they came with.
  void close() noexcept {
    round_.reset();
    asked_.clear();
    waiting_.clear();
  }
  /// Invariant: asked_ is not empty exactly while a round is under way.
  void check_invariants() const noexcept { SEMEL_ASSERT(round_.has_value() == !asked_.empty()); }

 private:
  std::vector<Reader> waiting_;  // that no question is for yet
  std::vector<Reader> asked_;    // that round_ is for
  std::optional<Round> round_;
};

}  // namespace semel::replication
