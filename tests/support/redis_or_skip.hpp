// A redis-server for a test, which is skipped where there is none.
#pragma once

#include <memory>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "tests/support/redis_server.hpp"

namespace semel::tests {

/// Null, with a warning in the report: there is none in PATH, or it is of another version. Fails
/// the test if one is there and does not come up.
[[nodiscard]] inline std::unique_ptr<RedisServer> redis_or_skip(
    const std::vector<std::string>& arguments = {}) {
  std::unique_ptr<RedisServer> server = RedisServer::start(arguments);
  if (server != nullptr) return server;
  if (!RedisServer::is_missing()) FAIL("redis-server is there and does not come up");
  WARN("skipped: there is no redis-server of version 7");
  return nullptr;
}

}  // namespace semel::tests
