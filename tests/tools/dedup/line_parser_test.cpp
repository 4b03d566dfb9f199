// Vocabulary: line, field (split by blanks or a delimiter), pointer (into JSON), key (what is
// compared), buffer (where composed keys are written).
#include "tools/semel/records/line_parser.hpp"

#include "tests/support/catch.hpp"

#include "tools/semel/shared/units.hpp"

using semel::Bytes;
using semel::Result;
using namespace semel::tool;

namespace {

struct Parsed {
  LineError error = LineError::none;
  std::string key;
  std::optional<std::int64_t> unix_ms;
  std::string explanation;
};

Parsed parse(const LineRule& rule, Bytes line) {
  LineParser parser{rule};
  const auto buffer = std::make_unique<char[]>(semel::limits::key_bytes_max);
  ParsedLine parsed;
  Parsed result;
  result.error = parser.parse(line, buffer.get(), parsed);
  result.explanation = parser.explanation();
  if (result.error == LineError::none) {
    result.key = std::string{parsed.key};
    result.unix_ms = parsed.unix_ms;
  }
  return result;
}

LineRule fields(std::vector<unsigned> numbers, std::optional<char> delimiter = {}) {
  LineRule rule;
  rule.key_fields = std::move(numbers);
  rule.delimiter = delimiter;
  return rule;
}

LineRule json(std::vector<std::string> pointers) {
  LineRule rule;
  rule.key_pointers = std::move(pointers);
  return rule;
}

}  // namespace

TEST_CASE("fields: blanks and tabs split as in awk, leading ones are skipped", "[tools][key]") {
  CHECK(parse(fields({1}), "a b c").key == "a");
  CHECK(parse(fields({3}), "  a \t b\tc  ").key == "c");
  CHECK(parse(fields({3, 1}), "a b c").key == "c a");
  CHECK(parse(fields({2}), "a b\r").key == "b\r");
}

TEST_CASE("fields: a delimiter splits at each occurrence, fields may be empty", "[tools][key]") {
  CHECK(parse(fields({2}, ','), "a,b c,d").key == "b c");
  CHECK(parse(fields({1, 3}, ','), "a,,c").key == "a,c");
  CHECK(parse(fields({1, 2}, ','), "a,").key == "a,");
  CHECK(parse(fields({2}, ','), "a,,c").key == parse(LineRule{}, "").key);
}

TEST_CASE("fields: a missing field is reported with its number", "[tools][key]") {
  const Parsed parsed = parse(fields({1, 7}), "a b c");
  CHECK(parsed.error == LineError::missing_key);
  CHECK(parsed.explanation == "no field 7: the line has 3");
  LineRule rule = fields({1, 7});
  rule.missing_is_key = true;
  CHECK(parse(rule, "a b c").key == "a ");
}

TEST_CASE("whole line: the empty line has a key that no other line has", "[tools][key]") {
  CHECK(parse(LineRule{}, "").key == "\n");
  CHECK(parse(LineRule{}, " ").key == " ");
}

TEST_CASE("keys: the limit of bytes is kept at n and at n + 1", "[tools][key]") {
  const std::string longest(semel::limits::key_bytes_max, 'x');
  CHECK(parse(LineRule{}, longest).key == longest);
  CHECK(parse(LineRule{}, longest + "x").error == LineError::key_too_long);
  CHECK(parse(fields({1}), longest).error == LineError::none);
  CHECK(parse(fields({1}), longest + "x").error == LineError::key_too_long);
  const std::string with_b = longest.substr(2) + " b";
  CHECK(parse(fields({1, 2}), with_b).key == with_b);
  const Parsed parsed = parse(fields({1, 2}), "x" + with_b);
  CHECK(parsed.error == LineError::key_too_long);
  CHECK(parsed.explanation == "the key has 65537 bytes, the limit of a key is 65536");
}

TEST_CASE("json: values of different types or places never share a key", "[tools][json]") {
  const LineRule rule = json({"/a", "/b"});
  const std::vector<const char*> different = {R"({"a":1,"b":2})",
                                              R"({"a":"1","b":2})",
                                              R"({"a":2,"b":1})",
                                              R"({"a":"","b":"xy"})",
                                              R"({"a":"x","b":"y"})",
                                              R"({"a":true,"b":false})",
                                              R"({"a":[1],"b":2})",
                                              R"({"a":[[1]],"b":2})",
                                              R"({"a":{"k":1},"b":2})",
                                              R"({"a":1.5,"b":2})",
                                              R"({"a":18446744073709551615,"b":2})"};
  for (const char* one : different) {
    for (const char* other : different) {
      INFO(one << " and " << other);
      CHECK((parse(rule, one).key == parse(rule, other).key) == (one == other));
    }
  }
}

