#include "engine/types/geo.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

namespace semel::engine {

namespace {

constexpr double longitude_max = 180;
constexpr double latitude_max = 85.05112878;
constexpr double earth_radius = 6372797.560856;
constexpr double equator_half = 20037726.37;  // metres, in Mercator's projection
constexpr unsigned steps_max = 26;

double radians(double degrees) noexcept {
  return degrees * (std::numbers::pi / 180.0);
}
double degrees(double radians) noexcept {
  return radians / (std::numbers::pi / 180.0);
}

/// Puts a zero in front of each bit.
std::uint64_t spread(std::uint32_t number) noexcept {
  std::uint64_t bits = number;
  bits = (bits | bits << 16) & 0x0000'ffff'0000'ffff;
  bits = (bits | bits << 8) & 0x00ff'00ff'00ff'00ff;
  bits = (bits | bits << 4) & 0x0f0f'0f0f'0f0f'0f0f;
  bits = (bits | bits << 2) & 0x3333'3333'3333'3333;
  return (bits | bits << 1) & 0x5555'5555'5555'5555;
}
/// Of every second bit, the lowest first.
std::uint32_t gathered(std::uint64_t bits) noexcept {
  bits &= 0x5555'5555'5555'5555;
  bits = (bits | bits >> 1) & 0x3333'3333'3333'3333;
  bits = (bits | bits >> 2) & 0x0f0f'0f0f'0f0f'0f0f;
  bits = (bits | bits >> 4) & 0x00ff'00ff'00ff'00ff;
  bits = (bits | bits >> 8) & 0x0000'ffff'0000'ffff;
  return static_cast<std::uint32_t>(bits | bits >> 16);
}

/// A square of a grid of 2^steps by 2^steps.
struct Square {
  std::uint32_t column = 0;  ///< of longitude; one beyond the last, of 180 degrees itself
  std::uint32_t row = 0;     ///< of latitude
  unsigned steps = 0;

