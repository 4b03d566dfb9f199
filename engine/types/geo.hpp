// Places on the map as scores of a sorted set: the bits of latitude and longitude in turn, 26 of
// each, so that places which are near each other often have near scores. The map ends
// at 85.05112878 degrees north and south (EPSG:3857). Distances are those of a sphere of
// 6372797.560856 m, along its great circles.
//
// Numbers are computed by the same operations in the same order as redis-server's, so that texts of
// replies are equal to the last digit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/types/sorted_set.hpp"

namespace semel::engine {

/// In degrees.
struct GeoPoint {
  double longitude = 0;
  double latitude = 0;
};

/// Whether the point is on the map. Not of NaN.
[[nodiscard]] bool is_on_map(const GeoPoint& point) noexcept;
/// Of a point on the map.
[[nodiscard]] double geo_score_of(const GeoPoint& point) noexcept;
/// The middle of the square that the score names. Of any score.
[[nodiscard]] GeoPoint geo_point_of(double score) noexcept;
/// The square as geohash.org writes it, in 11 letters.
[[nodiscard]] std::string geo_text_of(double score);
/// In metres.
[[nodiscard]] double geo_distance(const GeoPoint& a, const GeoPoint& b) noexcept;

/// A circle or a box around a point. Lengths are in a unit of `unit_metres`.
struct GeoShape {
  GeoPoint center{};
  bool is_box = false;
  double radius = 0;
  double width = 0;
  double height = 0;
  double unit_metres = 1;
};

struct GeoMatch {
  GeoPoint point{};
  double metres = 0;  ///< from the center
  double score = 0;
  Bytes member{};  ///< of the set
};

/// Calls `visit(const GeoMatch&)` for the members in the shape, square by square as redis-server
/// looks at them, until it returns false.
template <class Visit>
void each_in_shape(const ObjectReader& set, const GeoShape& shape, Visit&& visit);

// --- parts --------------------------------------------------------------------------------------

/// Whether the match, whose score and member are set, is in the shape; fills in the rest.
[[nodiscard]] bool is_in_shape(const GeoShape& shape, GeoMatch& match) noexcept;
/// The scores of the up to nine squares that cover the shape, in the order in which they are looked
/// at.
[[nodiscard]] std::vector<ScoreRange> squares_of(const GeoShape& shape);

template <class Visit>
void each_in_shape(const ObjectReader& set, const GeoShape& shape, Visit&& visit) {
  bool goes_on = true;
  for (const ScoreRange& square : squares_of(shape)) {
    if (!goes_on) return;
    each_scored(set, ranks_of(set, square), Direction::up, [&](const Scored& each) {
      GeoMatch match{.score = each.score, .member = each.member};
      goes_on = !is_in_shape(shape, match) || visit(match);
      return goes_on;
    });
  }
}

}  // namespace semel::engine
