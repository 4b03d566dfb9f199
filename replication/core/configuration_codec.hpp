// The members of a group as the data of an entry. The layout is the library's.
#pragma once

#include "replication/core/message.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::replication {

/// The data of an entry that is a configuration; also of the first entry of a new group's log, on
/// each of its first members. Errors: bad_option (twice the same id or address, no voter, more than
/// members_max).
[[nodiscard]] Result<SharedData> encode_configuration(const Configuration& configuration);
/// Reads nothing beyond the bytes, as the library would. Errors: bad_encoding.
[[nodiscard]] Result<Configuration> decode_configuration(Bytes data);

}  // namespace semel::replication
