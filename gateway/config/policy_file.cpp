#include "base/toml.hpp"  // before anything else

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include "base/file_text.hpp"
#include "gateway/config/policy_file.hpp"
#include "net/settings/setting_units.hpp"

namespace semel::gateway {
namespace {

template <class Value>
using Choices = std::initializer_list<std::pair<std::string_view, Value>>;

/// Takes values out of one table by name, checks them, and at the end reports what nobody took.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string where, std::vector<std::string>& errors)
      : table_(table), where_(std::move(where)), errors_(errors) {}

  void fail(const toml::node* node, const std::string& text) {
    const std::string line =
        node == nullptr ? std::string{} : ":" + std::to_string(node->source().begin.line);
    errors_.push_back(where_ + line + ": " + text);
  }
  [[nodiscard]] const toml::node* take(std::string_view name) {
    taken_.emplace(name);
    return table_.get(name);
  }
  bool text(std::string_view name, std::string& to) {
    const toml::node* const node = take(name);
    if (node == nullptr) return false;
    const auto* text = node->as_string();
    if (text == nullptr) return wrong(node, name, "is not a text");
    to = text->get();
    return true;
  }
  void boolean(std::string_view name, bool& to) {
    const toml::node* const node = take(name);
    if (node == nullptr) return;
    const auto* yes = node->as_boolean();
    if (yes == nullptr) {
      wrong(node, name, "is not true or false");
      return;
    }
    to = yes->get();
  }
  template <class Number>
  void number(std::string_view name, Number& to, Number from, Number up_to) {
    const toml::node* const node = take(name);
    if (node == nullptr) return;
    const auto* value = node->as_integer();
    ranged(node, name, value == nullptr ? std::nullopt : std::optional{value->get()}, to, from,
           up_to);
  }
  void bytes(std::string_view name, std::size_t& to, std::size_t from, std::size_t up_to) {
    const toml::node* const node = take(name);
    if (node == nullptr) return;
    ranged(node, name, amount(*node, [](std::string_view t) { return net::bytes_of(t); }), to, from,
           up_to);
  }
  void duration(std::string_view name, Millis& to, Millis from,
                Millis up_to = limits::duration_max) {
    const toml::node* const node = take(name);
    if (node == nullptr) return;
    std::int64_t ms = to.count();
    const auto read = [](std::string_view t) { return net::duration_of(t, "ms"); };
    ranged(node, name, amount(*node, read), ms, std::int64_t{from.count()},
           std::int64_t{up_to.count()});
    to = Millis{ms};
  }
  bool texts(std::string_view name, std::vector<std::string>& to, std::size_t count_max) {
    const toml::node* const node = take(name);
    if (node == nullptr) return false;
    const auto* array = node->as_array();
    if (array == nullptr) return wrong(node, name, "is not an array of texts");
    if (array->size() > count_max) {
      return wrong(node, name,
                   "has " + std::to_string(array->size()) + " elements; the limit is " +
                       std::to_string(count_max));
    }
    to.clear();
    for (const toml::node& each : *array) {
      const auto* text = each.as_string();
      if (text == nullptr || text->get().empty()) return wrong(node, name, "has no text in it");
      to.push_back(text->get());
    }
    return true;
  }
  template <class Value>
  void choice(std::string_view name, Value& to, Choices<Value> choices) {
    std::string word;
    if (!text(name, word)) return;
    std::string list;
    for (const auto& [known, value] : choices) {
      if (known == word) {
        to = value;
        return;
      }
      list.append(list.empty() ? "" : ", ").append(known);
    }
    wrong(table_.get(name), name, "is '" + word + "'; it is one of " + list);
  }
  void finish() {
    for (const auto& [key, node] : table_) {
      if (taken_.count(key.str()) == 0) {
        fail(&node, "there is no setting '" + std::string{key.str()} + "' here");
      }
    }
  }
  bool wrong(const toml::node* node, std::string_view name, const std::string& what) {
    fail(node, std::string{name} + " " + what);
    return false;
  }

 private:
  template <class Read>
  static std::optional<std::int64_t> amount(const toml::node& node, Read read) {
    if (const auto* number = node.as_integer()) return number->get();
    const auto* text = node.as_string();
    return text == nullptr ? std::nullopt : read(std::string_view{text->get()});
  }
  template <class Number>
  void ranged(const toml::node* node, std::string_view name, std::optional<std::int64_t> value,
              Number& to, Number from, Number up_to) {
    if (!value) {
      wrong(node, name, "is not such an amount");
    } else if (*value < static_cast<std::int64_t>(from) ||
               *value > static_cast<std::int64_t>(up_to)) {
      wrong(node, name,
            "is " + std::to_string(*value) + "; it is from " + std::to_string(from) + " to " +
                std::to_string(up_to));
    } else {
      to = static_cast<Number>(*value);
    }
  }

  const toml::table& table_;
  std::string where_;
  std::vector<std::string>& errors_;
  std::set<std::string, std::less<>> taken_;
};

constexpr Millis shortest{1};
constexpr Millis longest_timeout{86'400'000};

/// What no reply, or a lost lease, may mean: there is nothing to keep.
void read_failure(TableReader& reader, std::string_view name, Meaning& to) {
  reader.choice(name, to, {{"release", Meaning::release}, {"in-doubt", Meaning::in_doubt}});
}

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

/// Of a node as the store. It has a memory and a durability of its own.
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
  reader.choice("default", settings.default_guard,
                {{"pass", Guard::pass}, {"refuse", Guard::refuse}});
  reader.finish();
}

