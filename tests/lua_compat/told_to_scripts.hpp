// Two errors that redis-server words otherwise for scripts than for clients.
#pragma once

#include <string>
#include <string_view>

namespace semel::tests {

/// What a script is told where a client was told `heard`.
inline std::string_view told_to_scripts(std::string_view heard) {
  if (heard.starts_with("-ERR unknown command"))
    return "-ERR Unknown Redis command called from script\r\n";
  if (heard.starts_with("-ERR wrong number of arguments"))
    return "-ERR Wrong number of args calling Redis command from script\r\n";
  return heard;
}

}  // namespace semel::tests
