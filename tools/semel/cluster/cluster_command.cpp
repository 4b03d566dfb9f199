#include "tools/semel/cluster/cluster_command.hpp"

#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {

ClusterAction::ClusterAction(CLI::App& cluster, const char* name, const char* what)
    : app_(cluster.add_subcommand(name, what)) {
  app_->footer(cluster_exit_help);
}

void ClusterAction::set_footer(const std::string& text) {
  app_->footer(text + "\n\n" + cluster_exit_help);
}

Exit ClusterAction::fail(const Error& error) const {
  print_error("semel cluster {}: {}\n", app_->get_name(),
              error.detail.empty() ? error.message() : error.detail);
  return exit_of(error.code);
}

AskingAction::AskingAction(CLI::App& cluster, const char* name, const char* what)
    : ClusterAction(cluster, name, what) {
  app_->add_option("--at", at_, "A node of the group, host:port for clients")
      ->required()
      ->type_name("ADDRESS");
  app_->add_option("--wait", wait_, "Bound of all that is waited for. Default: 60s")
      ->type_name("DURATION");
  add_login_options(*app_, client_);
}

Result<Deadline> AskingAction::deadline() const {
  auto wait = parse_window(wait_);
  if (!wait.ok()) return usage_error("--wait: " + wait.error().detail);
  constexpr Millis wait_max{std::int64_t{24} * 3600 * 1000};
  if (*wait > wait_max) return usage_error("--wait: '" + wait_ + "' is more than 24h");
  return std::chrono::steady_clock::now() + *wait;
}

ClusterCommand::ClusterCommand(CLI::App& program)
    : app_(program.add_subcommand("cluster", "Make, watch and change a group of nodes")) {
  app_->require_subcommand(1);
  add_directory_actions(*app_, actions_);
  add_status_action(*app_, actions_);
  add_change_actions(*app_, actions_);
  app_->footer(std::string{"'semel cluster SUBCOMMAND --help' shows its flags. See "
                           "docs/replication.md.\n\n"} +
               cluster_exit_help);
}

Exit ClusterCommand::run() const {
  for (const auto& action : actions_) {
    if (action->is_chosen()) return action->run();
  }
  return Exit::usage;  // not reached: the parse requires one
}

}  // namespace semel::tool
