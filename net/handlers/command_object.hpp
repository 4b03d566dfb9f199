// What DEBUG replies of a record.
#pragma once

#include <string>

#include "net/commands/command.hpp"

namespace semel::net {

/// Of the record of words[2]: its encoding, and how long it would be in a dump if that were not
/// compressed; of a record that is no string, about the memory that it takes. There is no address.
void debug_object(Call& call);
/// What OBJECT ENCODING replies of the record of words[2], which is of this kind; empty: it is no
/// more, or is of another kind by now.
[[nodiscard]] std::string encoding_of(const Call& call, Kind kind);

}  // namespace semel::net
