// Canonical JSON: RFC 8785 by its own examples, and what no spelling of one text may change.
#include "semel/patterns/json_key.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "patterns/json/json_number.hpp"
#include "semel/limits.hpp"

using namespace semel;

namespace {

std::string canonical(Bytes json) {
  const auto text = canonical_json(json);
  INFO(json.substr(0, 200));
  INFO((text ? "" : text.error().message()));
  REQUIRE(text.has_value());
  return *text;
}

Error refused(Bytes json, const JsonFields& fields = {}) {
  const auto text = canonical_json(json, fields);
  INFO(json.substr(0, 200));
  REQUIRE_FALSE(text.has_value());
  return text.error();
}

std::string chosen(Bytes json, std::vector<Bytes> only, std::vector<Bytes> except = {}) {
  const auto text = canonical_json(json, {.only = only, .except = except});
  REQUIRE(text.has_value());
  return *text;
}

std::string printed(double value) {
  std::string text;
  patterns::append_json_number(value, text);
  return text;
}

std::string repeated(Bytes text, std::size_t times) {
  std::string all;
  for (; times > 0; --times) all += text;
  return all;
}

/// Random JSON, spelled at random: `write` gives another spelling of one value at each call.
class RandomJson {
 public:
  explicit RandomJson(std::mt19937_64& random) : random_(random) { root_ = make(0); }
  [[nodiscard]] std::string write() {
    text_.clear();
    put(root_);
    return text_;
  }

 private:
  struct Value {
    std::string scalar{};     // empty: an array or object
    std::u16string string{};  // scalar is "s"
    bool is_object = false;
    std::vector<std::u16string> names{};
    std::vector<Value> items{};
  };

  std::u16string make_string() {
    constexpr char16_t letters[] = u"ab\n\"\\\u0001\u007f\u00e9\u20ac\ufb33\ue000";
    std::u16string string;
    for (auto left = random_() % 4; left > 0; --left) {
      if (random_() % 6 == 0) {
        string += u"\U0001f602";
      } else {
        string += letters[random_() % (std::size(letters) - 1)];
      }
    }
    return string;
  }

  Value make(int depth) {
    const auto kind = random_() % (depth < 4 ? 6 : 4);
    Value value;
    if (kind == 0) {
      value.scalar = std::array{"null", "true", "false"}[random_() % 3];
    } else if (kind == 1) {
      value.scalar = std::array{
          "0", "-0.0", "1e2", "1.50", "-7", "12345678901234567890", "1E-7"}[random_() % 7];
    } else if (kind < 4) {
      value.scalar = "s";
      value.string = make_string();
    } else {
      value.is_object = kind == 5;
      for (auto left = random_() % 5; left > 0; --left) {
        std::u16string name = make_string();
        if (std::find(value.names.begin(), value.names.end(), name) != value.names.end()) continue;
        value.names.push_back(std::move(name));
        value.items.push_back(make(depth + 1));
      }
    }
    return value;
  }

  void blank() {
    for (auto left = random_() % 3; left > 0; --left) text_ += " \t\n\r"[random_() % 4];
  }

  void put_escaped(char16_t unit) {
    char escape[8];
    std::snprintf(escape, sizeof escape, random_() % 2 == 0 ? "\\u%04x" : "\\u%04X",
                  static_cast<unsigned>(unit));
    text_ += escape;
  }

  void put_string(const std::u16string& string) {
    text_ += '"';
    for (std::size_t i = 0; i < string.size(); ++i) {
      const char16_t unit = string[i];
      const bool is_pair = unit >= 0xd800 && unit < 0xdc00;
      if (random_() % 3 == 0 || unit < 0x20 || unit == '"' || unit == '\\') {
        put_escaped(unit);
        if (is_pair) put_escaped(string[++i]);
      } else if (is_pair) {
        text_ += "\xf0\x9f\x98\x82";  // the only one that is made
        ++i;
      } else if (unit < 0x80) {
        text_ += static_cast<char>(unit);
      } else if (unit < 0x800) {
        text_ += static_cast<char>(0xc0 | (unit >> 6));
        text_ += static_cast<char>(0x80 | (unit & 0x3f));
      } else {
        text_ += static_cast<char>(0xe0 | (unit >> 12));
        text_ += static_cast<char>(0x80 | ((unit >> 6) & 0x3f));
        text_ += static_cast<char>(0x80 | (unit & 0x3f));
      }
    }
    text_ += '"';
  }

