// What a node's settings say about its group.
#pragma once

#include "net/settings/settings.hpp"
#include "replication/parts/replica_options.hpp"
#include "semel/result.hpp"

namespace semel::net {

[[nodiscard]] replication::PeerTls peer_tls(const Settings& settings);
/// All but the engine. Errors: bad_option, whose detail is the whole text.
[[nodiscard]] Status read_replica_options(const Settings& settings,
                                          replication::ReplicaOptions& options);

}  // namespace semel::net
