// Numbers of JSON that a double cannot hold, compared in full by their digits.
#pragma once

#include <string>
#include <vector>

#include "semel/types.hpp"
#include "tools/semel/records/key_buffer.hpp"

namespace semel::tool {

/// The texts of those numbers of a JSON line that are not plain integers of 64 bits, in order.
/// `line` has been parsed before.
[[nodiscard]] std::vector<std::string> long_numbers_of(Bytes line);

/// Appends the number of this text so that equal numbers are equal bytes: 1e17 is
/// 100000000000000000, and 100000000000000001.0 is not. An integer of 64 bits has the form that it
/// has anyway. False: its exponent is beyond 18 digits.
[[nodiscard]] bool append_exact_number(Bytes text, KeyBuffer& key);

}  // namespace semel::tool
