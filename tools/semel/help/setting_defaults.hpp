// Defaults and units of the node's settings, for its help.
#pragma once

namespace CLI {
class App;
}

namespace semel::tool {

/// Adds to the description of each flag of `node` that stands for a setting its default, and the
/// unit of a plain number, both from the table of settings.
void describe_defaults(CLI::App& node);

}  // namespace semel::tool
