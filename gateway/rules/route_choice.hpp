// The choice of a request's route. An upstream may read a path, or a method, differently: a request
// that would be guarded in one of its readings must not pass unguarded in another. Pure functions.
#pragma once

#include <optional>
#include <span>

#include "gateway/rules/message.hpp"
#include "gateway/rules/outcome.hpp"
#include "gateway/rules/route.hpp"

namespace semel::gateway {

struct RouteChoice {
  std::optional<Refusal> refusal{};
  const Route* route = nullptr;  ///< unless refused
};

/// The first of `routes` that matches, else `otherwise`. Refused: a path without a normal form
/// (bad_request); a path that no guard matches, while a guard matches it literally, or ignoring
/// case or a slash at its end (bad_request); a field that names another method (method_override),
/// if a guarding route without `ignores_override` matches the path for any method. `request` needs
/// no body.
[[nodiscard]] RouteChoice choose_route(std::span<const Route> routes, const Route& otherwise,
                                       const Request& request);

}  // namespace semel::gateway
