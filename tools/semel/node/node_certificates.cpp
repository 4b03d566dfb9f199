#include "tools/semel/node/node_certificates.hpp"

#include <system_error>
#include <utility>

#include "tools/semel/node/node_options.hpp"

namespace semel::tool {

using net::Setting;

NodeCertificates::NodeCertificates(const net::Settings& settings, net::Log& log, Use use)
    : settings_(settings), log_(log), use_(std::move(use)), seen_(look()) {}

NodeCertificates::Stamps NodeCertificates::look() const {
  Stamps stamps;
  for (std::size_t i = 0; i < use_.files.size(); ++i) {
    const std::filesystem::path path = settings_.text(use_.files[i]);
    // A missing file has a stamp, too: the empty one.
    std::error_code missing;
    const auto changed = std::filesystem::last_write_time(path, missing);
    if (missing) continue;
    const bool is_file = std::filesystem::is_regular_file(path, missing);
    const auto bytes = is_file ? std::filesystem::file_size(path, missing) : 0;
    if (!missing) stamps[i] = {changed, bytes};
  }
  return stamps;
}

bool NodeCertificates::reload() {
  const base::MutexLock lock{mutex_};
  return reload_locked();
}

void NodeCertificates::tick() {
  if (!use_.is_on() || !settings_.boolean(Setting::tls_reload)) return;
  const base::MutexLock lock{mutex_};
  if (look() != seen_) static_cast<void>(reload_locked());  // the result is logged
}

bool NodeCertificates::reload_locked() {
  if (!use_.is_on()) return true;
  seen_ = look();  // before reading: a change during it causes another reload
  const std::string name{use_.name};
  if (const Status loaded = use_.read(); !loaded) {
    log_.warning(name + "_not_loaded",
                 {{"reason", loaded.error().detail}, {"in_use", "the one before"}});
    return false;
  }
  const std::string certificate = settings_.text(use_.files.front());
  log_.info(name + "_loaded", {{"certificate", certificate}});
  return true;
}

NodeCertificates::Use client_certificates(const net::Settings& settings, net::Server& server) {
  return {.name = "tls",
          .files = {Setting::tls_cert_file, Setting::tls_key_file, Setting::tls_ca_cert_file,
                    Setting::tls_ca_cert_dir},
          .is_on = [&settings] { return settings.integer(Setting::tls_port) >= 0; },
          .read = [&settings, &server] { return server.reload_tls(tls_files(settings)); }};
}

NodeCertificates::Use group_certificates(net::NodeGroup& group) {
  return {.name = "group_tls",
          .files = {Setting::cluster_tls_cert_file, Setting::cluster_tls_key_file,
                    Setting::cluster_tls_ca_cert_file, Setting::cluster_tls_ca_cert_file},
          .is_on = [&group] { return group.uses_tls(); },
          .read = [&group] { return group.reload_tls(); }};
}

}  // namespace semel::tool
