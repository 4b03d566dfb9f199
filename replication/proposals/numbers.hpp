// The numbers by which the replicated log knows proposals of this node, so that one may be asked
// again.
#pragma once

#include <cstdint>
#include <optional>

#include "replication/proposals/proposal.hpp"
#include "replication/proposals/sequences.hpp"

namespace semel::replication {

/// A life of a node in the replicated log, which has numbered it, and the numbers of its proposals.
/// Belongs to one thread.
class Numbers {
 public:
  explicit Numbers(NodeId node) noexcept : node_(node) {}

  /// Without a life no proposal gets a number. 0: the log has not given it yet.
  [[nodiscard]] std::uint64_t life() const noexcept { return life_; }
  [[nodiscard]] bool has_life() const noexcept { return life_ != 0; }
  [[nodiscard]] bool has_free() const noexcept { return sequences_.has_free(); }
  void begin(std::uint64_t life) noexcept { life_ = life; }
  /// The log knows this life no longer.
  void lose() noexcept { life_ = 0; }

  /// False: there is no life, or answers_window of numbers are in use. std::bad_alloc.
  [[nodiscard]] bool give(Proposal& proposal) {
    SEMEL_ASSERT(proposal.numbering == Numbering::awaited);
    const std::optional<std::uint64_t> sequence = has_life() ? sequences_.take() : std::nullopt;
    if (!sequence) return false;
    proposal.origin = {.node = node_, .sequence = *sequence};
    proposal.numbering = Numbering::given;
    return true;
  }
  /// Its origin as it goes to the log now.
  [[nodiscard]] const Origin& stamp(Proposal& proposal) const noexcept {
    if (proposal.has_number()) {
      proposal.origin.life = life_;
      proposal.origin.lowest = sequences_.lowest();
    }
    return proposal.origin;
  }
  /// No caller waits for its answer under this number any more: the next command tells the
  /// replicated log.
  void take_back(Proposal& proposal) {
    if (!proposal.has_number()) return;
    sequences_.end(proposal.origin.sequence);
    proposal.origin = {};
    proposal.numbering = Numbering::awaited;
  }

 private:
  const NodeId node_;
  std::uint64_t life_ = 0;
  Sequences sequences_;
};

}  // namespace semel::replication