  void put(const Value& value) {
    blank();
    if (value.scalar == "s") {
      put_string(value.string);
    } else if (!value.scalar.empty()) {
      text_ += value.scalar;
    } else {
      std::vector<std::size_t> order(value.items.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      if (value.is_object) std::shuffle(order.begin(), order.end(), random_);
      text_ += value.is_object ? '{' : '[';
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (i > 0) text_ += ',';
        if (value.is_object) {
          blank();
          put_string(value.names[order[i]]);
          blank();
          text_ += ':';
        }
        put(value.items[order[i]]);
      }
      blank();
      text_ += value.is_object ? '}' : ']';
    }
    blank();
  }

  std::mt19937_64& random_;
  Value root_;
  std::string text_;
};

}  // namespace

TEST_CASE("json_key: the examples of RFC 8785", "[patterns][json]") {
  CHECK(canonical(R"([ 56, { "d": true, "10": null, "1": [ ] } ])") ==
        R"([56,{"1":[],"10":null,"d":true}])");
  CHECK(canonical(R"({"peach": "This sorting order", "péché": "is wrong according to French",
                      "pêche": "but canonicalization MUST", "sin":   "ignore locale" })") ==
        R"({"peach":"This sorting order","péché":"is wrong according to French",)"
        R"("pêche":"but canonicalization MUST","sin":"ignore locale"})");
  CHECK(canonical(R"({ "1": {"f": {"f": "hi","F": 5} ,"\n": 56.0}, "10": { }, "": "empty",
                       "a": { }, "111": [ {"e": "yes","E": "no" } ], "A": { } })") ==
        R"({"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},)"
        R"("111":[{"E":"no","e":"yes"}],"A":{},"a":{}})");
  CHECK(canonical(R"({"Unnormalized Unicode":"A\u030a"})") ==
        "{\"Unnormalized Unicode\":\"A\u030a\"}");
  CHECK(canonical(R"({"numbers": [333333333.33333329, 1E30, 4.50, 2e-3,
                                  0.000000000000000000000000001],
                      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
                      "literals": [null, true, false]})") ==
        R"({"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],)"
        R"("string":"€$\u000f\nA'B\"\\\\\"/"})");
  CHECK(canonical(R"({ "\u20ac": "Euro Sign", "\r": "Carriage Return",
                       "\u000a": "Newline", "1": "One", "\u0080": "Control\u007f",
                       "\ud83d\ude02": "Smiley",
                       "\u00f6": "Latin Small Letter O With Diaeresis",
                       "\ufb33": "Hebrew Letter Dalet With Dagesh",
                       "</script>": "Browser Challenge" })") ==
        "{\"\\n\":\"Newline\",\"\\r\":\"Carriage Return\",\"1\":\"One\","
        "\"</script>\":\"Browser Challenge\",\"\xc2\x80\":\"Control\x7f\","
        "\"\u00f6\":\"Latin Small Letter O With Diaeresis\",\"\u20ac\":\"Euro Sign\","
        "\"\U0001f602\":\"Smiley\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}");
}

