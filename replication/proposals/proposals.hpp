// Proposals of this node, and of peers while it leads, from the call to the answer.
//
//   add() -- Numbering::awaited --> held_ -- life and window --> ready_ --> entries_, by the leader
//        '-- any other --------------------------------------->  ^  '-----> hand_over(), to it
//                                                                '-- put_back(), lose() --'
//
// The number of a proposal stays the same when it is asked again. It ends with its answer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "engine/api/sessions.hpp"
#include "replication/proposals/call_queue.hpp"
#include "replication/proposals/numbers.hpp"
#include "replication/proposals/proposal.hpp"

namespace semel::replication {

/// Belongs to one thread. `now`: milliseconds of a clock that does not go back. Callbacks of
/// proposals run within the calls that end them. Of this object they may call close() alone.
class Proposals {
 public:
  struct Figures {
    std::size_t ready = 0;
    std::size_t held = 0;        ///< that have no number
    std::size_t entries = 0;     ///< of this leader that are not applied
    std::size_t commands = 0;    ///< in them
    LogIndex newest_entry = 0;   ///< 0: there is none that is not applied
    std::uint64_t entry_at = 0;  ///< when begin_entry() was called last
    bool has_life = false;       ///< the log has numbered this node
    bool can_number = false;     ///< number_held() would give a number
  };

  explicit Proposals(const engine::SessionOwner& owner) noexcept
      : owner_(owner), numbers_(owner.node) {}
  Proposals(const Proposals&) = delete;
  Proposals& operator=(const Proposals&) = delete;

  // --- before the log -------------------------------------------------------------------------
  /// Of the CallQueue, which has counted its bytes.
  void add(Proposal proposal);
  /// Of this node itself, without a number. std::bad_alloc.
  void add_own(const Command& command, ProposalDone done, const ProposalTerms& terms,
               std::uint64_t now);
  /// Gives numbers to those that wait for one, as long as there are any.
  void number_held();
  /// Ends what earlier lives of this node have bound to connections or to themselves, and asks the
  /// log for the number of this one, unless it has one or has been asked. std::bad_alloc.
  void begin_life(std::uint64_t now);
  /// Bytes that began and ended to wait here since the last call.
  [[nodiscard]] CallQueue::Change take_change() noexcept { return std::exchange(change_, {}); }
  [[nodiscard]] Figures figures() const noexcept {
    return {.ready = ready_.size(),
            .held = held_.size(),
            .entries = entries_.size(),
            .commands = commands_,
            .newest_entry = entries_.empty() ? 0 : entries_.back().index,
            .entry_at = entry_at_,
            .has_life = numbers_.has_life(),
            .can_number = !held_.empty() && numbers_.has_life() && numbers_.has_free()};
  }
  /// No further entry begins: enough are under way, or too little is there to fill one.
  [[nodiscard]] bool is_full() const noexcept;

  // --- by the leader --------------------------------------------------------------------------
  /// Takes what fits into the entry `index` of `term`, at least one of those that are ready, and
  /// returns the entry's bytes. To be called before the core takes them: with one voter they may be
  /// applied within that call.
  [[nodiscard]] std::string begin_entry(LogIndex index, Term term, std::int64_t unix_ms,
                                        std::uint64_t now);
  /// The core has taken the newest entry, `index`, or has refused it. False: refused.
  [[nodiscard]] bool end_entry(LogIndex index, const Status& taken, std::uint64_t now);
  /// The entry at `index` was applied with these answers, whichever node proposed it.
  void answer(LogIndex index, Term term, Result<std::vector<Answer>>& answers, std::uint64_t now);
  /// This node leads no longer: another leader may decide commands in entries.
  void lose_entries(std::uint64_t now);

  // --- to the leader --------------------------------------------------------------------------
  /// Calls `send` with each that this node may forward, stamped, until that returns false. It must
  /// move from the others, after note_sent().
  void hand_over(bool node_forwards, const std::function<bool(Proposal&)>& send);
  void note_sent(Proposal& proposal, std::uint64_t now);
  /// Ends those that may not wait for a leader any longer. Most calls find none at once.
  void refuse_waiting(ErrorCode why, std::uint64_t now);

  // --- what became of one ---------------------------------------------------------------------
  /// It was not decided this time: it waits again, or ends with `why`.
  void put_back(Proposal proposal, ErrorCode why, std::uint64_t now);
  /// It is not known whether it was decided: it is asked again, or ends with outcome_unknown.
  void lose(Proposal proposal, std::uint64_t now) {
    proposal.open(now);
    put_back(std::move(proposal), ErrorCode::outcome_unknown, now);
  }
  /// The log has it, and has not carried it out. Of one with a number.
  void not_applied(Proposal proposal, NotApplied::Why why, std::uint64_t now);
  void finish(Proposal& proposal, Result<Answer> answer);
  /// Ends all of them: commands in an entry with outcome_unknown, the rest with closing. Nothing is
  /// added afterwards. Takes no memory.
  void close() noexcept;

  /// Invariant: commands_ is the sum of the proposals in entries_.
  void check_invariants() const noexcept;

 private:
  struct Entry {
    LogIndex index;
    Term term;
    std::vector<Proposal> proposals;
  };
  void wait_in(std::deque<Proposal>& waiting, Proposal proposal);
  void refuse(std::deque<Proposal>& waiting, ErrorCode why, std::uint64_t now);
  void drop_bytes(Proposal& proposal) noexcept;
  [[nodiscard]] bool may_wait(const Proposal& proposal, std::uint64_t now) const noexcept {
    return !is_closed_ && now < proposal.until;
  }

  const engine::SessionOwner owner_;
  Numbers numbers_;
  bool is_beginning_ = false;  // a life was asked for
  bool is_closed_ = false;
  std::uint64_t entry_at_ = 0;
  std::uint64_t refusal_at_ = 0;  // none of ready_ and held_ has to end before
  CallQueue::Change change_;
  std::deque<Proposal> held_;
  std::deque<Proposal> ready_;
  std::deque<Entry> entries_;
  std::size_t commands_ = 0;  // in entries_
};

}  // namespace semel::replication
