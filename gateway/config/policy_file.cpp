#include "base/toml.hpp"  // before anything else

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include "base/file_text.hpp"
#include "gateway/config/policy_file.hpp"
#include "gateway/config/route_reader.hpp"
#include "gateway/config/table_reader.hpp"

namespace semel::gateway {
namespace {

/// The first line of the file that a setting names.
void read_secret(TableReader& reader, std::string_view name, const std::string& file,
                 std::string& to) {
  Result<std::string> read = read_password(file);
  if (read) {
    to = *std::move(read);
  } else {
    reader.fail(reader.take(name), read.error().detail);
  }
}

/// The settings of a node as the store, which has its own memory and durability.
void read_node(TableReader& reader, NodeSettings& node) {
  reader.texts("store-node", node.addresses, limits::store_nodes_max);
  reader.text("store-user", node.user);
  if (reader.text("store-password-file", node.password_file)) {
    read_secret(reader, "store-password-file", node.password_file, node.password);
  }
  reader.boolean("store-tls", node.is_tls);
  reader.text("store-ca", node.ca);
  reader.text("store-cert", node.cert);
  reader.text("store-key", node.key);
  reader.duration("store-timeout", node.timeout, shortest, longest_timeout);
  reader.duration("store-patience", node.patience, shortest, longest_timeout);
  reader.number("store-queue", node.queue, std::size_t{1}, limits::store_queue_max);
  if (!node.is_used()) return;
  for (const std::string_view name : {"durability", "memory"}) {
    if (const toml::node* const there = reader.take(name); there != nullptr) {
      reader.fail(there, std::string{name} + " is the node's own where there is store-node");
    }
  }
}

void read_gateway(TableReader& reader, Settings& settings) {
  reader.text("listen", settings.listen);
  reader.text("upstream", settings.upstream);
  reader.text("upstream-ca", settings.upstream_ca);
  reader.boolean("upstream-verify", settings.upstream_verify);
  reader.text("tls-cert", settings.tls_cert);
  reader.text("tls-key", settings.tls_key);
  reader.text("admin", settings.admin);
  reader.texts("admin-hosts", settings.admin_hosts, limits::admin_hosts_max);
  std::string token_file;
  if (reader.text("admin-token-file", token_file)) {
    read_secret(reader, "admin-token-file", token_file, settings.admin_token);
  }
  reader.text("store", settings.store);
  reader.choice("durability", settings.durability,
                {{"memory", Durability::memory},
                 {"logged", Durability::logged},
                 {"synced", Durability::synced}});
  reader.bytes("memory", settings.memory_bytes, semel::limits::memory_bytes_min,
               semel::limits::memory_bytes_max);
  read_node(reader, settings.node);
  reader.text("access-log", settings.access_log);
  reader.number("threads", settings.threads, 0U, limits::threads_max);
  reader.number("connections", settings.connections, std::size_t{1}, limits::connections_max);
  reader.number("upstream-connections", settings.upstream_connections, std::size_t{1},
                limits::upstream_connections_max);
  reader.number("upstream-queue", settings.upstream_queue, std::size_t{0},
                limits::upstream_queue_max);
  reader.bytes("head-bytes", settings.head_bytes, limits::head_bytes_min, limits::head_bytes_max);
  reader.bytes("body-memory", settings.body_memory, 1, semel::limits::memory_bytes_max);
  reader.duration("head-timeout", settings.head_timeout, shortest, longest_timeout);
  reader.duration("body-timeout", settings.body_timeout, shortest, longest_timeout);
  reader.duration("transfer-timeout", settings.transfer_timeout, shortest, longest_timeout);
  reader.duration("idle-timeout", settings.idle_timeout, shortest, longest_timeout);
  reader.duration("connect-timeout", settings.connect_timeout, shortest, longest_timeout);
  reader.duration("queue-timeout", settings.queue_timeout, shortest, longest_timeout);
  reader.duration("upstream-idle", settings.upstream_idle, Millis{0}, longest_timeout);
  reader.duration("drain-timeout", settings.drain_timeout, Millis{0}, longest_timeout);
  reader.boolean("trust-forwarded", settings.trust_forwarded);
  reader.boolean("preserve-host", settings.preserve_host);
  reader.choice<std::optional<Guard>>("default", settings.default_guard,
                                      {{"pass", Guard::pass}, {"refuse", Guard::refuse}});
  reader.finish();
}

bool is_route_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= limits::route_name_max &&
         std::all_of(name.begin(), name.end(), is_letter);
}

void read_key(TableReader& reader, const toml::node& node, SigningKey& key) {
  reader.text("id", key.id);
  std::string file;
  reader.text("secret", key.secret);
  if (reader.text("secret-file", file)) {
    const std::optional<std::string> text = base::read_file(file);
    if (!text) reader.fail(&node, "cannot read '" + file + "'");
    key.secret = text.value_or("");
    while (key.secret.ends_with('\n')) key.secret.pop_back();
  }
  if (key.id.empty()) reader.fail(&node, "a key without id");
  if (key.secret.size() < limits::secret_bytes_min) {
    reader.fail(&node, "the secret of key '" + key.id + "' has " +
                           std::to_string(key.secret.size()) + " bytes; the least is " +
                           std::to_string(limits::secret_bytes_min));
  }
  reader.finish();
}

/// The tables of an array of tables, with a bound.
const toml::array* tables_of(TableReader& reader, std::string_view name, std::size_t count_max) {
  const toml::node* const node = reader.take(name);
  if (node == nullptr) return nullptr;
  const auto* array = node->as_array();
  if (array == nullptr || !array->is_array_of_tables() || array->size() > count_max) {
    reader.wrong(node, name,
                 "is not an array of up to " + std::to_string(count_max) + " tables: write [[" +
                     std::string{name} + "]]");
    return nullptr;
  }
  return array;
}

void read_file(const toml::table& file, const std::string& path, Settings& settings,
               std::vector<std::string>& errors) {
  TableReader reader{file, path, errors};
  if (const toml::node* const node = reader.take("gateway"); node != nullptr) {
    if (const auto* table = node->as_table()) {
      TableReader gateway{*table, path, errors};
      read_gateway(gateway, settings);
    } else {
      reader.fail(node, "gateway is a section: write [gateway]");
    }
  }
  if (const auto* routes = tables_of(reader, "route", limits::routes_max)) {
    std::set<std::string> names;
    for (const toml::node& node : *routes) {
      TableReader each{*node.as_table(), path, errors};
      Route route;
      read_route(each, route);
      if (!is_route_name(route.name)) {
        each.fail(&node, "name is '" + route.name + "'; it has 1 to 40 of a-z, 0-9 and '-'");
      } else if (!names.insert(route.name).second) {
        each.fail(&node, "two routes have the name '" + route.name + "'");
      }
      settings.routes.push_back(std::move(route));
    }
  }
  if (const auto* keys = tables_of(reader, "key", limits::signing_keys_max)) {
    for (const toml::node& node : *keys) {
      TableReader each{*node.as_table(), path, errors};
      read_key(each, node, settings.keys.emplace_back());
    }
  }
  reader.finish();
}

}  // namespace

std::vector<std::string> read_policies(std::string_view content, const std::string& path,
                                       Settings& settings) {
  std::vector<std::string> errors;
  const toml::parse_result parsed = toml::parse(content);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    errors.push_back(path + ":" + std::to_string(error.source().begin.line) + ": " +
                     std::string{error.description()});
    return errors;
  }
  read_file(parsed.table(), path, settings, errors);
  return errors;
}

std::vector<std::string> load_policies(const std::string& path, Settings& settings) {
  constexpr std::size_t file_bytes_max = std::size_t{4} << 20;
  std::ifstream stream{path, std::ios::binary};
  std::string content(file_bytes_max + 1, '\0');
  stream.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(stream.gcount()));
  if (!stream.eof()) {
    return {path + (content.size() > file_bytes_max ? ": more than 4 MiB" : ": cannot be read")};
  }
  return read_policies(content, path, settings);
}

}  // namespace semel::gateway
