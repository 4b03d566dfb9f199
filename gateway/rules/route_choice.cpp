#include "gateway/rules/route_choice.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/hex.hpp"
#include "gateway/rules/head.hpp"
#include "gateway/rules/message.hpp"

namespace semel::gateway {
namespace {

/// The name of a query's parameter as the laxest server reads it: PHP takes ".method[]" for
/// "_method".
std::string lax_name(std::string_view parameter) {
  std::string name;
  for (std::size_t i = 0; i < parameter.size() && parameter[i] != '='; ++i) {
    char c = parameter[i];
    const bool is_escape = c == '%' && parameter.size() - i > 2;
    const int high = is_escape ? base::hex_value(parameter[i + 1]) : -1;
    const int low = is_escape ? base::hex_value(parameter[i + 2]) : -1;
    if (high >= 0 && low >= 0) {
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+') {
      c = ' ';
    }
    if (c == '[') break;
    if (c == ' ' && name.empty()) continue;
    name += c == '.' || c == ' ' ? '_' : c;
  }
  return name;
}

bool has_method(std::string_view query) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find_first_of("&;"), query.size());
    if (equal_names(lax_name(query.substr(0, end)), "_method")) return true;
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return false;
}

/// Fields by which some upstreams take another method than that of the request line.
std::optional<std::string_view> override_of(const Request& request) {
  constexpr std::array<std::string_view, 3> names{"X-HTTP-Method-Override", "X-HTTP-Method",
                                                  "X-Method-Override"};
  for (const std::string_view name : names) {
    if (find_field(request.fields, name).value) return name;
  }
  return has_method(request.query) ? std::optional{std::string_view{"_method in the query"}}
                                   : std::nullopt;
}

/// The readings of the path by servers that are laxer than PathPattern::fits(): each reading once,
/// in lower case, and without a slash at its end.
std::vector<std::string> lax_readings(std::string_view path) {
  std::vector<std::string> readings;
  for (const bool keeps_parameters : {false, true}) {
    for (const bool keeps_slashes : {false, true}) {
      const Result<std::string> reading =
          normal_path(path, {.keeps_parameters = keeps_parameters, .keeps_slashes = keeps_slashes});
      if (!reading) continue;  // the stricter ones have refused it
      std::string small = lower_case(*reading);
      if (small.size() > 1 && small.ends_with('/')) small.pop_back();
      const bool is_new = std::find(readings.begin(), readings.end(), small) == readings.end();
      if (is_new) readings.push_back(std::move(small));
      // Without a ';' and a '%' the path has no parameter, and without "//" no slash to drop.
      if (path.find_first_of(";%") == path.npos && path.find("//") == path.npos) return readings;
    }
  }
  return readings;
}

bool fits_laxly(const Route& route, const std::vector<std::string>& readings) {
  return std::any_of(readings.begin(), readings.end(),
                     [&](const std::string& reading) { return route.path.fits_laxly(reading); });
}

Refusal two_readings(std::string_view path, const Route& route) {
  return {Outcome::bad_request, "some servers read the path '" + std::string{path} +
                                    "' as one of the guarded route '" + route.name + "'"};
}

}  // namespace

RouteChoice choose_route(std::span<const Route> routes, const Route& otherwise,
                         const Request& request) {
  const Result<std::string> path = normal_path(request.path);
  if (!path) return {.refusal = Refusal{Outcome::bad_request, path.error().detail}};
  const Route* const found = find_route(routes, request.method, *path);
  const Route& route = found != nullptr ? *found : otherwise;
  const std::optional<std::string_view> named = override_of(request);
  if (route.guard == Guard::refuse || (route.guards() && !named)) return {.route = &route};
  const std::vector<std::string> readings = lax_readings(request.path);
  for (const Route& each : routes) {
    if (!each.guards() || !fits_laxly(each, readings)) continue;
    if (named && !each.ignores_override) {
      return {.refusal = Refusal{
                  Outcome::method_override,
                  std::string{*named} + " on a path of the guarded route '" + each.name + "'"}};
    }
    if (!route.guards() && each.fits_method(request.method)) {
      return {.refusal = two_readings(request.path, each)};
    }
  }
  return {.route = &route};
}

}  // namespace semel::gateway
