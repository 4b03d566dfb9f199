// Numbers and bytes: both ends of each range, every cut, and what no writer makes.
#include "base/coding.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using namespace semel::base;

namespace {

std::vector<std::uint64_t> edges() {
  std::vector<std::uint64_t> numbers{0, 1, std::numeric_limits<std::uint64_t>::max()};
  for (unsigned bit = 1; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    numbers.insert(numbers.end(), {power - 1, power, power + 1});
  }
  return numbers;
}

}  // namespace

TEST_CASE("coding: varints have the bytes that are foretold, and come back", "[base][coding]") {
  for (const std::uint64_t number : edges()) {
    std::string bytes;
    put_varint(bytes, number);
    CHECK(bytes.size() == varint_bytes(number));
    std::string room(varint_bytes_max, '#');
    ByteWriter writer{room.data()};
    writer.varint(number);
    CHECK(room.substr(0, static_cast<std::size_t>(writer.end() - room.data())) == bytes);
    ByteReader reader{bytes};
    CHECK(reader.varint() == number);
    CHECK(reader.is_at_end());
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      ByteReader short_one{std::string_view{bytes}.substr(0, cut)};
      CHECK(short_one.varint() == 0);
      CHECK_FALSE(short_one.is_good());
    }
  }
}

TEST_CASE("coding: a varint of more than 64 bits is no number", "[base][coding]") {
  const std::string nine(9, '\xff');
  for (const char last : {'\x02', '\x7f', '\x81', '\xff'}) {
    ByteReader reader{nine + last + std::string(4, '\0')};
    CHECK(reader.varint() == 0);
    CHECK_FALSE(reader.is_good());
  }
  ByteReader largest{nine + '\x01'};
  CHECK(largest.varint() == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("coding: small differences of both signs are short, and wrap around", "[base][coding]") {
  for (const std::uint64_t number : edges()) {
    for (const std::uint64_t value : {number, 0 - number}) {
      std::string bytes;
      put_signed(bytes, value);
      ByteReader reader{bytes};
      CHECK(reader.signed_varint() == value);
      CHECK(reader.is_at_end());
    }
  }
  std::string minus_one;
  put_signed(minus_one, 0 - std::uint64_t{1});
  CHECK(minus_one == "\x01");
}

TEST_CASE("coding: fixed numbers, arrays and prefixed bytes follow each other", "[base][coding]") {
  const std::array<std::uint8_t, 3> three{1, 2, 3};
  std::string bytes;
  put_fixed(bytes, std::uint16_t{0x0201});
  put_fixed(bytes, std::uint64_t{7});
  put_array(bytes, three);
  put_prefixed(bytes, "key");
  put_prefixed(bytes, "");
  bytes += "rest";
  CHECK(bytes.substr(0, 2) == "\x01\x02");
  std::string room(bytes.size(), '#');
  ByteWriter writer{room.data()};
  writer.low_bytes(0x99990201, 2);
  writer.fixed(std::uint64_t{7});
  writer.array(three);
  writer.varint(3);
  writer.bytes("key");
  writer.varint(0);
  writer.bytes({});
  writer.bytes("rest");
  CHECK(room == bytes);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    ByteReader reader{std::string_view{bytes}.substr(0, size)};
    std::array<std::uint8_t, 3> found{};
    const bool is_right = reader.fixed<std::uint16_t>() == 0x0201 &&
                          reader.fixed<std::uint64_t>() == 7 &&
                          (reader.array(found), found == three) && reader.prefixed() == "key" &&
                          reader.prefixed().empty();
    CHECK((is_right && reader.is_good()) == (size >= bytes.size() - 4));
    if (size == bytes.size()) CHECK(reader.take_rest() == "rest");
  }
}

TEST_CASE("coding: after a missing field nothing is taken, whatever is left", "[base][coding]") {
  ByteReader reader{"abcdef"};
  CHECK(reader.take(7).empty());
  CHECK_FALSE(reader.is_good());
  CHECK(reader.take(1).empty());
  CHECK(reader.fixed<std::uint8_t>() == 0);
  CHECK(reader.take_rest().empty());
  ByteReader huge{std::string(10, '\xff')};
  CHECK(huge.take(std::numeric_limits<std::uint64_t>::max()).empty());
  CHECK_FALSE(huge.is_at_end());
}