TEST_CASE("json_key: the numbers of RFC 8785, appendix B", "[patterns][json]") {
  const std::vector<std::pair<std::uint64_t, std::string>> table{
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0xffefffffffffffff, "-1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0xc340000000000000, "-9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef4f, "999999999999999900000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0x41b3de4355555554, "333333333.33333325"},
      {0x41b3de4355555555, "333333333.3333333"},
      {0x41b3de4355555556, "333333333.3333334"},
      {0x41b3de4355555557, "333333333.33333343"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
      {0x43143ff3c1cb0959, "1424953923781206.2"},
  };
  for (const auto& [bits, text] : table) {
    const auto value = std::bit_cast<double>(bits);
    CHECK(printed(value) == text);
    CHECK(canonical(text) == text);
    char longer[64];
    std::snprintf(longer, sizeof longer, "%.25e", value);
    CHECK(canonical(longer) == text);
  }
}

TEST_CASE("json_key: numbers that are one double are one text, to the ends of doubles",
          "[patterns][json]") {
  CHECK(canonical("1000") == "1000");
  CHECK(canonical("1e3") == "1000");
  CHECK(canonical("1000.000") == "1000");
  CHECK(canonical("0.1e4") == "1000");
  CHECK(canonical("-0") == "0");
  CHECK(canonical("-0.0e5") == "0");
  CHECK(canonical("9007199254740993") == "9007199254740992");
  CHECK(canonical("18446744073709551615") == "18446744073709552000");
  CHECK(canonical("-9223372036854775809") == "-9223372036854776000");
  CHECK(canonical("100000000000000000000") == "100000000000000000000");
  CHECK(canonical("1000000000000000000000") == "1e+21");
  CHECK(canonical("2.5e-324") == "5e-324");
  CHECK(canonical("2.4e-324") == "0");
  CHECK(canonical("-1e-400") == "0");
  CHECK(canonical("0." + std::string(400, '0') + "1") == "0");
  CHECK(canonical("1.7976931348623158e308") == "1.7976931348623157e+308");
  CHECK(refused("1.7976931348623159e308").code == ErrorCode::syntax);
  CHECK_THAT(refused("[1,-1e400]").detail, Catch::Contains("-1e400"));
  CHECK(refused("1" + std::string(400, '0')).code == ErrorCode::syntax);
  CHECK(canonical("1" + std::string(400, '0') + "e-400") == "1");
  CHECK(refused("1e99999999999").code == ErrorCode::syntax);
}

TEST_CASE("json_key: any double is printed so that it is read back", "[patterns][json]") {
  std::mt19937_64 random{Catch::rngSeed()};
  for (int round = 0; round < 200'000; ++round) {
    // Half of them near 1, where all the forms without an exponent are.
    std::uint64_t bits = random();
    if (round % 2 == 0)
      bits = (bits & ~(std::uint64_t{0x7ff} << 52)) | ((985 + random() % 120) << 52);
    const auto value = std::bit_cast<double>(bits);
    if (!std::isfinite(value)) continue;
    const std::string text = printed(value);
    INFO(text);
    REQUIRE(std::strtod(text.c_str(), nullptr) == value);
    REQUIRE(patterns::read_json_number(text) == value);
    const bool has_exponent = text.find('e') != std::string::npos;
    REQUIRE(has_exponent == (std::fabs(value) >= 1e21 || std::fabs(value) < 1e-6));
  }
}

TEST_CASE("json_key: text that is not JSON, or ambiguous, is refused", "[patterns][json]") {
  for (const Bytes json : {Bytes{},
                           Bytes{" "},
                           Bytes{"{"},
                           Bytes{"[1,]"},
                           Bytes{"{\"a\":1,}"},
                           Bytes{"1 2"},
                           Bytes{"01"},
                           Bytes{"+1"},
                           Bytes{".5"},
                           Bytes{"1."},
                           Bytes{"NaN"},
                           Bytes{"nul"},
                           Bytes{"'a'"},
                           Bytes{"\"a"},
                           Bytes{"\"\n\""},
                           Bytes{"\"\\x\""},
                           Bytes{"[1]//"},
                           Bytes{"{a:1}"},
                           Bytes{"\xef\xbb\xbf{}"},
                           Bytes{"\"\\ud800\""},
                           Bytes{"\"\\udc00\""},
                           Bytes{"\"\\ud800\\u0041\""},
                           Bytes{"\"\xed\xa0\x80\""},
                           Bytes{"\"\xc0\x80\""},
                           Bytes{"\"\xf4\x90\x80\x80\""},
                           Bytes{"\"\xff\""},
                           Bytes{"\"\xe2\x82\""},
                           Bytes{"{\"\x80\":1}"},
                           Bytes{"\0", 1},
                           Bytes{"1\0", 2}}) {
    CHECK(refused(json).code == ErrorCode::syntax);
  }
  CHECK(refused(R"({"a":1,"b":2,"a":1})").message() == "syntax error: the name 'a' is there twice");
  CHECK(refused(R"([{"x":{"\u0061":1,"a":1}}])").code == ErrorCode::syntax);
  CHECK(canonical(R"([{"a":1},{"a":{"a":1}}])") == R"([{"a":1},{"a":{"a":1}}])");
  CHECK_THAT(refused("[1,x]").detail, Catch::Contains("position 3"));
  CHECK(canonical("\"\\u0000\\ud7ff\\ue000\x7f\"") == "\"\\u0000\ud7ff\ue000\x7f\"");
}

TEST_CASE("json_key: the bounds of one text hold at n and at n + 1", "[patterns][json][limits]") {
  const auto nested = [](std::size_t depth) { return repeated("[", depth) + repeated("]", depth); };
  CHECK(canonical(nested(limits::json_depth_max)) == nested(limits::json_depth_max));
  CHECK(refused(nested(limits::json_depth_max + 1)).code == ErrorCode::value_too_long);

  const auto ones = [](std::size_t count) { return "[" + repeated("1,", count - 1) + "1]"; };
  CHECK(canonical(ones(limits::json_values_max - 1)).size() == 2 * limits::json_values_max - 1);
  CHECK(refused(ones(limits::json_values_max)).code == ErrorCode::value_too_long);

  const std::string text = "\"" + std::string(limits::json_bytes_max - 2, 'x') + "\"";
  CHECK(canonical(text) == text);
  CHECK(refused(text + " ").code == ErrorCode::value_too_long);
}

TEST_CASE("json_key: no spelling changes the canonical text, and it is its own",
          "[patterns][json]") {
  std::mt19937_64 random{Catch::rngSeed()};
  std::size_t spellings = 0;
  for (int round = 0; round < 2'000; ++round) {
    RandomJson json{random};
    const std::string first = json.write();
    const std::string expected = canonical(first);
    REQUIRE(canonical(expected) == expected);
    for (int again = 0; again < 4; ++again) {
      const std::string other = json.write();
      INFO(other);
      REQUIRE(canonical(other) == expected);
      if (other != first) ++spellings;
    }
  }
  CHECK(spellings > 1'000);
}

TEST_CASE("json_key: of damaged texts each is refused with a reason, or has a canonical one",
          "[patterns][json]") {
  std::mt19937_64 random{Catch::rngSeed()};
  int taken = 0;
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = RandomJson{random}.write();
    for (auto left = 1 + random() % 3; left > 0 && !text.empty(); --left) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text[at] = "{}[],:\"\\eE+-.0u"[random() % 15];
          break;
        case 2:
          text.erase(at, 1 + random() % 3);
          break;
        default:
          text.resize(at);
      }
    }
    const auto canonical = canonical_json(text);
    INFO(text);
    if (canonical) {
      REQUIRE(*canonical_json(*canonical) == *canonical);
      ++taken;
    } else {
      REQUIRE(canonical.error().code == ErrorCode::syntax);
      REQUIRE_FALSE(canonical.error().detail.empty());
      ++refused;
    }
  }
  CHECK(taken > 100);
  CHECK(refused > 1'000);
}

