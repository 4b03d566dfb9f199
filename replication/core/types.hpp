// The numbers of a replicated log.
#pragma once

#include <cstdint>

namespace semel::replication {

using Term = std::uint64_t;      ///< grows with each election; 0: none
using LogIndex = std::uint64_t;  ///< of an entry, from 1
using NodeId = std::uint64_t;    ///< of a member of a group, from 1

}  // namespace semel::replication
