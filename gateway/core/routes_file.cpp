// Routes out of TOML.
#include "base/toml.hpp"

#include <charconv>
#include <optional>
#include <utility>

#include "gateway/core/route_policy.hpp"

namespace semel::gateway {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
constexpr Unit units[] = {
    {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};

/// "30s", "250ms", "24h".
std::optional<Millis> duration_of(std::string_view text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(read.ptr - text.data()));
  if (read.ec != std::errc{} || number < 0 || number > 1'000'000'000) return std::nullopt;
  for (const Unit& each : units) {
    if (unit == each.name) return Millis{number * each.ms};
  }
  return std::nullopt;
}

class RouteReader {
 public:
  explicit RouteReader(const std::string& name) : name_(name) {}

  [[nodiscard]] Result<std::vector<RoutePolicy>> read(const toml::table& file) {
    std::vector<RoutePolicy> found;
    for (const auto& [key, node] : file) {
      const toml::array* const list = node.as_array();
      if (key.str() != "route" || list == nullptr || !list->is_array_of_tables()) {
        return at(key.source(),
                  "only [[route]] tables are known, not '" + std::string{key.str()} + "'");
      }
      for (const toml::node& each : *list) {
        RoutePolicy route;
        SEMEL_CHECK(read_route(*each.as_table(), route));
        found.push_back(std::move(route));
      }
    }
    return found;
  }

 private:
  [[nodiscard]] Error at(const toml::source_region& where, const std::string& what) const {
    return {ErrorCode::bad_option, name_ + ":" + std::to_string(where.begin.line) + ":" +
                                       std::to_string(where.begin.column) + ": " + what};
  }

  [[nodiscard]] Status read_route(const toml::table& table, RoutePolicy& route) {
    for (const auto& [key, node] : table) {
      if (const Status done = read_value(key.str(), node, route); !done) {
        return at(node.source(), std::string{key.str()} + ": " + done.error().detail);
      }
    }
    return Done{};
  }

  static Status bad(std::string what) { return Error{ErrorCode::bad_option, std::move(what)}; }

  static Status text(const toml::node& node, std::string& to) {
    const auto value = node.value_exact<std::string>();
    if (!value) return bad("a text is needed");
    to = *value;
    return Done{};
  }
  static Status texts(const toml::node& node, std::vector<std::string>& to) {
    const toml::array* const list = node.as_array();
    if (list == nullptr || list->size() > 32) return bad("a list of at most 32 texts is needed");
    to.clear();
    for (const toml::node& each : *list) SEMEL_CHECK(text(each, to.emplace_back()));
    return Done{};
  }
  static Status duration(const toml::node& node, Millis& to) {
    std::string value;
    SEMEL_CHECK(text(node, value));
    const auto found = duration_of(value);
    if (!found) return bad("'" + value + "' is no time: 250ms, 30s, 5m, 24h, 7d");
    to = *found;
    return Done{};
  }
  static Status size(const toml::node& node, std::size_t& to) {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < 0) return bad("a number of bytes is needed");
    to = static_cast<std::size_t>(*value);
    return Done{};
  }
  template <class Choice>
  static Status choice(const toml::node& node, Choice& to,
                       std::initializer_list<std::pair<const char*, Choice>> all) {
    std::string value;
    SEMEL_CHECK(text(node, value));
    std::string names;
    for (const auto& [name, meant] : all) {
      if (value == name) {
        to = meant;
        return Done{};
      }
      names += std::string{names.empty() ? "" : ", "} + name;
    }
    return bad("'" + value + "' is none of " + names);
  }
  static Status scope(const toml::node& node, RoutePolicy& route) {
    std::string value;
    SEMEL_CHECK(text(node, value));
    constexpr std::string_view header = "header:";
    if (value.starts_with(header)) {
      route.scope = RoutePolicy::Scope::header;
      route.scope_header = value.substr(header.size());
      return Done{};
    }
    return choice(
        node, route.scope,
        {{"credential", RoutePolicy::Scope::credential}, {"none", RoutePolicy::Scope::none}});
  }
  static Status fingerprint(const toml::node& node, RoutePolicy& route) {
    std::vector<std::string> parts;
    SEMEL_CHECK(texts(node, parts));
    route.uses_query = route.uses_body = false;
    route.uses_headers.clear();
    constexpr std::string_view header = "header:";
    for (const std::string& part : parts) {
      if (part == "query") {
        route.uses_query = true;
      } else if (part == "body") {
        route.uses_body = true;
      } else if (part.starts_with(header)) {
        route.uses_headers.push_back(part.substr(header.size()));
      } else {
        return bad("'" + part + "' is none of query, body, header:NAME");
      }
    }
    return Done{};
  }

  static Status read_value(std::string_view key, const toml::node& node, RoutePolicy& route) {
    using Route = RoutePolicy;
    if (key == "name") return text(node, route.name);
    if (key == "path") return text(node, route.path);
    if (key == "methods") return texts(node, route.methods);
    if (key == "key")
      return choice(node, route.required, {{"required", true}, {"optional", false}});
    if (key == "scope") return scope(node, route);
    if (key == "fingerprint") return fingerprint(node, route);
    if (key == "wait") return duration(node, route.wait);
    if (key == "keep") return duration(node, route.keep);
    if (key == "timeout") return duration(node, route.timeout);
    if (key == "on_unknown") {
      return choice(node, route.on_unknown,
                    {{"in-doubt", Route::Unknown::in_doubt}, {"release", Route::Unknown::release}});
    }
    if (key == "on_5xx") {
      return choice(node, route.on_server_error,
                    {{"record", Route::ServerError::record},
                     {"in-doubt", Route::ServerError::in_doubt},
                     {"release", Route::ServerError::release}});
    }
    if (key == "request_bytes_max") return size(node, route.request_bytes_max);
    if (key == "reply_bytes_max") return size(node, route.reply_bytes_max);
    return bad(
        "it is not known; known are name, path, methods, key, scope, fingerprint, wait, keep, "
        "timeout, on_unknown, on_5xx, request_bytes_max, reply_bytes_max");
  }

  const std::string& name_;
};

}  // namespace

Result<Routes> read_routes(std::string_view text, const std::string& name) {
  const toml::parse_result file = toml::parse(text, name);
  if (!file) {
    const auto& begin = file.error().source().begin;
    return Error{ErrorCode::bad_option, name + ":" + std::to_string(begin.line) + ":" +
                                            std::to_string(begin.column) + ": " +
                                            std::string{file.error().description()}};
  }
  SEMEL_TRY(found, RouteReader{name}.read(file.table()));
  return Routes::make(std::move(found));
}

}  // namespace semel::gateway
