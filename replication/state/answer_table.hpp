// Answers to the nodes of a group, as long as these may ask again: a part of the replicated state.
// A command that comes a second time, because its leader ended before it answered, gets the answer
// of the first time, and nothing is changed.
//
//   per node: one life | base .. the newest sequence that was decided
//                        '- no caller waits below it: forgotten, and refused if it comes
//
// A life of a node begins with the entry that ends its former ones (SessionCommand::close_former).
// The log numbers it by the index of that entry, so that numbers do not repeat. Commands of other
// lives are refused. Each command tells the lowest sequence that its node still waits for, and the
// answers below are forgotten.
//
// Everything is decided by the entries alone: the table is the same on every replica.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/logged/answer.hpp"
#include "replication/core/types.hpp"
#include "replication/state/origin.hpp"
#include "semel/types.hpp"

namespace semel::replication {

class FieldReader;

/// Sequences of one life between the lowest that it waits for and the newest.
inline constexpr std::size_t answers_window = 32'768;
/// A longer answer is not kept: a repeat learns that the command was decided, not its answer.
inline constexpr std::size_t kept_answer_bytes_max = std::size_t{64} << 10;
/// Of all kept answers of a life.
inline constexpr std::size_t kept_bytes_max = std::size_t{1} << 20;
/// As many as a group has members, and some.
inline constexpr std::size_t lives_max = 24;

/// Belongs to one thread at a time.
class AnswerTable {
 public:
  /// A life of a node begins, or is asked for again: its number. The former one is forgotten.
  /// `index`: of the entry that opens it. `node`: from 1.
  std::uint64_t open(std::uint64_t node, std::uint64_t life, LogIndex index);
  /// Forgets all other nodes.
  void keep(std::span<const std::uint64_t> nodes);

  /// What a command is answered without being carried out; none: it is to be carried out, and
  /// remember() is next. Sequences below `origin.lowest` are forgotten. std::bad_alloc.
  [[nodiscard]] std::optional<Answer> find(const Origin& origin);
  /// Of the command that find() was asked for. std::bad_alloc.
  void remember(const Origin& origin, const Answer& answer);

  /// Appends all of it: equal bytes if and only if the tables answer alike.
  void encode(std::string& to) const;
  /// Takes the place of an empty one. False: these are not bytes of encode(), and it stays empty.
  [[nodiscard]] bool restore(Bytes from);

  /// Memory of rings and answers, about.
  [[nodiscard]] std::size_t bytes() const noexcept;
  [[nodiscard]] std::size_t lives() const noexcept { return lives_.size(); }

 private:
  enum class State : std::uint8_t { undecided, kept, not_kept };
  struct Slot {
    std::string answer;
    State state = State::undecided;
  };
  struct Life {
    std::uint64_t node = 0;
    std::uint64_t life = 0;  // as the node has named it
    std::uint64_t number = 0;
    std::uint64_t base = 1;    // the lowest sequence that is not forgotten
    std::uint64_t end = 1;     // behind the newest that was decided; never below base
    std::size_t bytes = 0;     // of the answers
    std::vector<Slot> ring{};  // sequence s at s % size, a power of two
  };
  [[nodiscard]] Life* life_of(std::uint64_t node) noexcept;
  static void forget_below(Life& life, std::uint64_t lowest);
  static void clear(Life& life, Slot& slot);
  static void make_room(Life& life, std::uint64_t sequence);
  [[nodiscard]] static Slot& slot_of(Life& life, std::uint64_t sequence) noexcept {
    return life.ring[sequence & (life.ring.size() - 1)];
  }
  [[nodiscard]] static bool restore(FieldReader& fields, Life& life);

  std::vector<Life> lives_;  // ascending by node
  std::size_t last_ = 0;     // the one that was asked for last
};

}  // namespace semel::replication
