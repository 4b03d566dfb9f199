#include "tools/semel/gateway/gateway_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gateway/config/policy_file.hpp"
#include "gateway/proxy/gateway.hpp"
#include "net/server/process.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/service_memory.hpp"
#include "tools/semel/shared/service_signals.hpp"

namespace semel::tool {
namespace {

using gateway::Gateway;
using gateway::Settings;

std::string ready_text(const Gateway& gateway) {
  return fmt::format("port={}\nadmin-port={}\npid={}\n", gateway.port(), gateway.admin_port(),
                     static_cast<long>(getpid()));
}

}  // namespace

GatewayCommand::GatewayCommand(CLI::App& program)
    : app_(program.add_subcommand("gateway",
                                  "Run an HTTP reverse proxy that lets each request run once")) {
  app_->add_option("--config", config_, "settings and routes, in TOML")->type_name("FILE");
  app_->add_option("--listen", listen_, "address for clients, as :8443 or 127.0.0.1:8443")
      ->type_name("ADDRESS");
  app_->add_option("--upstream", upstream_, "where requests go, as http://127.0.0.1:8080")
      ->type_name("URL");
  app_->add_option("--upstream-ca", upstream_ca_, "who signed the certificate of an https upstream")
      ->type_name("FILE");
  app_->add_option("--tls-cert", tls_cert_, "certificate chain, PEM; without it plain HTTP")
      ->type_name("FILE");
  app_->add_option("--tls-key", tls_key_, "key of the certificate, PEM")->type_name("FILE");
  app_->add_option("--store", store_,
                   "Directory of the records. Without it they are in memory only")
      ->type_name("DIR");
  app_->add_option("--store-node", store_nodes_, "a node, or the nodes of a group, instead of it")
      ->type_name("HOST:PORT")
      ->delimiter(',');
  app_->add_option("--durability", durability_, "memory, logged or synced (the default)")
      ->check(CLI::IsMember({"memory", "logged", "synced"}));
  app_->add_option("--admin", admin_, "loopback address of metrics, health and resolve")
      ->type_name("ADDRESS");
  app_->add_option("--access-log", access_log_, "a JSON line for each request; - is stdout")
      ->type_name("FILE");
  app_->add_option("--threads", threads_, "0: one for each processor")
      ->check(CLI::Range(0U, gateway::limits::threads_max));
  app_->add_option("--ready-file", ready_file_,
                   "written with the ports once it serves; removed when it ends")
      ->type_name("FILE");
  app_->add_flag("--check-config", checks_config_, "report all errors in the settings, and exit");
  app_->footer("Flags come before the file. See docs/gateway.md.");
}

std::optional<Settings> GatewayCommand::read_settings() const {
  Settings settings;
  std::vector<std::string> errors;
  if (!config_.empty()) errors = gateway::load_policies(config_, settings);
  // A file with a syntax error says nothing about missing settings.
  const bool is_read = errors.empty() || !settings.upstream.empty() || !settings.routes.empty();
  const std::pair<const std::string*, std::string*> given[] = {
      {&listen_, &settings.listen},
      {&upstream_, &settings.upstream},
      {&tls_cert_, &settings.tls_cert},
      {&tls_key_, &settings.tls_key},
      {&store_, &settings.store},
      {&admin_, &settings.admin},
      {&upstream_ca_, &settings.upstream_ca},
      {&access_log_, &settings.access_log}};
  for (const auto& [from, to] : given) {
    if (!from->empty()) *to = *from;
  }
  if (!store_nodes_.empty()) settings.node.addresses = store_nodes_;
  if (settings.node.is_used() && !durability_.empty()) {
    errors.emplace_back("--durability is the node's own where there is store-node");
  }
  if (app_->count("--threads") > 0) settings.threads = threads_;
  if (durability_ == "memory") settings.durability = Durability::memory;
  if (durability_ == "logged") settings.durability = Durability::logged;
  if (durability_ == "synced") settings.durability = Durability::synced;
  if (is_read) {
    for (const std::string& line : Gateway::check(settings)) errors.push_back(line);
  }
  for (const std::string& line : errors) print_error("semel gateway: {}\n", line);
  if (!errors.empty()) return std::nullopt;
  return settings;
}

/// Handles SIGHUP. An error changes nothing.
void GatewayCommand::reload(Gateway& gateway) const {
  if (const Status reopened = gateway.reopen_log(); !reopened) {
    print_error("semel gateway: the old log stays in use: {}\n", reopened.error().detail);
  }
  const std::optional<Settings> fresh = read_settings();
  if (!fresh) {
    print_error("semel gateway: not reloaded: routes and certificates stay as they were\n");
    return;
  }
  const auto reloaded = gateway.reload(*fresh);
  if (!reloaded) {
    print_error("semel gateway: {}\n", reloaded.error().detail);
    print_error("semel gateway: not reloaded: routes and certificates stay as they were\n");
    return;
  }
  std::string fixed;
  for (const std::string& name : *reloaded) fixed.append(fixed.empty() ? "" : ", ").append(name);
  if (!fixed.empty()) fixed = "; these differ, and need a restart: " + fixed;
  print_error("semel gateway: reloaded {} routes and the certificates{}\n", fresh->routes.size(),
              fixed);
}

Exit GatewayCommand::serve(Gateway& gateway) const {
  if (!ready_file_.empty()) {
    const Status ready = net::write_ready_file(ready_file_, ready_text(gateway));
    if (!ready) {
      print_error("semel gateway: {}\n", ready.error().detail);
      return exit_of(ready.error().code);
    }
  }
  print_error("semel gateway: serving on port {}\n", gateway.port());
  for (Wished wished = wait_for_wish(); wished.wish != Wish::end; wished = wait_for_wish()) {
    if (wished.wish == Wish::reload) {
      reload(gateway);
    } else {
      print_error("semel gateway: signal {} is ignored\n", wished.signal);
    }
  }
  let_signals_kill();
  if (!ready_file_.empty()) net::remove_own_ready_file(ready_file_, ready_text(gateway));
  if (!gateway.drain()) {
    print_error("semel gateway: some requests were not finished; their claims are held\n");
  }
  return Exit::ok;
}

Exit GatewayCommand::run() const {
  std::optional<Settings> settings = read_settings();
  if (!settings) return Exit::usage;
  if (checks_config_) return write_out("semel gateway: the configuration is right\n");
  give_back_large_buffers();
  block_signals();
  if (!ready_file_.empty()) {
    const Status removed = net::remove_old_ready_file(ready_file_);
    if (!removed) {
      print_error("semel gateway: {}\n", removed.error().detail);
      return exit_of(removed.error().code);
    }
  }
  auto started = Gateway::start(*std::move(settings));
  if (!started) {
    print_error("semel gateway: {}\n", started.error().detail);
    return exit_of(started.error().code);
  }
  return serve(**started);
}

}  // namespace semel::tool
