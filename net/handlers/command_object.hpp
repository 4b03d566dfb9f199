// What DEBUG OBJECT replies of a record.
#pragma once

#include "net/commands/command.hpp"

namespace semel::net {

/// Of the record of words[2]: its encoding, and how long it would be in a dump if that were not
/// compressed; of a record that is no string, about the memory that it takes. There is no address.
void debug_object(Call& call);

}  // namespace semel::net
