// The time inside an id, at both ends of what such an id can hold.
#include <limits>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/patterns/keys.hpp"

using namespace semel;

TEST_CASE("id_time: a UUIDv7 has its time", "[patterns][keys]") {
  // The example of RFC 9562, appendix A.6: 2022-02-22 19:22:22 UTC.
  CHECK(unix_ms_of_uuid7("017F22E2-79B0-7CC3-98C4-DC0C0C07398F") == 1'645'557'742'000);
  CHECK(unix_ms_of_uuid7("017f22e2-79b0-7cc3-98c4-dc0c0c07398f") == 1'645'557'742'000);
  CHECK(unix_ms_of_uuid7("00000000-0000-7000-8000-000000000000") == 0);
  CHECK(unix_ms_of_uuid7("ffffffff-ffff-7fff-bfff-ffffffffffff") == (std::int64_t{1} << 48) - 1);
}

TEST_CASE("id_time: what is not a UUIDv7 has none", "[patterns][keys]") {
  const std::string good = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
  const auto with = [&](std::size_t at, char c) {
    std::string text = good;
    text[at] = c;
    return unix_ms_of_uuid7(text);
  };
  REQUIRE(unix_ms_of_uuid7(good).has_value());
  CHECK_FALSE(with(14, '4').has_value());  // another version
  CHECK_FALSE(with(14, '6').has_value());
  CHECK_FALSE(with(14, '8').has_value());
  CHECK_FALSE(with(19, '7').has_value());  // another variant
  CHECK(with(19, '8').has_value());
  CHECK(with(19, 'B').has_value());
  CHECK_FALSE(with(19, 'c').has_value());
  for (const std::size_t dash : {8U, 13U, 18U, 23U}) CHECK_FALSE(with(dash, '0').has_value());
  CHECK_FALSE(with(0, 'g').has_value());
  CHECK_FALSE(with(35, '-').has_value());
  CHECK_FALSE(unix_ms_of_uuid7(good + "0").has_value());
  CHECK_FALSE(unix_ms_of_uuid7(good.substr(1)).has_value());
  CHECK_FALSE(unix_ms_of_uuid7("").has_value());
}

TEST_CASE("id_time: a ULID has its time", "[patterns][keys]") {
  CHECK(unix_ms_of_ulid("01ARZ3NDEKTSV4RRFFQ69G5FAV") == 1'469'922'850'259);
  CHECK(unix_ms_of_ulid("01arz3ndektsv4rrffq69g5fav") == 1'469'922'850'259);
  CHECK(unix_ms_of_ulid("00000000000000000000000000") == 0);
  CHECK(unix_ms_of_ulid("7ZZZZZZZZZZZZZZZZZZZZZZZZZ") == (std::int64_t{1} << 48) - 1);
  CHECK_FALSE(unix_ms_of_ulid("80000000000000000000000000").has_value());
  CHECK_FALSE(unix_ms_of_ulid("0000000000000000000000000").has_value());
  CHECK_FALSE(unix_ms_of_ulid("000000000000000000000000000").has_value());
  for (const char letter : Bytes{"ILOUilou-"}) {
    std::string text(26, '0');
    text[25] = letter;
    CHECK_FALSE(unix_ms_of_ulid(text).has_value());
    text[25] = '0';
    text[1] = letter;
    CHECK_FALSE(unix_ms_of_ulid(text).has_value());
  }
}

TEST_CASE("id_time: a snowflake has its time from its epoch on", "[patterns][keys]") {
  constexpr std::int64_t epoch = 1'288'834'974'657;
  CHECK(unix_ms_of_snowflake("1541815603606036480", epoch) == 1'656'432'460'105);
  CHECK(unix_ms_of_snowflake("0", epoch) == epoch);
  CHECK(unix_ms_of_snowflake("4194303", epoch) == epoch);  // 2^22 - 1
  CHECK(unix_ms_of_snowflake("4194304", epoch) == epoch + 1);
  CHECK(unix_ms_of_snowflake("9223372036854775807", 0) == (std::int64_t{1} << 41) - 1);
  for (const Bytes text :
       {"9223372036854775808", "99999999999999999999", "-1", "+1", "01", "", " 1", "1 ", "12a"}) {
    CHECK_FALSE(unix_ms_of_snowflake(text, epoch).has_value());
  }
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  CHECK(unix_ms_of_snowflake("4194304", last - 1) == last);
  CHECK_FALSE(unix_ms_of_snowflake("4194304", last).has_value());
}

TEST_CASE("id_time: first_sent is taken from either kind of id, and from no other",
          "[patterns][keys]") {
  CHECK(first_sent_of("017f22e2-79b0-7cc3-98c4-dc0c0c07398f") == 1'645'557'742'000);
  CHECK(first_sent_of("01ARZ3NDEKTSV4RRFFQ69G5FAV") == 1'469'922'850'259);
  CHECK_FALSE(first_sent_of("919108f7-52d1-4320-9bac-f847db4148a8").has_value());
  CHECK_FALSE(first_sent_of("order-4711").has_value());
  CHECK_FALSE(first_sent_of("1541815603606036480").has_value());
}
