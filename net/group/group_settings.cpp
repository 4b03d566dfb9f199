#include "net/group/group_settings.hpp"

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace semel::net {
namespace {

Error wrong_option(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}

std::optional<std::uint64_t> number_of(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

/// "id=host:port" and, perhaps, ",host:port".
Status read_peers(const std::vector<std::string>& words,
                  std::map<std::uint64_t, std::string>& peers) {
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const auto id = number_of(std::string_view{word}.substr(0, equals), 10);
    const std::string address = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (!id || *id == 0 || !replication::check_member_address(address)) {
      return wrong_option("peer: '" + word + "' is not id=host:port or id=host:port,host:port");
    }
    if (!peers.emplace(*id, address).second) {
      return wrong_option("peer: node " + std::to_string(*id) + " stands there twice");
    }
  }
  return Done{};
}

}  // namespace

replication::PeerTls peer_tls(const Settings& settings) {
  return {settings.text(Setting::cluster_tls_cert_file),
          settings.text(Setting::cluster_tls_key_file),
          settings.text(Setting::cluster_tls_ca_cert_file)};
}

Status read_replica_options(const Settings& settings, replication::ReplicaOptions& options) {
  if (settings.boolean(Setting::test_clock)) {
    return wrong_option("test-clock: the time of a node in a group is the group's");
  }
  options.node_id = static_cast<std::uint64_t>(settings.integer(Setting::node_id));
  const auto cluster = number_of(settings.text(Setting::cluster_id), 16);
  if (!cluster || *cluster == 0) {
    return wrong_option("cluster-id: '" + settings.text(Setting::cluster_id) +
                        "' is not a number of 1 to 16 hex digits, and not 0");
  }
  options.cluster_id = *cluster;
  options.directory = settings.text(Setting::dir);
  if (options.directory.empty()) return wrong_option("dir: a node of a group needs a directory");
  if (settings.boolean(Setting::storage_enabled)) {
    return wrong_option("storage-enabled: a node of a group keeps the group's log, not a storage");
  }
  SEMEL_CHECK(read_peers(settings.list(Setting::peer), options.founders));
  const auto own = options.founders.find(options.node_id);
  options.address = settings.text(Setting::cluster_announce);
  if (!options.address.empty()) {
    if (const Status right = replication::check_member_address(options.address); !right) {
      return wrong_option("cluster-announce: " + right.error().detail);
    }
  }
  options.listen = settings.text(Setting::cluster_listen);
  if (options.address.empty()) {
    options.address = own != options.founders.end() ? own->second : options.listen;
  }
  if (options.listen.empty()) options.listen = replication::peer_part(options.address);
  if (options.listen.empty()) {
    return wrong_option("cluster-listen: this node is not among `peer`, so it needs an address");
  }
  options.election = Millis{settings.integer(Setting::cluster_election_timeout)};
  options.heartbeat = Millis{settings.integer(Setting::cluster_heartbeat)};
  if (!settings.text(Setting::cluster_tls_cert_file).empty()) options.tls = peer_tls(settings);
  options.forwards = settings.boolean(Setting::cluster_forward);
  options.reads_by_lease = settings.boolean(Setting::cluster_lease_reads);
  options.snapshot_bytes_per_s =
      static_cast<std::uint64_t>(settings.integer(Setting::cluster_snapshot_rate));
  return Done{};
}

}  // namespace semel::net
