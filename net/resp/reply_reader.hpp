// Bytes of replies into what they mean: the reverse of resp_writer.
#pragma once

#include <optional>
#include <string_view>

#include "semel/local_redis.hpp"

namespace semel::net {

/// Takes one whole reply off the front of `bytes`. None: it is not whole, or not a reply.
[[nodiscard]] std::optional<Reply> take_reply(std::string_view& bytes);

}  // namespace semel::net
