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

void add_login_options(CLI::App& app, ClientOptions& client) {
  app.add_option("--user", client.user, "User of the node")->type_name("NAME");
  app.add_option("--password-file", client.password_file, "File whose first line is the password")
      ->type_name("FILE");
  app.add_flag("--tls", client.uses_tls, "The node's port speaks TLS");
  app.add_option("--cacert", client.authorities,
                 "Authorities of the nodes' certificates, PEM. Default: the system's")
      ->type_name("FILE");
  app.add_option("--cert", client.certificate, "Certificate of this client, PEM")
      ->type_name("FILE");
  app.add_option("--key", client.key, "Its key, PEM. Default: the file of --cert")
      ->type_name("FILE");
  app.add_option("--tls-name", client.tls_name,
                 "Name that the nodes' certificates have. Default: the host of the address")
      ->type_name("NAME");
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
