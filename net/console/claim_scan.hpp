// One slice of a search for claims that people should see: held, in doubt, and failed by the limit
// of attempts. The page asks for slice after slice, as with SCAN, so that nothing is kept between
// them, other requests come in between, and a page that is closed ends the search.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>

#include "net/acl/user.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// Looks at about console_limits::scan_records records from `cursor` on, and answers those that
/// `user` may read: {"cursor", "found": [..], "left_out"}; of each kind those that end first.
/// Progress: takes some milliseconds;
/// waits for an atomic section only if the thread may. Errors: bad_cursor; section_held: repeat it.
[[nodiscard]] Result<boost::json::object> scan_claims(Engine& engine, const User& user,
                                                      std::uint64_t cursor);

}  // namespace semel::net
