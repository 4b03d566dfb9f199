// A change of the libraries of functions that a group decides. Its handler is called twice: to find
// out what is asked, which may take running a library's code, and to reply.
#pragma once

#include <string>

#include "engine/logged/library_table.hpp"

namespace semel::net {

struct GroupLibrary {
  replication::LibraryChange change{};  ///< what is asked
  bool is_decided = false;              ///< what follows is there
  std::string error{};                  ///< the whole reply, if the group could not decide it
  replication::LibraryVerdict verdict{};
};

}  // namespace semel::net