void read_scope(TableReader& reader, ScopeParts& scope) {
  std::vector<std::string> words;
  if (!reader.texts("scope", words, limits::chosen_headers_max)) return;
  scope = {.authorization = false};
  for (const std::string& word : words) {
    if (word == "authorization") {
      scope.authorization = true;
    } else if (word == "key-id") {
      scope.key_id = true;
    } else if (word == "shared") {
      scope.shared = true;
    } else if (word.starts_with("header:") && word.size() > 7) {
      scope.headers.push_back(word.substr(7));
    } else {
      reader.fail(reader.take("scope"),
                  "scope has '" + word + "'; it has authorization, key-id, header:NAME or shared");
    }
  }
}

void read_fingerprint(TableReader& reader, FingerprintParts& parts) {
  std::vector<std::string> words;
  if (!reader.texts("fingerprint", words, limits::chosen_headers_max)) return;
  parts = {.method = false, .path = false, .query = false, .body = false};
  for (const std::string& word : words) {
    if (word == "method") {
      parts.method = true;
    } else if (word == "path") {
      parts.path = true;
    } else if (word == "query") {
      parts.query = true;
    } else if (word == "body") {
      parts.body = true;
    } else if (word == "json") {
      parts.json = true;
    } else if (word.starts_with("header:") && word.size() > 7) {
      parts.headers.push_back(word.substr(7));
    } else {
      reader.fail(
          reader.take("fingerprint"),
          "fingerprint has '" + word + "'; it has method, path, query, body, json or header:NAME");
    }
  }
}

void read_statuses(TableReader& reader, std::vector<unsigned>& statuses) {
  const toml::node* const node = reader.take("release-statuses");
  if (node == nullptr) return;
  constexpr std::int64_t status_min = 200;
  constexpr std::int64_t status_max = 599;
  constexpr std::size_t count_max = 64;
  const auto* array = node->as_array();
  statuses.clear();
  const bool is_list = array != nullptr && array->size() <= count_max;
  for (std::size_t i = 0; is_list && i < array->size(); ++i) {
    const auto* number = array->get(i)->as_integer();
    if (number == nullptr || number->get() < status_min || number->get() > status_max) break;
    statuses.push_back(static_cast<unsigned>(number->get()));
  }
  if (!is_list || statuses.size() != array->size()) {
    reader.wrong(node, "release-statuses", "is not an array of up to 64 numbers from 200 to 599");
  }
}

void read_signature(TableReader& reader, SignaturePolicy& signature) {
  reader.boolean("signature", signature.is_required);
  reader.texts("signature-keys", signature.keys, limits::signing_keys_max);
  reader.texts("signature-headers", signature.headers, limits::chosen_headers_max);
  reader.duration("signature-window", signature.window, shortest);
  reader.duration("signature-ahead", signature.ahead, Millis{0});
}

void read_route(TableReader& reader, Route& route) {
  reader.text("name", route.name);
  std::string path;
  if (!reader.text("path", path)) reader.fail(nullptr, "a route without path");
  if (Result<PathPattern> parsed = PathPattern::parse(path); parsed) {
    route.path = *std::move(parsed);
  } else if (!path.empty()) {
    reader.fail(reader.take("path"), parsed.error().detail);
  }
  reader.texts("methods", route.methods, limits::methods_max);
  reader.choice("guard", route.guard,
                {{"pass", Guard::pass},
                 {"refuse", Guard::refuse},
                 {"idempotency-key", Guard::idempotency_key},
                 {"form-token", Guard::form_token},
                 {"debounce", Guard::debounce},
                 {"issue-token", Guard::issue_token}});
  reader.boolean("key-required", route.key_required);
  reader.text("token-header", route.token_header);
  reader.text("token-route", route.token_route);
  reader.duration("token-ttl", route.token_ttl, Millis{1'000});
  reader.duration("debounce", route.debounce, shortest);
  read_scope(reader, route.scope);
  read_fingerprint(reader, route.fingerprint);
  read_signature(reader, route.signature);
  reader.duration("lease", route.lease, Millis{1'000}, longest_timeout);
  reader.duration("keep", route.keep_for, Millis{1'000});
  reader.duration("wait", route.wait, Millis{0}, longest_timeout);
  reader.duration("timeout", route.timeout, shortest, longest_timeout);
  reader.choice(
      "on-5xx", route.on_5xx,
      {{"keep", Meaning::keep}, {"release", Meaning::release}, {"in-doubt", Meaning::in_doubt}});
  read_failure(reader, "on-timeout", route.on_timeout);
  read_failure(reader, "on-broken", route.on_broken);
  read_failure(reader, "on-lease-end", route.on_lease_end);
  read_statuses(reader, route.release_statuses);
  reader.choice("too-large", route.too_large,
                {{"done", TooLarge::done}, {"in-doubt", TooLarge::in_doubt}});
  reader.bytes("body-bytes", route.body_bytes, 0, limits::body_bytes_max);
  reader.bytes("record-bytes", route.record_bytes, 64, limits::record_bytes_max);
  reader.boolean("upgrade", route.upgrade);
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
