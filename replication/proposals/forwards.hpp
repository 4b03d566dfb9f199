// What this node has sent to the leader, and what it waits for afterwards. Every node answers when
// it has applied what it was answered, so that its own engine shows it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "replication/proposals/proposal.hpp"

namespace semel::replication {

/// Under way to the leader, and not answered. Belongs to one thread; times are milliseconds of the
/// loop's clock.
class Forwards {
 public:
  using Readers = std::vector<Reader>;
  struct Pending {
    NodeId leader;
    std::uint64_t since;
    std::variant<Proposal, Readers> what;
    [[nodiscard]] Proposal* proposal() noexcept { return std::get_if<Proposal>(&what); }
    [[nodiscard]] const Proposal* proposal() const noexcept { return std::get_if<Proposal>(&what); }
  };

  /// `seed`: another one in each life of a node: a leader may still answer those of an earlier one.
  explicit Forwards(std::uint64_t seed) noexcept : newest_(seed) {}

  [[nodiscard]] bool is_full() const noexcept;
  /// The id by which the next add() is known to the leader.
  [[nodiscard]] std::uint64_t next_id() const noexcept { return newest_ + 1; }
  void add(NodeId leader, std::uint64_t now, Proposal proposal);
  /// Not while has_reads(): later readers wait, and go together.
  void add(NodeId leader, std::uint64_t now, Readers readers);
  [[nodiscard]] bool has_reads() const noexcept { return reads_ != 0; }
  [[nodiscard]] std::size_t proposals() const noexcept {
    return all_.size() - (has_reads() ? 1 : 0);
  }

  /// The leader that it was sent to has answered; none: another node has, or it is not awaited.
  [[nodiscard]] std::optional<Pending> take(std::uint64_t id, NodeId from);
  /// Those sent to other nodes than `leader`. std::bad_alloc, with nothing taken.
  [[nodiscard]] std::vector<Pending> take_of_others(NodeId leader);
  /// Those whose leader is alive but silent past the deadline: `patience`, or, where a proposal can
  /// be asked again, a sixth of it, doubled each time: it may have too much to do.
  [[nodiscard]] std::vector<Pending> take_late(std::uint64_t now, std::uint64_t patience);
  /// All pending calls, at the end of the replica. Takes no memory.
  [[nodiscard]] std::map<std::uint64_t, Pending> take_all() noexcept {
    reads_ = 0;
    return std::exchange(all_, {});
  }

  void check_invariants() const noexcept;

 private:
  [[nodiscard]] std::vector<Pending> take_if(const std::function<bool(const Pending&)>& is);

  std::uint64_t newest_;
  std::uint64_t reads_ = 0;  // the id of the readers, of which one group is under way; 0: none
  std::map<std::uint64_t, Pending> all_;
};

/// What the leader has answered, and this node has not applied yet. Belongs to one thread.
class AppliedWaits {
 public:
  struct Wait {
    Reply done{};  // of a proposal
    Answer answer{};
    Forwards::Readers readers{};
    std::uint64_t until = 0;
  };

  /// Answers it now if `index` is applied, and otherwise when it is, or not_leader after `until`: a
  /// node that is cut off right after the leader's answer must not wait for ever.
  void add(LogIndex index, LogIndex applied, Wait wait);
  /// Answers the calls that wait for entries up to `applied`. Takes no memory.
  void run(LogIndex applied) noexcept;
  void give_up(std::uint64_t now);

 private:
  static void end(Wait& wait, bool is_applied) noexcept;

  std::multimap<LogIndex, Wait> waits_;
};

}  // namespace semel::replication
