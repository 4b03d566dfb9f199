// What a gateway is started with.
#pragma once

#include <string>

#include "gateway/core/route_policy.hpp"

namespace semel::gateway {

struct GatewayOptions {
  std::string listen{"127.0.0.1:8080"};
  std::string upstream{};  ///< http://host:port
  Routes routes{};
  unsigned workers = 2;              ///< 1..64
  unsigned connections_max = 4'096;  ///< of clients; more are closed at once
  bool is_durable = false;           ///< the engine has a journal: claims block for it
  std::string tls_certificate{};     ///< with a key: clients speak TLS
  std::string tls_key{};
  std::string upstream_authorities{};  ///< for https; empty: the system's
  std::string access_log{};            ///< path, "-" or none
  Millis head_within{10'000};          ///< from the first byte of a request
  Millis idle_within{60'000};          ///< between requests
  Millis io_within{30'000};            ///< of one read or write of a body
  Millis connect_within{5'000};
  Millis drain_within{30'000};
};

}  // namespace semel::gateway
