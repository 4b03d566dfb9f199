// One slice of the search for claims that need attention: held, in doubt, and failed by the limit
// of attempts. The page requests slice after slice, as with SCAN: the node keeps no state between
// slices, other requests run between them, and the search ends when the page is closed.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>

#include "net/acl/user.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// Scans about console_limits::scan_records records from `cursor` on, and returns the claims that
/// `user` may read: {"cursor", "found": [..], "left_out"}; of each kind those that end first.
/// Progress: takes some milliseconds, and waits for an atomic section only if the thread may.
/// Errors: bad_cursor; section_held: repeat the call.
[[nodiscard]] Result<boost::json::object> scan_claims(Engine& engine, const User& user,
                                                      std::uint64_t cursor);

}  // namespace semel::net
