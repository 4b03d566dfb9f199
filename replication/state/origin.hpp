// The node that has proposed a command of the replicated log, and its number there: a command that
// is in the log twice is carried out once (answer_table.hpp).
#pragma once

#include <cstdint>
#include <type_traits>

#include "replication/state/fields.hpp"

namespace semel::replication {

/// No life comes so far; beyond it numbers are damage.
inline constexpr std::uint64_t sequence_max = std::uint64_t{1} << 62;

struct Origin {
  std::uint64_t node = 0;      ///< 0: none: it is carried out as often as it is in the log
  std::uint64_t life = 0;      ///< of that node, as the log has numbered it
  std::uint64_t sequence = 0;  ///< among the commands of that life, from 1
  std::uint64_t lowest = 0;    ///< of the sequences that it waits for; at most `sequence`
  [[nodiscard]] bool operator==(const Origin&) const = default;
};

/// Puts its sequences to a FieldWriter or a FieldReader.
template <class Fields>
void numbers(Fields& fields, Origin& origin) {
  fields.number(origin.lowest);
  std::uint64_t above = origin.sequence - origin.lowest;
  fields.number(above);
  origin.sequence = origin.lowest + above;
  if constexpr (std::is_same_v<Fields, FieldReader>) {
    const bool is_right = origin.lowest != 0 && origin.lowest <= sequence_max &&
                          above <= sequence_max - origin.lowest;
    if (!is_right) fields.fail();
  }
}

/// The same with all of it: 1 byte if there is no node, some 8 otherwise.
template <class Fields>
void all(Fields& fields, Origin& origin) {
  fields.number(origin.node);
  if (origin.node == 0) return;
  fields.number(origin.life);
  numbers(fields, origin);
}

}  // namespace semel::replication
