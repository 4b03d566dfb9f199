// A change of the libraries of functions that a group decides. Its handler is called twice: first
// to compute the change, which may run a library's code, then to reply.
#pragma once

#include <string>

#include "engine/logged/library_table.hpp"

namespace semel::net {

struct GroupLibrary {
  replication::LibraryChange change{};  ///< to propose
  bool is_decided = false;              ///< the members below are set
  std::string error{};                  ///< the whole reply, if the group could not decide it
  replication::LibraryVerdict verdict{};
};

}  // namespace semel::net
