#include "gateway/config/reload.hpp"

#include <utility>

namespace semel::gateway {

std::vector<std::string> fixed_differences(const Settings& used, const Settings& fresh) {
  const NodeSettings& node = used.node;
  const NodeSettings& other = fresh.node;
  const std::pair<const char*, bool> compared[] = {
      {"listen", used.listen == fresh.listen},
      {"upstream", used.upstream == fresh.upstream},
      {"upstream-verify", used.upstream_verify == fresh.upstream_verify},
      // The file names may change, but TLS cannot be turned on or off.
      {"tls-cert", used.tls_cert.empty() == fresh.tls_cert.empty()},
      {"admin", used.admin == fresh.admin},
      {"admin-hosts", used.admin_hosts == fresh.admin_hosts},
      {"admin-token-file", used.admin_token == fresh.admin_token},
      {"store", used.store == fresh.store},
      {"store-node", node.addresses == other.addresses},
      {"store-user", node.user == other.user},
      {"store-password-file", node.password_file == other.password_file},
      {"store-tls", node.is_tls == other.is_tls},
      {"store-timeout", node.timeout == other.timeout},
      {"store-patience", node.patience == other.patience},
      {"store-queue", node.queue == other.queue},
      {"durability", used.durability == fresh.durability},
      {"memory", used.memory_bytes == fresh.memory_bytes},
      {"access-log", used.access_log == fresh.access_log},
      {"threads", used.threads == fresh.threads},
      {"connections", used.connections == fresh.connections},
      {"upstream-connections", used.upstream_connections == fresh.upstream_connections},
      {"upstream-queue", used.upstream_queue == fresh.upstream_queue},
      {"head-bytes", used.head_bytes == fresh.head_bytes},
      {"body-memory", used.body_memory == fresh.body_memory},
      {"head-timeout", used.head_timeout == fresh.head_timeout},
      {"body-timeout", used.body_timeout == fresh.body_timeout},
      {"transfer-timeout", used.transfer_timeout == fresh.transfer_timeout},
      {"idle-timeout", used.idle_timeout == fresh.idle_timeout},
      {"connect-timeout", used.connect_timeout == fresh.connect_timeout},
      {"queue-timeout", used.queue_timeout == fresh.queue_timeout},
      {"upstream-idle", used.upstream_idle == fresh.upstream_idle},
      {"drain-timeout", used.drain_timeout == fresh.drain_timeout},
      {"trust-forwarded", used.trust_forwarded == fresh.trust_forwarded},
      {"preserve-host", used.preserve_host == fresh.preserve_host}};
  std::vector<std::string> names;
  for (const auto& [name, is_equal] : compared) {
    if (!is_equal) names.emplace_back(name);
  }
  return names;
}

}  // namespace semel::gateway
