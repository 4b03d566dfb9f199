// The same requests to a redis-server and to us.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "semel/engine.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/support/resp.hpp"

namespace semel::tests {

struct Profile;

/// Random requests of a profile, up to the first that is answered otherwise, which fails the test.
/// Each thousand requests all keys are compared as well.
void play_beside(const RedisServer& server, const Profile& profile, std::uint64_t seed,
                 const Options& options = {});

/// These requests, in both dialects, to a node and a server that have nothing. Each must be
/// answered the same.
void play_beside(const std::vector<Words>& requests);

}  // namespace semel::tests
