// Parses replies: the reverse of resp_writer.
#pragma once

#include <optional>
#include <string_view>

#include "semel/local_redis.hpp"

namespace semel::net {

/// Removes one complete reply from the front of `bytes`. None: it is incomplete, or no reply;
/// `bytes` is unchanged then.
[[nodiscard]] std::optional<Reply> take_reply(std::string_view& bytes);

}  // namespace semel::net
