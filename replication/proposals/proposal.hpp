// A command on its way to the replicated log, and a read on its way to its proof.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/assert.hpp"
#include "replication/proposals/reply.hpp"
#include "replication/state/entry.hpp"

namespace semel::replication {

/// Which node gives a command the number by which the group carries it out once.
enum class Numbering : std::uint8_t {
  none,     ///< no number: the group carries it out as often as it is proposed
  awaited,  ///< this node will number it
  given,    ///< this node has numbered it
  by_peer,  ///< numbered by the node that has forwarded it, which asks the next leader itself
};

/// Times are milliseconds of the loop's clock.
///
///   numbering | origin.sequence | who forwards it           | may be open and wait again
///   none      | 0               | this node                 | if it repeats
///   awaited   | 0               | none, before its number   | if it repeats
///   given     | not 0           | this node                 | yes
///   by_peer   | of the peer     | its peer has              | no
///
/// Open: an entry, or another node, had it, and it is not known whether it was decided.
struct Proposal {
  PreparedCommand command{};  ///< its bytes are empty once it cannot be proposed again
  Reply done{};
  Numbering numbering = Numbering::none;
  Origin origin{};
  bool is_open = false;
  bool repeats = false;          ///< ProposalTerms
  bool forwards = false;         ///< ProposalTerms
  std::uint64_t until = 0;       ///< it waits for a leader
  std::uint64_t asks_again = 0;  ///< how long, once it is open
  unsigned asked = 0;            ///< how often it was forwarded

  [[nodiscard]] static Proposal made(PreparedCommand command, ProposalDone done,
                                     const ProposalTerms& terms, std::uint64_t now) {
    return {.command = std::move(command),
            .done = {std::move(done), ErrorCode::outcome_unknown},
            .numbering = terms.is_numbered ? Numbering::awaited : Numbering::none,
            .repeats = terms.repeats,
            .forwards = terms.forwards,
            .until = now + static_cast<std::uint64_t>(terms.patience.count()),
            .asks_again = static_cast<std::uint64_t>(terms.asks_again.count())};
  }
  [[nodiscard]] bool has_bytes() const noexcept { return !command.bytes.empty(); }
  [[nodiscard]] bool has_number() const noexcept { return numbering == Numbering::given; }
  [[nodiscard]] bool is_own() const noexcept { return numbering != Numbering::by_peer; }
  /// Asked again it cannot be decided twice, or may be.
  [[nodiscard]] bool can_repeat() const noexcept { return has_number() || repeats; }
  [[nodiscard]] bool can_ask_again(std::uint64_t now) const noexcept {
    return can_repeat() && (asks_again != 0 || now < until);
  }
  /// An open one is forwarded even where the node names its leader instead: that would let its
  /// client ask anew, under another number.
  [[nodiscard]] bool may_forward(bool node_forwards) const noexcept {
    return is_own() && (node_forwards || forwards || is_open);
  }
  void open(std::uint64_t now) noexcept {
    if (!std::exchange(is_open, true)) until = std::max(until, now + asks_again);
  }
  /// The error of one that ends without an answer. That nothing was changed this time says nothing
  /// about the times before.
  [[nodiscard]] ErrorCode error(ErrorCode if_untouched) const noexcept {
    return is_open ? ErrorCode::outcome_unknown : if_untouched;
  }
  /// Invariant: (numbering == given) == (origin.sequence != 0), unless numbering == by_peer.
  void check_invariants() const noexcept {
    SEMEL_ASSERT(!is_own() || has_number() == (origin.sequence != 0));
  }
};

struct Reader {
  Reply done;
  std::uint64_t until = 0;  ///< it waits for a leader
};

}  // namespace semel::replication
