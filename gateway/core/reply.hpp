// A reply of the upstream as it is kept with the claim, and the gateway's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/types.hpp"

namespace semel::gateway {

struct Reply {
  unsigned status = 0;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
};

/// For Claims::complete(). decode(encode(x)) is x.
[[nodiscard]] std::string encode(const Reply& reply);
/// None: these are no bytes of encode().
[[nodiscard]] std::optional<Reply> decode(Bytes bytes);

/// Problem details (RFC 9457). `type` is the last part of a URN: "in-flight".
[[nodiscard]] Reply problem(unsigned status, std::string_view type, std::string_view title,
                            std::string_view detail = {});

}  // namespace semel::gateway
