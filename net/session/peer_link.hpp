// A connection to another server, as the program around a node opens it for MIGRATE.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "semel/local_redis.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::net {

struct PeerAddress {
  std::string host{};
  std::string port{};
  Millis idle_max{0};  ///< a step of the connection that moves no byte for so long fails
};

/// Of one thread.
class PeerLink {
 public:
  PeerLink() = default;
  virtual ~PeerLink() = default;
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  /// The replies to `requests`, in their order; an error reply is a reply. Errors: outcome_unknown
  /// (some may have been carried out); the detail is "writing" or "reading".
  [[nodiscard]] virtual Result<std::vector<Reply>> ask(
      std::span<const std::vector<std::string>> requests) = 0;
};

}  // namespace semel::net
