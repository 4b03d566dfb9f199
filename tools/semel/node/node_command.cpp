#include "tools/semel/node/node_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <vector>

#include "net/config/config_text.hpp"
#include "net/config/flags.hpp"
#include "net/group/node_group.hpp"
#include "net/settings/settings.hpp"
#include "tools/semel/node/node_run.hpp"
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/shared/output.hpp"

namespace semel::tool {

NodeCommand::NodeCommand(CLI::App& program)
    : app_(program.add_subcommand("node", "Serve Redis' protocol on a port")) {
  net::register_flags(*app_, sources_);
  app_->add_flag("--print-config", prints_config_,
                 "print the settings as a file, each with its origin, and exit");
  app_->add_flag("--check-config", checks_config_, "report all errors in the settings, and exit");
  app_->add_flag("--cluster-init", prepares_group_,
                 "make the directory that of a first member of a new group, once, and exit");
  app_->footer(
      "Precedence: flags, then the environment (SEMEL_PORT), then the file.\n"
      "See docs/operations.md.");
}

Exit NodeCommand::run() {
  net::add_environment(sources_, environ);
  net::Settings settings;
  const net::Findings findings = net::load_config(sources_, settings);
  for (const std::string& line : findings.warnings) print_error("semel node: {}\n", line);
  for (const std::string& line : findings.errors) print_error("semel node: {}\n", line);
  if (!findings.errors.empty()) return Exit::usage;
  if (prints_config_) {
    return write_out(net::print_config(settings, {.origins = true}));
  }
  if (checks_config_) {
    const std::vector<Error> found = check_node(settings, sources_.file, findings.namespaces);
    for (const Error& error : found) print_error("semel node: {}\n", error.detail);
    if (!found.empty()) return exit_of(found.front().code);
    return write_out("semel node: the configuration is right\n");
  }
  if (prepares_group_) {
    net::NodeGroup group{settings};
    const Status done =
        group.is_wanted() ? group.prepare() : usage_error("cluster-init: node-id is needed");
    if (done) return write_out("semel node: the directory is that of a new group's member\n");
    print_error("semel node: {}\n", done.error().detail);
    return exit_of(done.error().code);
  }
  return NodeRun{settings, sources_.file, sources_.redis_conf, findings.namespaces}.run();
}

}  // namespace semel::tool
