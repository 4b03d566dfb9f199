// Which route a request takes. An upstream may read a path, or a method, in another way than the
// gateway: what would be guarded in one of these readings must not pass unguarded in another.
// Pure functions.
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

/// The first of `routes` that fits, else `otherwise`. Refused: a path without a normal form
/// (bad_request); a path that no guard fits, while one fits it literally, or without regard to the
/// case of letters or a slash at its end (bad_request); a field that names another method
/// (method_override), where a guarding route fits the path for any method and takes it not to be
/// ignored. `request` needs no body.
[[nodiscard]] RouteChoice choose_route(std::span<const Route> routes, const Route& otherwise,
                                       const Request& request);

}  // namespace semel::gateway
