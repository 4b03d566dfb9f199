// The settings as flags of a command line.
#pragma once

namespace CLI {
class App;
}

namespace semel::net {

struct ConfigSources;

/// Registers --config, --redis-conf and a flag for each setting, also under its Redis names. `app`
/// stores their values in `sources` when it parses, so `sources` must live until then. Settings
/// without effect are accepted, but --help does not show them.
void register_flags(CLI::App& app, ConfigSources& sources);

}  // namespace semel::net
