// Places beside figures that redis-server 7.0.15 gave, and searches beside a walk over all members.
#include "engine/types/geo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

std::vector<std::string> members_in(const ObjectReader& set, const GeoShape& shape) {
  std::vector<std::string> found;
  each_in_shape(set, shape, [&](const GeoMatch& match) {
    found.emplace_back(match.member);
    return true;
  });
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST_CASE("geo: scores, points, distances and texts of known places", "[types][geo]") {
  const GeoPoint palermo{13.361389, 38.115556};
  const GeoPoint catania{15.087269, 37.502669};
  CHECK(geo_score_of(palermo) == 3479099956230698.0);
  CHECK(geo_score_of(catania) == 3479447370796909.0);
  const GeoPoint back = geo_point_of(3479099956230698.0);
  CHECK(back.longitude == 13.36138933897018433);
  CHECK(back.latitude == 38.11555639549629859);
  const double metres = geo_distance(back, geo_point_of(3479447370796909.0));
  CHECK(std::fabs(metres - 166274.1516) < 0.0001);
  // Along a meridian redis-server has a formula of its own.
  const GeoPoint south = geo_point_of(geo_score_of({0, -84.9}));
  const GeoPoint north = geo_point_of(geo_score_of({0, 66.5}));
  CHECK(geo_distance(south, north) / 1'000 == 16839.661818414163);
  CHECK(geo_text_of(3479099956230698.0) == "sqc8b49rny0");
  CHECK(geo_text_of(geo_score_of({0, 0})) == "s0000000000");
}

TEST_CASE("geo: the map ends where it ends", "[types][geo]") {
  CHECK(is_on_map({180, 85.05112878}));
  CHECK(is_on_map({-180, -85.05112878}));
  CHECK_FALSE(is_on_map({180.0000001, 0}));
  CHECK_FALSE(is_on_map({0, 85.0511288}));
  // The very edge is beyond the last square, and still comes back as the edge.
  const GeoPoint edge = geo_point_of(geo_score_of({180, 85.05112878}));
  CHECK(edge.longitude == 180);
  CHECK(edge.latitude == 85.05112878);
}

TEST_CASE("geo: any score is some point on the map", "[types][geo]") {
  for (const double score :
       {-1.0, -0.5, 1e300, -1e300, 9223372036854775808.0, 4503599627370496.0,
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    INFO(score);
    CHECK(is_on_map(geo_point_of(score)));
    CHECK(geo_text_of(score).size() == 11);
  }
}

TEST_CASE("geo: circles and boxes find what a walk over all members finds", "[types][geo]") {
  const std::uint64_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>{low, high}(random);
  };
  ObjectEdit set{Kind::sorted_set};
  for (int i = 0; i < 2'000; ++i) {
    // Half of them close together, so that small shapes find some.
    const bool is_near = i % 2 == 0;
    const GeoPoint point{is_near ? between(9.5, 10.5) : between(-180, 180),
                         is_near ? between(50.5, 51.5) : between(-85, 85)};
    add_member(set, geo_score_of(point), std::to_string(i), {});
  }
  for (int round = 0; round < 200; ++round) {
    const bool is_near = round % 2 == 0;
    GeoShape shape{.center = {is_near ? between(9, 11) : between(-150, 150),
                              is_near ? between(50, 52) : between(-60, 60)},
                   .is_box = round % 4 < 2,
                   .unit_metres = 1'000};
    // Shapes that reach over the ends of the map are cut off there, as in redis-server.
    shape.radius = is_near ? between(0, 40) : between(0, 1'200);
    shape.width = 2 * shape.radius;
    shape.height = between(0, shape.width);
    std::vector<std::string> expected;
    each_scored(set, {0, set.size()}, Direction::up, [&](const Scored& each) {
      GeoMatch match{.score = each.score, .member = each.member};
      if (is_in_shape(shape, match)) expected.emplace_back(each.member);
      return true;
    });
    std::sort(expected.begin(), expected.end());
    CHECK(members_in(set, shape) == expected);
  }
}

TEST_CASE("geo: a search of any shape ends, and looks at nine squares at most", "[types][geo]") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double length : {0.0, 5e-324, 1.0, 1e7, 1e8, 1e300, infinity}) {
    for (const double latitude : {-85.05112878, -66.5, 0.0, 80.5, 85.05112878}) {
      for (const double longitude : {-180.0, 0.0, 180.0}) {
        GeoShape shape{.center = {longitude, latitude}, .radius = length};
        CHECK(squares_of(shape).size() <= 9);
        shape.is_box = true;
        shape.width = shape.height = length;
        CHECK_FALSE(squares_of(shape).empty());
      }
    }
  }
}

}  // namespace semel::engine