TEST_CASE("json: equal values share a key however they are written", "[tools][json]") {
  const LineRule rule = json({"/a"});
  CHECK(parse(rule, R"({"a":1})").key == parse(rule, R"( { "x":0, "a" : 1.0e0 } )").key);
  CHECK(parse(rule, R"({"a":"\u0041"})").key == parse(rule, R"({"a":"A"})").key);
  CHECK(parse(rule, R"({"a":{"x":1,"y":2}})").key == parse(rule, R"({"a":{"y":2,"x":1}})").key);
  CHECK(parse(json({"/a/1/b"}), R"({"a":[0,{"b":5}]})").error == LineError::none);
  CHECK(parse(json({"/a~1b"}), R"({"a/b":5})").error == LineError::none);
}

TEST_CASE("json: null and nothing are missing, broken lines and huge numbers are errors",
          "[tools][json]") {
  CHECK(parse(json({"/a"}), R"({"a":null})").error == LineError::missing_key);
  const Parsed missing = parse(json({"/a/b"}), R"({"a":1})");
  CHECK(missing.error == LineError::missing_key);
  CHECK(missing.explanation == "no value at JSON pointer '/a/b'");
  CHECK(parse(json({"/a"}), R"({"a":1)").error == LineError::bad_json);
  CHECK(parse(json({"/a"}), "").error == LineError::bad_json);
  CHECK(parse(json({"/a"}), R"({"a":1} x)").error == LineError::bad_json);
  // Of an exponent beyond 32 bits Boost 1.81 makes an error, and 1.83 infinity.
  const LineError huge = parse(json({"/a"}), R"({"a":1e1000000000000000000})").error;
  CHECK((huge == LineError::bad_json || huge == LineError::key_inexact));
  CHECK(parse(json({"/a"}), R"({"a":1e17,"a":1e17})").error == LineError::key_inexact);
  CHECK(parse(json({"/a"}), R"({"a":36893488147419103232})").error == LineError::none);
  CHECK(parse(json({"/a"}), R"({"a":9007199254740992.0})").error == LineError::none);
  CHECK(parse(json({"/a"}), R"({"a":9007199254740991.0})").error == LineError::none);
}

TEST_CASE("json pointers: only the two escapes are taken", "[tools][json]") {
  CHECK(is_json_pointer(""));
  CHECK(is_json_pointer("/a~0b/~1"));
  CHECK_FALSE(is_json_pointer("a"));
  CHECK_FALSE(is_json_pointer("/a~"));
  CHECK_FALSE(is_json_pointer("/a~2"));
}

TEST_CASE("time: it begins at its field and may go on beyond it", "[tools][key]") {
  LineRule rule = fields({1});
  rule.time_field = 4;
  rule.time_format = *TimeFormat::parse("apache");
  const Parsed parsed = parse(rule, "1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET /\"");
  CHECK(parsed.unix_ms == 1'431'857'103'000);
  CHECK(parse(rule, "1.2.3.4 - - [17/May/2015:10:05:03 +0000]x").error == LineError::bad_time);
  CHECK(parse(rule, "1.2.3.4 - -").error == LineError::missing_time);
  rule.missing_is_key = true;
  CHECK_FALSE(parse(rule, "1.2.3.4 - -").unix_ms);
}

TEST_CASE("time: in JSON it is a number or the whole of a text", "[tools][json]") {
  LineRule rule = json({"/id"});
  rule.time_pointer = "/ts";
  rule.time_format = *TimeFormat::parse("unix_ms");
  CHECK(parse(rule, R"({"id":1,"ts":5})").unix_ms == 5);
  CHECK(parse(rule, R"({"id":1,"ts":"5"})").unix_ms == 5);
  CHECK(parse(rule, R"({"id":1,"ts":"5x"})").error == LineError::bad_time);
  CHECK(parse(rule, R"({"id":1,"ts":[]})").error == LineError::bad_time);
  CHECK(parse(rule, R"({"id":1})").error == LineError::missing_time);
}

TEST_CASE("windows and sizes: units, ends of the range, and errors that name the value",
          "[tools][units]") {
  CHECK(*parse_window("250ms") == semel::Millis{250});
  CHECK(*parse_window("24h") == semel::Millis{86'400'000});
  CHECK(*parse_window("36600d") == semel::limits::ttl_max);
  for (const char* text : {"", "h", "24", "0s", "-1s", "1.5h", "36601d", "1w", "1h ",
                           "99999999999999999999s", "18446744073709551615d"}) {
    INFO(text);
    const Result<semel::Millis> window = parse_window(text);
    REQUIRE_FALSE(window);
    CHECK(window.error().detail.find(std::string{"'"} + text + "'") != std::string::npos);
  }
  CHECK(*parse_memory("4GiB") == std::size_t{4} << 30);
  CHECK(*parse_memory("4194304") == semel::limits::memory_bytes_min);
  CHECK(*parse_memory("5MB") == 5'000'000);
  CHECK_FALSE(parse_memory("4194303").ok());
  CHECK_FALSE(parse_memory("257GiB").ok());
  CHECK_FALSE(parse_memory("4 GiB").ok());
  CHECK(format_count(1'234'567) == "1,234,567");
  CHECK(format_count(999) == "999");
  CHECK(format_bytes(1536) == "1.50 KiB");
}
