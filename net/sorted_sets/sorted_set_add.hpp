// What ZADD, ZINCRBY and GEOADD have in common: members with scores that go into a sorted set.
#pragma once

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

/// Adds them to the set at words[1], as one step, with events and reply.
void add_members(Call& call, const AddCommand& command);

}  // namespace semel::net
