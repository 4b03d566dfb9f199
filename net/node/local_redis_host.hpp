// A LocalRedis whose node belongs to a group. Not installed: users have GroupNode.
#pragma once

#include <memory>

#include "net/cluster/group.hpp"
#include "net/node/node.hpp"
#include "semel/engine.hpp"
#include "semel/local_redis.hpp"

namespace semel::net {

struct LocalRedisHost {
  /// `engine`: the group's replica. Both arguments must outlive it.
  [[nodiscard]] static std::unique_ptr<LocalRedis> make(Engine& engine, Group& group);
  [[nodiscard]] static Node& node(LocalRedis& redis) noexcept;
};

}  // namespace semel::net
