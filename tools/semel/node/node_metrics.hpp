// The metrics of a running node.
#pragma once

#include "net/admin/metrics.hpp"
#include "net/node/node.hpp"
#include "net/server/server.hpp"
#include "tools/semel/node/node_storage.hpp"

namespace semel::tool {

/// Everything but the process, its times and whether it is ready.
void fill_metrics(net::Node& node, const net::Server& server, const NodeStorage& storage,
                  net::MetricValues& values);

}  // namespace semel::tool
