// Two errors whose texts redis-server changes for scripts.
#pragma once

#include <string>
#include <string_view>

namespace semel::tests {

/// The reply that a script gets where a client gets `reply`.
inline std::string_view reply_for_scripts(std::string_view reply) {
  if (reply.starts_with("-ERR unknown command"))
    return "-ERR Unknown Redis command called from script\r\n";
  if (reply.starts_with("-ERR wrong number of arguments"))
    return "-ERR Wrong number of args calling Redis command from script\r\n";
  return reply;
}

}  // namespace semel::tests
