// Points, lengths and units of geo commands, as clients write them and as replies show them.
#pragma once

#include <optional>
#include <string_view>

#include "engine/types/geo.hpp"
#include "net/commands/command.hpp"

namespace semel::net {

/// None, of all that read: an error has been written.

[[nodiscard]] std::optional<engine::GeoPoint> read_point(Call& call, std::string_view longitude,
                                                         std::string_view latitude);
/// M, KM, FT or MI, in metres.
[[nodiscard]] std::optional<double> read_unit(Call& call, std::string_view word);

/// With four digits behind the point, as a bulk in both dialects.
void write_distance(RespWriter& reply, double distance);
/// A pair of doubles with up to 17 digits behind the point, never with an exponent.
void write_point(RespWriter& reply, const engine::GeoPoint& point);

}  // namespace semel::net
