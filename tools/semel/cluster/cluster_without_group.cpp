// Where the program was built without replication: nodes elsewhere can still be asked.
#include "tools/semel/cluster/cluster_command.hpp"

namespace semel::tool {

void add_directory_actions(CLI::App&, ClusterActions&) {}

}  // namespace semel::tool
