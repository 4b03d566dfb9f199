// Keys and fingerprints: no two lists of fields, scopes or sets of values may give one.
#include "semel/patterns/keys.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

using namespace semel;

namespace {

using Texts = std::vector<std::string>;

std::string key_of(const Texts& fields) {
  return composite_key(std::vector<Bytes>{fields.begin(), fields.end()});
}

/// Few different bytes, and those that have a meaning, so that mistakes meet.
std::string random_text(std::mt19937_64& random, std::size_t longest) {
  constexpr Bytes letters{"|\\:{}%/ea\0", 10};
  std::string text(random() % (longest + 1), ' ');
  for (char& c : text) c = letters[random() % letters.size()];
  return text;
}

Texts random_texts(std::mt19937_64& random) {
  Texts fields(random() % 5);
  for (std::string& field : fields) field = random_text(random, 3);
  return fields;
}

Error error_of(Bytes format, std::initializer_list<KeyField> fields) {
  const auto key = format_key(format, fields);
  REQUIRE_FALSE(key.has_value());
  return key.error();
}

std::string hex_of(const Fingerprint& fingerprint) {
  std::string hex;
  for (const std::uint8_t byte : fingerprint.digest) {
    hex += "0123456789abcdef"[byte >> 4U];
    hex += "0123456789abcdef"[byte & 15U];
  }
  return hex;
}

}  // namespace

TEST_CASE("keys: joined fields are readable and keep their borders", "[patterns][keys]") {
  CHECK(composite_key({"orders", "4711"}) == "orders|4711");
  CHECK(composite_key({"a|b", "c"}) == "a\\|b|c");
  CHECK(composite_key({"a", "b|c"}) == "a|b\\|c");
  CHECK(composite_key({"a\\", "b"}) == "a\\\\|b");
  CHECK(composite_key({"a", ""}) == "a|");
  CHECK(composite_key({"", "a"}) == "|a");
  CHECK(composite_key({"", ""}) == "|");
  CHECK(composite_key({""}) == "\\e");
  CHECK(composite_key({"\\e"}) == "\\\\e");
  CHECK(composite_key(std::span<const Bytes>{}).empty());
}

