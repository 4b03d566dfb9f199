// Results as JSON text.
#include "semel/patterns/json_codec.hpp"

#include <boost/describe/class.hpp>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "semel/patterns/once.hpp"
#include "tests/patterns/process.hpp"
#include "tests/proofs/random.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

struct Bill {
  std::uint64_t number = 0;
  std::string text;
  std::vector<double> parts;
  std::optional<bool> is_paid;
  bool operator==(const Bill&) const = default;
};
BOOST_DESCRIBE_STRUCT(Bill, (), (number, text, parts, is_paid))

/// Whose conversion refuses what is below zero.
struct Grade {
  int points = 0;
};
void tag_invoke(const boost::json::value_from_tag&, boost::json::value& to, const Grade& from) {
  if (from.points < 0) throw std::range_error{"a grade below zero"};
  to = from.points;
}
Grade tag_invoke(const boost::json::value_to_tag<Grade>&, const boost::json::value& from) {
  const Grade grade{boost::json::value_to<int>(from)};
  if (grade.points < 0) throw std::range_error{"a grade below zero"};
  return grade;
}

}  // namespace
}  // namespace semel::tests

template <>
struct semel::Codec<semel::tests::Bill> : semel::JsonCodec<semel::tests::Bill> {};
template <>
struct semel::Codec<semel::tests::Grade> : semel::JsonCodec<semel::tests::Grade> {};

namespace semel::tests {

TEST_CASE("json codec: a result is stored as text and read again", "[patterns][codecs]") {
  auto engine = *Engine::open();
  auto orders = *engine->claims("orders", policies::call);
  const Bill bill{7, "paid \"in full\" \xE2\x82\xAC", {0.1, -2.5e300}, true};
  int runs = 0;
  const auto run = [&] {
    ++runs;
    return bill;
  };
  CHECK(*once(orders, "k", run).value == bill);
  CHECK(*once(orders, "k", run).value == bill);
  CHECK(runs == 1);
  CHECK(orders.get("k")->result ==
        "{\"number\":7,\"text\":\"paid \\\"in full\\\" \xE2\x82\xAC\",\"parts\":[1E-1,-2.5E300],"
        "\"is_paid\":true}");
}

TEST_CASE("json codec: what is not of the type is none", "[patterns][codecs]") {
  using Bills = Codec<Bill>;
  const std::string whole = Bills::encode({1, "x", {1.5}, std::nullopt});
  REQUIRE(Bills::decode(whole) == Bill{1, "x", {1.5}, std::nullopt});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(Bills::decode(Bytes{whole}.substr(0, size)));
  }
  for (const char* other : {"", "null", "[]", "7", "{}", "{\"number\":1}",
                            "{\"number\":-1,\"text\":\"\",\"parts\":[],"
                            "\"is_paid\":null}",
                            "{\"number\":1e30,\"text\":\"\",\"parts\":[],\"is_paid\":null}",
                            "{\"number\":1,\"text\":\"\",\"parts\":[1E06210],\"is_paid\":null}"}) {
    INFO(other);
    CHECK_FALSE(Bills::decode(other));
  }
  CHECK_FALSE(Bills::decode(whole + "x"));
  CHECK_FALSE(Bills::decode(std::string(100'000, '[')));
  CHECK_FALSE(Codec<Grade>::decode("-1"));
  CHECK(Codec<Grade>::decode("2")->points == 2);
}

TEST_CASE("json codec: changed text is read as a value or as none", "[patterns][codecs]") {
  const std::uint64_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  proofs::Random random{seed};
  const std::string whole = Codec<Bill>::encode({12, "text", {1, 2, 3}, false});
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = whole;
    for (std::uint64_t changes = random.between(1, 4); changes > 0; --changes) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    if (const auto read = Codec<Bill>::decode(bytes)) {
      CHECK(Codec<Bill>::decode(Codec<Bill>::encode(*read)) == read);
    }
  }
}

TEST_CASE("json codec: what could not be read again is not written", "[patterns][codecs]") {
  using Limits = std::numeric_limits<double>;
  for (const double number : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    CHECK_THROWS_AS(Codec<Bill>::encode({1, "x", {1, number}, true}), std::range_error);
  }
  const Bill wide{1, "x", {Limits::max(), Limits::lowest(), Limits::denorm_min(), 0}, true};
  CHECK(Codec<Bill>::decode(Codec<Bill>::encode(wide)) == wide);

  using Nested = JsonCodec<boost::json::value>;
  boost::json::value nested = 1;
  for (std::size_t depth = 0; depth < Nested::depth_max; ++depth) {
    nested = boost::json::array{nested};
  }
  CHECK(Nested::decode(Nested::encode(nested)) == nested);
  CHECK_THROWS_AS(Nested::encode(boost::json::object{{"k", nested}}), std::range_error);
}

TEST_CASE("json codec: work whose result cannot be written is done all the same",
          "[patterns][codecs]") {
  auto engine = *Engine::open();
  auto orders = *engine->claims("orders", policies::call);
  int runs = 0;
  const auto run = [&](int points) {
    return once(orders, "k", [&, points] {
      ++runs;
      return Grade{points};
    });
  };
  const auto first = run(-1);
  CHECK(first.value->points == -1);
  CHECK(first.error.detail.find("a grade below zero") != std::string::npos);
  static_cast<void>(run(3));
  CHECK(runs == 1);
}

}  // namespace semel::tests
