#include "net/sorted_sets/geo_text.hpp"

#include <array>
#include <charconv>
#include <string>

#include "net/objects/score_text.hpp"
#include "net/resp/text.hpp"

namespace semel::net {

namespace {

/// Degrees have three digits in front of the point, a distance has eight; what clients have given
/// may have 309.
using FixedText = std::array<char, 400>;

std::string_view fixed_text(double number, int digits, FixedText& room) noexcept {
  const auto end = std::to_chars(room.data(), room.data() + room.size(), number,
                                 std::chars_format::fixed, digits)
                       .ptr;
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

void write_degrees(RespWriter& reply, double degrees) {
  constexpr int digits = 17;
  FixedText room;
  std::string_view text = fixed_text(degrees, digits, room);
  text = text.substr(0, text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.remove_suffix(1);
  if (reply.dialect() == Resp::two) return reply.bulk(text);
  reply.prepared("," + std::string{text} + "\r\n");
}

}  // namespace

std::optional<engine::GeoPoint> read_point(Call& call, std::string_view longitude,
                                           std::string_view latitude) {
  const auto east = score_of(longitude);
  const auto north = score_of(latitude);
  if (!east || !north) {
    call.fail("ERR value is not a valid float");
    return std::nullopt;
  }
  const engine::GeoPoint point{*east, *north};
  if (engine::is_on_map(point)) return point;
  constexpr int digits = 6;
  FixedText room;
  std::string text = "ERR invalid longitude,latitude pair ";
  text += fixed_text(point.longitude, digits, room);
  text += ',';
  text += fixed_text(point.latitude, digits, room);
  call.fail(text);
  return std::nullopt;
}

std::optional<double> read_unit(Call& call, std::string_view word) {
  if (is_word(word, "m")) return 1;
  if (is_word(word, "km")) return 1000;
  if (is_word(word, "ft")) return 0.3048;
  if (is_word(word, "mi")) return 1609.34;
  call.fail("ERR unsupported unit provided. please use M, KM, FT, MI");
  return std::nullopt;
}

void write_distance(RespWriter& reply, double distance) {
  constexpr int digits = 4;
  FixedText room;
  reply.bulk(fixed_text(distance, digits, room));
}

void write_point(RespWriter& reply, const engine::GeoPoint& point) {
  reply.array(2);
  write_degrees(reply, point.longitude);
  write_degrees(reply, point.latitude);
}

}  // namespace semel::net
