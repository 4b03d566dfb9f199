// The figures of a running node for the page of metrics.
#pragma once

#include "net/admin/metrics.hpp"
#include "net/node/node.hpp"
#include "net/server/server.hpp"
#include "tools/semel/node/node_storage.hpp"

namespace semel::tool {

/// Everything but the process, its times and whether it is ready.
void fill_figures(net::Node& node, const net::Server& server, const NodeStorage& storage,
                  net::MetricFigures& figures);

}  // namespace semel::tool