TEST_CASE("keys: split gives back any fields, and no two lists of fields share a key",
          "[patterns][keys]") {
  std::mt19937_64 random{Catch::rngSeed()};
  std::map<std::string, Texts> seen;
  for (int round = 0; round < 20'000; ++round) {
    const Texts fields = random_texts(random);
    const std::string key = key_of(fields);
    const auto split = split_composite_key(key);
    REQUIRE(split.has_value());
    REQUIRE(*split == fields);
    const auto [other, is_new] = seen.try_emplace(key, fields);
    REQUIRE((is_new || other->second == fields));
  }
  CHECK(seen.size() > 1'000);
}

TEST_CASE("keys: what split takes is exactly what composite_key gives", "[patterns][keys]") {
  std::mt19937_64 random{Catch::rngSeed()};
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = random_text(random, 6);
    const auto split = split_composite_key(text);
    if (split) {
      REQUIRE(key_of(*split) == text);
    } else {
      REQUIRE(split.error().code == ErrorCode::syntax);
      ++refused;
    }
  }
  CHECK(refused > 1'000);
  CHECK_THAT(split_composite_key("ab\\x").error().message(), Catch::Contains("position 2"));
  CHECK_THAT(split_composite_key("a\\").error().message(), Catch::Contains("position 1"));
}

TEST_CASE("keys: an id is another one in every scope", "[patterns][keys]") {
  CHECK(*scoped_key({.tenant = "acme", .user = "u7"}, "order-1") == "acme|u7|order-1");
  CHECK(*scoped_key({.tenant = "acme"}, "order-1") == "acme||order-1");
  CHECK(*scoped_key({.user = "acme"}, "order-1") == "|acme|order-1");
  CHECK(*scoped_key({}, "order-1") == "||order-1");
  CHECK(*scoped_key({}, "acme|u7|order-1") == "||acme\\|u7\\|order-1");

  std::mt19937_64 random{Catch::rngSeed()};
  std::map<std::string, Texts> seen;
  for (int round = 0; round < 10'000; ++round) {
    const Texts parts{random_text(random, 2), random_text(random, 2), "i" + random_text(random, 2)};
    const auto key = scoped_key({.tenant = parts[0], .user = parts[1]}, parts[2]);
    const auto [other, is_new] = seen.try_emplace(*key, parts);
    REQUIRE((is_new || other->second == parts));
  }
}

TEST_CASE("keys: what a scope needs and what every id needs is named when missing",
          "[patterns][keys]") {
  const auto refused = [](const Scope& scope, Bytes id) {
    const auto key = scoped_key(scope, id);
    REQUIRE_FALSE(key.has_value());
    CHECK(key.error().code == ErrorCode::key_empty);
    return key.error().detail;
  };
  CHECK_THAT(refused({.user = "u", .needs_tenant = true}, "i"), Catch::Contains("tenant"));
  CHECK_THAT(refused({.tenant = "t", .needs_user = true}, "i"), Catch::Contains("user"));
  CHECK_THAT(refused({.tenant = "t", .user = "u"}, ""), Catch::Contains("id"));
  CHECK(scoped_key({.tenant = "t", .user = "u", .needs_tenant = true, .needs_user = true}, "i"));
}

TEST_CASE("keys: a format puts values in their places and disarms what they hold",
          "[patterns][keys]") {
  CHECK(*format_key("order:{tenant}:{id}", {{"tenant", "acme"}, {"id", "4711"}}) ==
        "order:acme:4711");
  CHECK(*format_key("{id}", {{"id", "a:b|c{d}e\\f%g h/i"}}) == "a%3Ab%7Cc%7Bd%7De%5Cf%25g%20h%2Fi");
  CHECK(*format_key("{id}", {{"id", "M\u00fcller@host.example_1-2~\x01"}}) ==
        "M\u00fcller@host.example_1-2~%01");
  CHECK(*format_key("{{{id}}}", {{"id", "7"}}) == "{7}");
  CHECK(*format_key("a%b{{}}", {}) == "a%b{}");
  CHECK(*format_key("{a}:{a}", {{"a", "1"}, {"b", "left out"}}) == "1:1");
}

TEST_CASE("keys: a format that cannot be filled in is refused with name and position",
          "[patterns][keys]") {
  CHECK(error_of("", {}).code == ErrorCode::key_empty);
  CHECK(error_of("k:{id}", {{"name", "x"}}).message() ==
        "an option is out of its range: there is no field 'id' at position 2");
  CHECK(error_of("k:{id}", {{"id", "x"}, {"id", "y"}}).message() ==
        "an option is out of its range: there are two fields 'id' at position 2");
  CHECK(error_of("k:{id}", {{"id", ""}}).message() ==
        "key is empty: the value of 'id' at position 2");
  CHECK(error_of("k:{}", {}).message() == "syntax error: a name is missing at position 2");
  CHECK(error_of("k:{id", {{"id", "x"}}).message() ==
        "syntax error: '{' without '}' at position 2");
  CHECK(error_of("k:{i{d}", {{"id", "x"}}).code == ErrorCode::syntax);
  CHECK(error_of("k:{", {}).code == ErrorCode::syntax);
  CHECK(error_of("ab}", {}).message() == "syntax error: '}' without '{' at position 2");
  for (const Bytes format : {"{a}{b}", "{a}x{b}", "{a}-{b}", "{a}%{b}", "{a}{a}"}) {
    const Error error = error_of(format, {{"a", "1"}, {"b", "2"}});
    CHECK(error.code == ErrorCode::syntax);
    CHECK_THAT(error.detail, Catch::Contains("is not parted"));
  }
  CHECK(format_key("{a}x:{b}", {{"a", "1"}, {"b", "2"}}));
}

TEST_CASE("keys: two sets of values never give one key of the same format", "[patterns][keys]") {
  std::mt19937_64 random{Catch::rngSeed()};
  for (const Bytes format : {"{a}:{b}", "{a}a:e{b}", "{a}{{{b}", "{a}|{b}%", "p{a}e\\%3A{b}:"}) {
    std::map<std::string, Texts> seen;
    for (int round = 0; round < 5'000; ++round) {
      const Texts values{"a" + random_text(random, 3), random_text(random, 3) + "e"};
      const auto key = format_key(format, {{"a", values[0]}, {"b", values[1]}});
      REQUIRE(key.has_value());
      const auto [other, is_new] = seen.try_emplace(*key, values);
      INFO(*key);
      REQUIRE((is_new || other->second == values));
    }
  }
}

TEST_CASE("keys: fingerprints of stored records do not change", "[patterns][keys]") {
  const Fingerprint empty = fingerprint_of(Bytes{});
  CHECK(empty.algorithm == 1);
  CHECK(hex_of(empty) == "99aa06d3014798d86001c324468d497f");  // XXH3-128 as its authors print it
  CHECK(hex_of(fingerprint_of("a")) == "a96faf705af16834e6c632b61e964e1f");
  const std::vector<KeyField> parameters{{"a", "1"}, {"b", "2"}};
  CHECK(fingerprint_of(parameters).algorithm == 5);
  CHECK(hex_of(fingerprint_of(Scope{.tenant = "t", .user = "u"}, "a")) ==
        "12818e9c674e777b09e34b4bd6b8c4ac");
  CHECK(hex_of(fingerprint_of(parameters)) == "17b231b75a371cf19882eef2079fab3b");
}

TEST_CASE("keys: fingerprints differ for scopes and payloads that are equal when concatenated",
          "[patterns][keys]") {
  std::set<std::string> seen;
  for (const auto& [tenant, user, payload] :
       std::vector<std::tuple<Bytes, Bytes, Bytes>>{{"ab", "c", "d"},
                                                    {"a", "bc", "d"},
                                                    {"a", "b", "cd"},
                                                    {"abc", "", "d"},
                                                    {"", "abc", "d"},
                                                    {"", "", "abcd"}}) {
    seen.insert(hex_of(fingerprint_of(Scope{.tenant = tenant, .user = user}, payload)));
  }
  CHECK(seen.size() == 6);
  // A payload that spells what a scope puts before it is not taken for that scope.
  const std::string spelled{"\1\0\0\0\0\0\0\0t\0\0\0\0\0\0\0\0p", 18};
  CHECK(fingerprint_of(spelled) != fingerprint_of(Scope{.tenant = "t"}, "p"));
  CHECK(fingerprint_of(Scope{}, "p") == fingerprint_of("p"));
}

TEST_CASE("keys: the order of parameters does not matter, their borders do", "[patterns][keys]") {
  std::mt19937_64 random{Catch::rngSeed()};
  std::vector<KeyField> parameters{{"amount", "10"}, {"to", "x"}, {"to", "a"}, {"", ""}, {"b", ""}};
  const Fingerprint expected = fingerprint_of(parameters);
  for (int round = 0; round < 100; ++round) {
    std::shuffle(parameters.begin(), parameters.end(), random);
    REQUIRE(fingerprint_of(parameters) == expected);
  }
  const auto of = [](std::vector<KeyField> fields) { return hex_of(fingerprint_of(fields)); };
  const std::set<std::string> seen{of({{"a", "bc"}}),
                                   of({{"ab", "c"}}),
                                   of({{"abc", ""}}),
                                   of({{"", "abc"}}),
                                   of({}),
                                   of({{"a", ""}, {"bc", ""}}),
                                   of({{"a", "b"}}),
                                   of({{"b", "a"}}),
                                   of({{"", ""}}),
                                   of({{"a", "b"}, {"a", "b"}})};
  CHECK(seen.size() == 10);
  const Scope scope{.tenant = "t"};
  CHECK(fingerprint_of(scope, parameters) != fingerprint_of(parameters));
  CHECK(fingerprint_of(Scope{}, parameters) == fingerprint_of(parameters));
}

TEST_CASE("keys: a digest makes a key of a payload of any size",
          "[patterns][keys][attack][fault-15]") {
  const std::string body(1'000'000, 'x');
  const std::string key = semel::digest_key("/transfer", body);
  CHECK(key.size() < 9 + 64);
  CHECK(key == semel::digest_key("/transfer", body));
  CHECK(key != semel::digest_key("/refund", body));
  CHECK(key != semel::digest_key("/transfer", body + "x"));
  CHECK(semel::split_composite_key(semel::digest_key("a|b", ""))->front() == "a|b");
}
