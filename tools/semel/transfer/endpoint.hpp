// The other side of `semel import` and `semel export`: a node or a redis-server by its address, or
// a storage that this process opens.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "semel/local_redis.hpp"
#include "semel/result.hpp"
#include "tools/semel/cluster/group_client.hpp"

namespace semel::tool {

using Words = std::vector<std::string>;

/// Of one thread.
class Endpoint {
 public:
  Endpoint() = default;
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// The replies to `requests`, in their order; an error reply is a reply. Errors: storage_failed
  /// (it cannot be reached), outcome_unknown (the connection ended: some were done perhaps).
  [[nodiscard]] virtual Result<std::vector<Reply>> ask(std::span<const Words> requests) = 0;
  /// Everything done so far has reached the disk, if this process keeps it.
  [[nodiscard]] virtual Status finish() { return Done{}; }

  [[nodiscard]] Result<Reply> ask_one(const Words& request);
};

struct EndpointOptions {
  std::string address{};  ///< host:port, or empty
  ClientOptions client{};
  std::chrono::seconds patience{60};  ///< for one answer
  std::string directory{};            ///< of a storage, or empty
  std::size_t memory_bytes = 0;       ///< for the records of the directory
  bool makes_directory = false;       ///< else there must be a storage
};

/// Errors: bad_option, storage_failed, and those of opening a storage; the detail is the whole
/// text.
[[nodiscard]] Result<std::unique_ptr<Endpoint>> open_endpoint(const EndpointOptions& options);
/// Of a directory. bad_option: this build has no storage.
[[nodiscard]] Result<std::unique_ptr<Endpoint>> open_directory(const EndpointOptions& options);

}  // namespace semel::tool
