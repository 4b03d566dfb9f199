// What ZADD, ZINCRBY and GEOADD have in common: members with scores that go into a sorted set.
#pragma once

#include <string_view>
#include <vector>

#include "engine/types/sorted_set.hpp"
#include "net/commands/command.hpp"

namespace semel::net {

struct Addition {
  double score;
  Bytes member;
};

struct AddCommand {
  engine::AddRule rule{};
  bool counts_moved = false;          ///< CH
  std::vector<Addition> additions{};  ///< one, if the rule adds
};

/// Reads a flag that ZADD and GEOADD share: NX, XX or CH. False if `word` is none of them.
[[nodiscard]] bool read_add_flag(std::string_view word, AddCommand& command) noexcept;

/// Adds them to the set at words[1], as one step, with events and reply.
void add_members(Call& call, const AddCommand& command);

}  // namespace semel::net
