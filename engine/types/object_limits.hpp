// Bounds of what commands of objects do at once. A test holds each at n and at n + 1.
#pragma once

#include <cstddef>

namespace semel::limits {

inline constexpr std::size_t set_scan_whole_max = 512;   ///< members that SSCAN returns at once
inline constexpr std::size_t set_picks_max = 1'048'576;  ///< of SRANDMEMBER, if they may repeat
inline constexpr std::size_t set_picks_bytes_max = std::size_t{64} << 20;  ///< the same, together
inline constexpr std::size_t sort_weights_bytes_max = std::size_t{64} << 20;  ///< of BY with ALPHA

}  // namespace semel::limits
