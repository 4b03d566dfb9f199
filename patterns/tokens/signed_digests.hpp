// What libcrypto computes, and all that is seen of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "semel/types.hpp"

namespace semel::patterns {

using Sha256 = std::array<std::uint8_t, 32>;

/// None: libcrypto has failed.
[[nodiscard]] std::optional<Sha256> hmac_sha256(Bytes secret, Bytes text);

}  // namespace semel::patterns
