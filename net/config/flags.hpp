// The settings as flags of a command line.
#pragma once

namespace CLI {
class App;
}

namespace semel::net {

struct ConfigSources;

/// Registers --config, --redis-conf and a flag for each setting, also under Redis' names, which
/// `app` puts into `sources` when it parses. Those without effect are taken, too, but not shown by
/// --help. `sources` must live until then.
void register_flags(CLI::App& app, ConfigSources& sources);

}  // namespace semel::net
