// Built without replication: the program can still reach nodes elsewhere.
#include "tools/semel/cluster/cluster_command.hpp"

namespace semel::tool {

void add_directory_actions(CLI::App&, ClusterActions&) {}

}  // namespace semel::tool