  [[nodiscard]] std::uint64_t bits() const noexcept { return spread(column) << 1 | spread(row); }
};

struct Area {
  double west;
  double east;
  double south;
  double north;
};

std::uint32_t place_of(double degrees, double degrees_max, unsigned steps) noexcept {
  const double share = (degrees + degrees_max) / (2 * degrees_max);
  return static_cast<std::uint32_t>(share * static_cast<double>(std::uint64_t{1} << steps));
}

Square square_at(const GeoPoint& point, unsigned steps, double north = latitude_max) noexcept {
  return {.column = place_of(point.longitude, longitude_max, steps),
          .row = place_of(point.latitude, north, steps),
          .steps = steps};
}

double edge_of(std::uint32_t place, double degrees_max, unsigned steps) noexcept {
  const auto places = static_cast<double>(std::uint64_t{1} << steps);
  return -degrees_max + static_cast<double>(place) / places * (2 * degrees_max);
}

Area area_of(const Square& square) noexcept {
  return {.west = edge_of(square.column, longitude_max, square.steps),
          .east = edge_of(square.column + 1, longitude_max, square.steps),
          .south = edge_of(square.row, latitude_max, square.steps),
          .north = edge_of(square.row + 1, latitude_max, square.steps)};
}

GeoPoint middle_of(const Area& area) noexcept {
  return {.longitude = std::clamp((area.west + area.east) / 2, -longitude_max, longitude_max),
          .latitude = std::clamp((area.south + area.north) / 2, -latitude_max, latitude_max)};
}

/// Of any double, as x86-64 converts it.
std::uint64_t bits_of(double score) noexcept {
  constexpr double half = 9223372036854775808.0;  // 2^63
  constexpr std::uint64_t out_of_range = std::uint64_t{1} << 63;
  const auto signed_bits = [](double number) {
    const bool fits = number >= -half && number < half;
    return fits ? static_cast<std::uint64_t>(static_cast<std::int64_t>(number)) : out_of_range;
  };
  return score < half ? signed_bits(score) : signed_bits(score - half) ^ out_of_range;
}

Square square_of(double score) noexcept {
  const std::uint64_t bits = bits_of(score);
  return {.column = gathered(bits >> 1), .row = gathered(bits), .steps = steps_max};
}

}  // namespace

bool is_on_map(const GeoPoint& point) noexcept {
  return std::fabs(point.longitude) <= longitude_max && std::fabs(point.latitude) <= latitude_max;
}

double geo_score_of(const GeoPoint& point) noexcept {
  return static_cast<double>(square_at(point, steps_max).bits());
}

GeoPoint geo_point_of(double score) noexcept {
  return middle_of(area_of(square_of(score)));
}

std::string geo_text_of(double score) {
  constexpr Bytes letters = "0123456789bcdefghjkmnpqrstuvwxyz";
  constexpr double pole = 90;  // not where the map ends
  const std::uint64_t bits = square_at(geo_point_of(score), steps_max, pole).bits();
  constexpr unsigned bits_a_letter = 5;
  std::string text;
  for (unsigned shift = 2 * steps_max - bits_a_letter; shift < 2 * steps_max;
       shift -= bits_a_letter) {
    text += letters[bits >> shift & 31];
  }
  return text + "0";  // two bits are left, which are not shown
}

namespace {

double distance_along_meridian(const GeoPoint& a, const GeoPoint& b) noexcept {
  return earth_radius * std::fabs(radians(b.latitude) - radians(a.latitude));
}

}  // namespace

double geo_distance(const GeoPoint& a, const GeoPoint& b) noexcept {
  const double v = std::sin((radians(b.longitude) - radians(a.longitude)) / 2);
  if (v == 0) return distance_along_meridian(a, b);
  const double south = radians(a.latitude);
  const double north = radians(b.latitude);
  const double u = std::sin((north - south) / 2);
  const double chord = u * u + std::cos(south) * std::cos(north) * v * v;
  return 2.0 * earth_radius * std::asin(std::sqrt(chord));
}

// --- shapes -------------------------------------------------------------------------------------

bool is_in_shape(const GeoShape& shape, GeoMatch& match) noexcept {
  match.point = geo_point_of(match.score);
  if (!shape.is_box) {
    match.metres = geo_distance(shape.center, match.point);
    return match.metres <= shape.radius * shape.unit_metres;
  }
  const double up = distance_along_meridian(shape.center, match.point);
  if (up > shape.height * shape.unit_metres / 2) return false;
  const GeoPoint beside{shape.center.longitude, match.point.latitude};
  if (geo_distance(match.point, beside) > shape.width * shape.unit_metres / 2) return false;
  match.metres = geo_distance(shape.center, match.point);
  return true;
}

namespace {

/// What the shape reaches, about. Not cut off at the ends of the map.
Area reach_of(const GeoShape& shape) noexcept {
  const double height = shape.unit_metres * (shape.is_box ? shape.height / 2 : shape.radius);
  const double width = shape.unit_metres * (shape.is_box ? shape.width / 2 : shape.radius);
  const auto& [longitude, latitude] = shape.center;
  const double up = degrees(height / earth_radius);
  // The wider one of its edges, which is the one nearer to a pole.
  const double edge = latitude < 0 ? latitude - up : latitude + up;
  const double aside = degrees(width / earth_radius / std::cos(radians(edge)));
  return {.west = longitude - aside,
          .east = longitude + aside,
          .south = latitude - up,
          .north = latitude + up};
}

/// A grid whose squares are about as large as the shape.
unsigned steps_of(const GeoShape& shape) noexcept {
  double metres = shape.radius;
  if (shape.is_box) {
    const double aside = shape.width / 2;
    const double up = shape.height / 2;
    metres = std::sqrt(aside * aside + up * up);
  }
  metres *= shape.unit_metres;
  if (metres == 0) return steps_max;
  int steps = 1;
  for (; metres < equator_half; metres *= 2) ++steps;
  steps -= 2;
  constexpr double far_north = 66;
  constexpr double near_pole = 80;
  const double latitude = std::fabs(shape.center.latitude);
  if (latitude > far_north) --steps;
  if (latitude > near_pole) --steps;
  return static_cast<unsigned>(std::clamp(steps, 1, static_cast<int>(steps_max)));
}

/// The square so many columns to the east and rows to the north; the map is round both ways.
Square moved(Square square, int columns, int rows) noexcept {
  const std::uint32_t mask = (std::uint32_t{1} << square.steps) - 1;
  if (columns != 0) square.column = (square.column + static_cast<std::uint32_t>(columns)) & mask;
  if (rows != 0) square.row = (square.row + static_cast<std::uint32_t>(rows)) & mask;
  return square;
}

/// Whether the squares around this one cover the area. A side of the area that is not a number, of
/// an infinite shape, is covered.
bool covers(const Square& square, const Area& reach) noexcept {
  return !(area_of(moved(square, 0, 1)).north < reach.north) &&
         !(area_of(moved(square, 0, -1)).south > reach.south) &&
         !(area_of(moved(square, 1, 0)).east < reach.east) &&
         !(area_of(moved(square, -1, 0)).west > reach.west);
}

ScoreRange scores_of(const Square& square) noexcept {
  const unsigned shift = 2 * (steps_max - square.steps);
  return {.min = static_cast<double>(square.bits() << shift),
          .max = static_cast<double>((square.bits() + 1) << shift),
          .excludes_max = true};
}

struct Move {
  int columns;
  int rows;
};

}  // namespace

std::vector<ScoreRange> squares_of(const GeoShape& shape) {
  const Area reach = reach_of(shape);
  unsigned steps = steps_of(shape);
  Square middle = square_at(shape.center, steps);
  if (steps > 1 && !covers(middle, reach)) middle = square_at(shape.center, --steps);
  const Area area = area_of(middle);
  // Squares on a side where the one in the middle reaches far enough are left out.
  constexpr unsigned steps_to_leave_out = 2;
  const auto is_needed = [&](const Move& move) {
    if (steps < steps_to_leave_out) return true;
    return !(move.rows < 0 && area.south < reach.south) &&
           !(move.rows > 0 && area.north > reach.north) &&
           !(move.columns < 0 && area.west < reach.west) &&
           !(move.columns > 0 && area.east > reach.east);
  };
  constexpr std::array<Move, 9> moves{
      {{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}}};
  std::vector<ScoreRange> squares;
  // Where the map has few squares, neighbours may be the same one.
  std::optional<std::uint64_t> last;
  for (const Move& move : moves) {
    const Square square = moved(middle, move.columns, move.rows);
    if (!is_needed(move) || last == square.bits()) continue;
    squares.push_back(scores_of(square));
    // Not of the first: redis-server does not compare with it.
    if (squares.size() > 1) last = square.bits();
  }
  return squares;
}

}  // namespace semel::engine
