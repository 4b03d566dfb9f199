// The methods that a request may have. Pure.
// Source: the IANA registry of HTTP methods; RFC 9110, section 9.1: they are case-sensitive
#pragma once

#include <span>
#include <string_view>

namespace semel::gateway {

/// All that are registered and that the gateway serves. CONNECT and TRACE are not: they are for the
/// proxy itself.
[[nodiscard]] std::span<const std::string_view> served_methods() noexcept;

/// Whether it is one of them, in capitals as they are registered. Some upstreams take "post" for
/// POST, so another spelling would pass the guard of POST and be run as POST.
[[nodiscard]] bool is_served_method(std::string_view method) noexcept;

}  // namespace semel::gateway
