#include "tools/semel/node/node_certificates.hpp"

#include <system_error>

#include "tools/semel/node/node_options.hpp"

namespace semel::tool {

using net::Setting;

NodeCertificates::NodeCertificates(const net::Settings& settings, net::Log& log,
                                   net::Server& server)
    : settings_(settings), log_(log), server_(server), seen_(look()) {}

NodeCertificates::Stamps NodeCertificates::look() const {
  constexpr std::array files = {Setting::tls_cert_file, Setting::tls_key_file,
                                Setting::tls_ca_cert_file, Setting::tls_ca_cert_dir};
  Stamps stamps;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::filesystem::path path = settings_.text(files[i]);
    // A file that is not there has a stamp, too: the empty one.
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
  if (settings_.integer(Setting::tls_port) < 0 || !settings_.boolean(Setting::tls_reload)) return;
  const base::MutexLock lock{mutex_};
  if (look() != seen_) static_cast<void>(reload_locked());  // the result is logged
}

bool NodeCertificates::reload_locked() {
  if (settings_.integer(Setting::tls_port) < 0) return true;
  seen_ = look();  // before they are read: what changes meanwhile is read again
  const net::TlsFiles files = tls_files(settings_);
  if (const Status loaded = server_.reload_tls(files); !loaded) {
    log_.warning("tls_not_loaded",
                 {{"reason", loaded.error().detail}, {"in_use", "the one before"}});
    return false;
  }
  log_.info("tls_loaded", {{"certificate", files.certificate}});
  return true;
}

}  // namespace semel::tool