TEST_CASE("json_key: only and except choose members by their pointers", "[patterns][json]") {
  constexpr Bytes order = R"({"id":7,"sent":"now","lines":[{"sku":"a","n":1},{"sku":"b","n":2}],
                              "to":{"city":"Rome","zip":null},"a/b":1,"m~n":2,"":3})";
  CHECK(chosen(order, {"/id", "/to/city"}) == R"({"id":7,"to":{"city":"Rome"}})");
  CHECK(chosen(order, {"/to"}) == R"({"to":{"city":"Rome","zip":null}})");
  CHECK(chosen(order, {"/to"}, {"/to/city"}) == R"({"to":{"zip":null}})");
  CHECK(chosen(order, {"/to", "/to/city"}) == R"({"to":{"city":"Rome","zip":null}})");
  CHECK(chosen(order, {"/a~1b", "/m~0n", "/"}) == R"({"":3,"a/b":1,"m~n":2})");
  CHECK(chosen(order, {"/lines/1/sku"}) == R"({"lines":[null,{"sku":"b"}]})");
  CHECK(chosen(order, {"/lines/0/sku"}) == R"({"lines":[{"sku":"a"}]})");
  CHECK(chosen(order, {"/id"}, {"/id"}) == "{}");
  CHECK(chosen(order, {"/none", "/id/x", "/lines/2", "/lines/00", "/lines/-", "/lines/"}) == "{}");
  CHECK(chosen(order, {""}) == canonical(order));
  CHECK(chosen(order, {}, {"/lines", "/sent", "/a~1b", "/m~0n", "/", "/none"}) ==
        R"({"id":7,"to":{"city":"Rome","zip":null}})");
  CHECK(chosen("[1,2,3]", {}, {"/1"}) == "[1,null,3]");
  CHECK(chosen("[1,2,3]", {}, {"/2"}) == "[1,2]");
  CHECK(chosen("[1,2,3]", {}, {"/0", "/1", "/2"}) == "[]");
  CHECK(chosen("7", {""}) == "7");

  const std::vector<Bytes> root{""};
  const std::vector<Bytes> id{"/id"};
  CHECK(refused(order, {.except = root}).code == ErrorCode::bad_option);
  CHECK(refused("7", {.only = id}).code == ErrorCode::bad_option);
  for (const Bytes wrong : {"id", "/a~", "/a~2", "#/id"}) {
    const std::vector<Bytes> pointers{wrong};
    CHECK_THAT(refused(order, {.only = pointers}).detail, Catch::Contains(std::string{wrong}));
    CHECK(refused(order, {.except = pointers}).code == ErrorCode::bad_option);
  }
}

