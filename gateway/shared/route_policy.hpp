// The routes and keys as read by one start or reload. A request keeps the policy that it began
// with.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gateway/config/settings.hpp"
#include "gateway/shared/counters.hpp"

namespace semel::gateway {

/// Immutable; shared by its readers.
class RoutePolicy {
 public:
  RoutePolicy(const Settings& settings, const Counters& counters)
      : routes_(settings.routes), keys_(settings.keys), counts_(counters.counts_for(routes_)) {
    default_route_.name = "default";
    default_route_.guard = settings.default_guard.value_or(Guard::pass);
  }
  RoutePolicy(const RoutePolicy&) = delete;
  RoutePolicy& operator=(const RoutePolicy&) = delete;

  [[nodiscard]] const std::vector<Route>& routes() const noexcept { return routes_; }
  [[nodiscard]] const std::vector<SigningKey>& keys() const noexcept { return keys_; }
  [[nodiscard]] const std::vector<std::shared_ptr<RouteCounts>>& counts() const noexcept {
    return counts_;
  }
  [[nodiscard]] const Route& default_route() const noexcept { return default_route_; }
  /// The counts of a route of this policy, of the default, or of no route.
  [[nodiscard]] RouteCounts& counts_of(const Route* route) const noexcept {
    const bool is_listed = route >= routes_.data() && route < routes_.data() + routes_.size();
    return is_listed ? *counts_[static_cast<std::size_t>(route - routes_.data())] : *counts_.back();
  }

 private:
  const std::vector<Route> routes_;
  const std::vector<SigningKey> keys_;
  Route default_route_;
  const std::vector<std::shared_ptr<RouteCounts>> counts_;
};

}  // namespace semel::gateway
