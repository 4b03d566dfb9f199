#include "gateway/core/route_policy.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace semel::gateway {
namespace {

Error wrong(const RoutePolicy& route, const std::string& what) {
  return {ErrorCode::bad_option, "route '" + route.name + "': " + what};
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
  });
}

Status check_bytes(const RoutePolicy& route, const char* name, std::size_t value,
                   std::size_t most) {
  if (value >= 1 && value <= most) return Done{};
  return wrong(route, std::string{name} + " is " + std::to_string(value) + ", valid is 1 to " +
                          std::to_string(most));
}

Status check_time(const RoutePolicy& route, const char* name, Millis value, Millis least,
                  Millis most) {
  if (value >= least && value <= most) return Done{};
  return wrong(route, std::string{name} + " is " + std::to_string(value.count()) +
                          " ms, valid is " + std::to_string(least.count()) + " to " +
                          std::to_string(most.count()) + " ms");
}

Status check(const RoutePolicy& route) {
  if (!is_token(route.name) || route.name.size() > 64) {
    return wrong(route, "a name has 1 to 64 letters, digits and -_.");
  }
  if (route.path.empty() || route.path[0] != '/' || route.path.size() > 1'024) {
    return wrong(route,
                 "path '" + route.path + "' has to begin with / and has 1,024 bytes at most");
  }
  if (route.methods.empty()) return wrong(route, "it has no methods");
  for (const std::string& method : route.methods) {
    if (!is_token(method) || method.size() > 32) {
      return wrong(route, "'" + method + "' is no method");
    }
    if (method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE") {
      return wrong(route, method + " changes nothing and needs no guard");
    }
  }
  if (route.scope == RoutePolicy::Scope::header && !is_token(route.scope_header)) {
    return wrong(route, "'" + route.scope_header + "' is no header");
  }
  for (const std::string& header : route.uses_headers) {
    if (!is_token(header)) return wrong(route, "'" + header + "' is no header");
  }
  SEMEL_CHECK(check_time(route, "timeout", route.timeout, Millis{100}, limits::timeout_max));
  SEMEL_CHECK(check_time(route, "wait", route.wait, Millis{0}, limits::timeout_max));
  SEMEL_CHECK(check_time(route, "keep", route.keep, Millis{1'000}, semel::limits::ttl_max));
  SEMEL_CHECK(
      check_bytes(route, "request_bytes_max", route.request_bytes_max, limits::body_bytes_max));
  return check_bytes(route, "reply_bytes_max", route.reply_bytes_max, limits::reply_bytes_max);
}

}  // namespace

bool RoutePolicy::guards(std::string_view method) const {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

Policy RoutePolicy::claim_policy() const {
  constexpr Millis margin{30'000};  // for the gateway's own part, on a busy machine
  Policy policy;
  policy.lease = timeout + margin;
  policy.result_ttl = keep;
  policy.failure_ttl = keep;
  policy.on_lease_end =
      on_unknown == Unknown::in_doubt ? Policy::OnLeaseEnd::in_doubt : Policy::OnLeaseEnd::retry;
  policy.on_failure = Policy::OnFailure::release;
  return policy;
}

Result<Routes> Routes::make(std::vector<RoutePolicy> policies) {
  if (policies.size() > limits::routes_max) {
    return Error{ErrorCode::bad_option, std::to_string(policies.size()) + " routes, at most " +
                                            std::to_string(limits::routes_max)};
  }
  std::set<std::string> names;
  std::set<std::string> paths;
  for (const RoutePolicy& route : policies) {
    SEMEL_CHECK(check(route));
    if (!names.insert(route.name).second) return wrong(route, "another route has this name");
    if (!paths.insert(route.path).second) {
      return wrong(route, "another route has the path " + route.path);
    }
  }
  std::sort(policies.begin(), policies.end(), [](const RoutePolicy& one, const RoutePolicy& other) {
    return one.path.size() > other.path.size();
  });
  Routes made;
  made.policies_ = std::move(policies);
  return made;
}

/// "/orders" is the path of /orders and of /orders/7, not of /orders-old.
const RoutePolicy* Routes::find(std::string_view path) const {
  for (const RoutePolicy& route : policies_) {
    if (!path.starts_with(route.path)) continue;
    const bool is_whole = path.size() == route.path.size() || route.path.back() == '/' ||
                          path[route.path.size()] == '/';
    if (is_whole) return &route;
  }
  return nullptr;
}

}  // namespace semel::gateway