TEST_CASE("json_key: elements in other places are not the same choice", "[patterns][json]") {
  const std::vector<Bytes> only{"/a/0/x", "/a/1/x"};
  const JsonFields fields{.only = only};
  CHECK(*canonical_json(R"({"a":[{"x":1},{}]})", fields) !=
        *canonical_json(R"({"a":[{},{"x":1}]})", fields));
}

TEST_CASE("json_key: fingerprints differ by the meaning of the text, and by scope",
          "[patterns][json]") {
  const auto one = fingerprint_json(R"({"a":1,"b":[1.0,"\u0041"]})");
  REQUIRE(one.has_value());
  CHECK(one->algorithm == 6);
  CHECK(*one == *fingerprint_json(R"( {"b":[1,"A"], "a":1e0} )"));
  CHECK(*one != *fingerprint_json(R"({"a":1,"b":["A",1]})"));
  CHECK(one->digest == fingerprint_of(R"({"a":1,"b":[1,"A"]})").digest);
  const std::vector<Bytes> except{"/b"};
  CHECK(*fingerprint_json(R"({"a":1,"b":2})", {.except = except}) ==
        *fingerprint_json(R"({"a":1,"b":3})", {.except = except}));
  const Scope acme{.tenant = "acme"};
  CHECK(*fingerprint_json(acme, "{}") != *fingerprint_json("{}"));
  CHECK(fingerprint_json(acme, "{}")->algorithm == 6);
  CHECK(*fingerprint_json(Scope{}, "{}") == *fingerprint_json("{}"));
  CHECK(fingerprint_json("{").error().code == ErrorCode::syntax);
}

TEST_CASE("json_key: a member gives the text of a key, a missing one an error with its name",
          "[patterns][json]") {
  constexpr Bytes order = R"({"order":{"id":"A-\u0037","n":1e2,"paid":true,"tags":["x", {"b":1,
                              "a":2}],"none":null,"empty":""}})";
  CHECK(*json_at(order, "/order/id") == "A-7");
  CHECK(*json_at(order, "/order/n") == "100");
  CHECK(*json_at(order, "/order/paid") == "true");
  CHECK(*json_at(order, "/order/empty") == "");
  CHECK(*json_at(order, "/order/tags") == R"(["x",{"a":2,"b":1}])");
  CHECK(*json_at(order, "/order/tags/0") == "x");
  CHECK(*json_at("\"x\"", "") == "x");
  for (const Bytes pointer : {"/order/none", "/order/nothing", "/order/tags/2", "/order/id/0"}) {
    const auto missing = json_at(order, pointer);
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().code == ErrorCode::no_such_key);
    CHECK_THAT(missing.error().detail, Catch::Contains(std::string{pointer}));
  }
  CHECK(json_at(order, "order").error().code == ErrorCode::bad_option);
  CHECK(json_at("[", "/0").error().code == ErrorCode::syntax);
}
