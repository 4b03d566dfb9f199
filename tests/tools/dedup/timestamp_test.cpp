// Vocabulary: format (what times look like), reading (a time and how much text made it), zone,
// range, boundary.
#include "tools/semel/records/timestamp.hpp"

#include "tests/support/catch.hpp"

using semel::Result;
using semel::tool::TimeFormat;

namespace {

struct Sample {
  const char* text;
  std::int64_t unix_ms;
};

void check_samples(const char* format_name, std::initializer_list<Sample> samples) {
  const Result<TimeFormat> format = TimeFormat::parse(format_name);
  REQUIRE(format);
  for (const Sample& sample : samples) {
    INFO(format_name << ": " << sample.text);
    const auto reading = format->read(sample.text);
    REQUIRE(reading);
    CHECK(reading->unix_ms == sample.unix_ms);
    CHECK(reading->size == std::string{sample.text}.size());
  }
}

void check_refused(const char* format_name, std::initializer_list<const char*> texts) {
  const Result<TimeFormat> format = TimeFormat::parse(format_name);
  REQUIRE(format);
  for (const char* text : texts) {
    INFO(format_name << ": " << text);
    CHECK_FALSE(format->read(text));
  }
}

}  // namespace

TEST_CASE("iso8601: date, time, fraction and zone are read, each optional after the date",
          "[tools][time]") {
  check_samples("iso8601", {{"1970-01-01", 0},
                            {"2015-05-17T10:05:03Z", 1'431'857'103'000},
                            {"2015-05-17 10:05:03", 1'431'857'103'000},
                            {"2015-05-17T10:05", 1'431'857'100'000},
                            {"2015-05-17T10:05:03.123456Z", 1'431'857'103'123},
                            {"2015-05-17T10:05:03,5+02:00", 1'431'849'903'500},
                            {"2015-05-17T10:05:03-0130", 1'431'862'503'000},
                            {"2000-02-29", 951'782'400'000},
                            {"1969-12-31T23:59:59.999Z", -1},
                            {"0000-01-01", -62'167'219'200'000},
                            {"9999-12-31T23:59:59.999Z", 253'402'300'799'999}});
}

TEST_CASE("iso8601: days and hours that do not exist are refused", "[tools][time]") {
  check_refused("iso8601", {"", "2015", "2015-13-01", "2015-00-01", "2015-02-29", "1900-02-29",
                            "2015-04-31", "2015-05-17T24:00:00Z", "2015-05-17T10:60", "17/05/2015",
                            "2015-05-17T10:05:03.", "2015-05-17T", "9999-12-31T23:59:59-01:00"});
}

TEST_CASE("iso8601: a blank after a date that stands alone is not part of it", "[tools][time]") {
  const Result<TimeFormat> format = TimeFormat::parse("iso8601");
  const auto reading = format->read("2015-05-17 GET /");
  REQUIRE(reading);
  CHECK(reading->size == 10);
}

TEST_CASE("apache: the form of access logs is read, brackets optional", "[tools][time]") {
  check_samples("apache", {{"[17/May/2015:10:05:03 +0000]", 1'431'857'103'000},
                           {"17/May/2015:10:05:03 +0200", 1'431'849'903'000},
                           {"[17/May/2015:10:05:03]", 1'431'857'103'000}});
  check_refused("apache", {"[17/May/2015:10:05:03 +0000", "[17/Mai/2015:10:05:03 +0000]",
                           "[7/May/2015:10:05:03 +0000]", "[32/May/2015:10:05:03 +0000]", "["});
}

TEST_CASE("unix: seconds with a fraction, and unix_ms: whole milliseconds", "[tools][time]") {
  check_samples("unix", {{"0", 0},
                         {"1431857103", 1'431'857'103'000},
                         {"1431857103.1239", 1'431'857'103'123},
                         {"-0.5", -500}});
  check_samples("unix_ms", {{"1431857103123", 1'431'857'103'123}, {"-1", -1}});
  check_refused("unix", {"", "x", "1.", "99999999999999999999", "253402300800"});
  check_refused("unix_ms", {"", "253402300800000", "-62167219200001"});
}

TEST_CASE("a strptime pattern is read in UTC, or in the zone it names", "[tools][time]") {
  check_samples("%d.%m.%Y %H:%M:%S", {{"17.05.2015 10:05:03", 1'431'857'103'000}});
  check_samples("%Y%m%dT%H%M%S%z", {{"20150517T100503+0200", 1'431'849'903'000}});
  check_refused("%d.%m.%Y", {"2015-05-17", ""});
}

TEST_CASE("a format that is neither known nor a pattern is an error that names it",
          "[tools][time]") {
  const Result<TimeFormat> format = TimeFormat::parse("rfc822");
  REQUIRE_FALSE(format);
  CHECK(format.error().detail.find("'rfc822'") != std::string::npos);
}

TEST_CASE("numbers in JSON: unix rounds to the millisecond, text formats refuse them",
          "[tools][time]") {
  const Result<TimeFormat> seconds = TimeFormat::parse("unix");
  CHECK(seconds->from_double(1431857103.123) == 1'431'857'103'123);
  CHECK(seconds->from_integer(1431857103) == 1'431'857'103'000);
  CHECK_FALSE(seconds->from_integer(INT64_MAX));
  CHECK_FALSE(seconds->from_double(1e300));
  const Result<TimeFormat> text = TimeFormat::parse("iso8601");
  CHECK_FALSE(text->from_integer(0));
}
