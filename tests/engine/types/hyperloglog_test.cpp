// HyperLogLogs: sparse and dense are the same registers, and damaged bytes are reported.
#include "engine/types/hyperloglog.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include "tests/support/catch.hpp"

namespace semel::tests {

using engine::HllChange;

namespace {

constexpr std::size_t always_sparse = 1'000'000;

std::string with_elements(std::size_t count, std::size_t sparse_bytes_max) {
  std::string hll = engine::empty_hyperloglog();
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(engine::add_to_hyperloglog(hll, "element " + std::to_string(i), sparse_bytes_max) !=
            HllChange::damaged);
  }
  return hll;
}

}  // namespace

TEST_CASE("hyperloglog: sparse and dense have the same registers and estimate", "[engine][hll]") {
  for (const std::size_t count : {0U, 1U, 10U, 300U, 3000U}) {
    const std::string sparse = with_elements(count, always_sparse);
    const std::string dense = with_elements(count, 0);
    INFO(count << " elements");
    CHECK_FALSE(engine::is_dense(sparse));
    CHECK(engine::is_dense(dense) == (count > 0));
    const auto registers = engine::registers_of(sparse);
    REQUIRE((registers && registers == engine::registers_of(dense)));
    const auto estimated = static_cast<double>(engine::estimate(*registers));
    // The standard error is 1.04 / sqrt(16384) = 0.81 %.
    CHECK(std::abs(estimated - static_cast<double>(count)) <= 0.04 * static_cast<double>(count));
    std::string made = sparse;
    REQUIRE(engine::make_dense(made));
    std::string other = dense;
    REQUIRE(engine::make_dense(other));
    CHECK(made.substr(16) == other.substr(16));
  }
}

TEST_CASE("hyperloglog: raising registers at random is the same in both forms", "[engine][hll]") {
  std::mt19937_64 random{Catch::rngSeed()};
  INFO("seed " << Catch::rngSeed());
  std::string sparse = engine::empty_hyperloglog();
  std::string dense = engine::empty_hyperloglog();
  REQUIRE(engine::make_dense(dense));
  for (int round = 0; round < 5'000; ++round) {
    // Close to each other, so that runs meet, at both ends.
    std::size_t index = random() % 64;
    if (random() % 2 == 0) index = engine::hll_register_count - 1 - index;
    const auto value = static_cast<std::uint8_t>(random() % 6 + 1);
    const HllChange change = engine::raise_register(sparse, index, value, always_sparse);
    REQUIRE(change == engine::raise_register(dense, index, value, always_sparse));
    REQUIRE(engine::registers_of(sparse) == engine::registers_of(dense));
  }
  CHECK_FALSE(engine::is_dense(sparse));
  CHECK(engine::raise_register(sparse, 5, 33, always_sparse) == HllChange::raised);
  CHECK(engine::is_dense(sparse));  // 33 has no sparse form
}

TEST_CASE("hyperloglog: one becomes dense when it would be longer than the limit",
          "[engine][hll]") {
  std::string hll = engine::empty_hyperloglog();
  CHECK(hll.size() == 18);
  // 0 in the middle: two bytes, one, and two.
  CHECK(engine::raise_register(hll, 8'000, 1, 21) == HllChange::raised);
  CHECK(hll.size() == 21);
  CHECK(engine::raise_register(hll, 8'000, 2, 21) == HllChange::raised);
  CHECK(hll.size() == 21);
  CHECK(engine::raise_register(hll, 4'000, 1, 23) == HllChange::raised);
  CHECK(engine::is_dense(hll));
  CHECK(hll.size() == 12'304);
}

TEST_CASE("hyperloglog: the estimate is kept until a register rises", "[engine][hll]") {
  std::string hll = with_elements(10, always_sparse);
  CHECK_FALSE(engine::kept_estimate(hll));
  engine::keep_estimate(hll, 0x0102'0304'0506'0708);
  CHECK(engine::kept_estimate(hll) == 0x0102'0304'0506'0708);
  CHECK(hll.substr(8, 8) == std::string("\x08\x07\x06\x05\x04\x03\x02\x01", 8));
  CHECK(engine::add_to_hyperloglog(hll, "element 1", always_sparse) == HllChange::none);
  CHECK(engine::kept_estimate(hll));
  CHECK(engine::add_to_hyperloglog(hll, "another", always_sparse) == HllChange::raised);
  CHECK_FALSE(engine::kept_estimate(hll));
}

TEST_CASE("hyperloglog: any bytes are read without reading outside", "[engine][hll]") {
  std::mt19937_64 random{Catch::rngSeed()};
  INFO("seed " << Catch::rngSeed());
  const std::string whole = with_elements(200, always_sparse);
  for (int round = 0; round < 20'000; ++round) {
    std::string hll = round % 2 == 0 ? whole : engine::empty_hyperloglog();
    for (auto changes = random() % 4; changes > 0; --changes) {
      switch (random() % 4) {
        case 0:
          hll[16 + random() % (hll.size() - 16)] = static_cast<char>(random());
          break;
        case 1:
          hll.resize(17 + random() % (hll.size() - 16));
          break;
        case 2:
          hll.insert(16 + random() % (hll.size() - 16), 1, static_cast<char>(random()));
          break;
        default:
          hll[random() % 16] = static_cast<char>(random());
          break;
      }
    }
    if (!engine::is_hyperloglog(hll)) continue;
    const std::string before = hll;
    const bool is_good = engine::registers_of(hll).has_value();
    static_cast<void>(engine::runs_of(hll, 100));
    const std::size_t bytes_max = random() % 2 == 0 ? 0 : always_sparse;
    const HllChange added = engine::add_to_hyperloglog(hll, std::to_string(random()), bytes_max);
    if (!is_good) continue;
    REQUIRE(added != HllChange::damaged);
    REQUIRE(engine::registers_of(hll));
    std::string dense = before;
    REQUIRE(engine::make_dense(dense));
    REQUIRE(engine::registers_of(dense) == engine::registers_of(before));
  }
}

TEST_CASE("hyperloglog: runs are shown up to the length that is allowed", "[engine][hll]") {
  std::string hll = engine::empty_hyperloglog();
  CHECK(engine::runs_of(hll, 100) == "Z:16384");
  CHECK(engine::raise_register(hll, 10, 3, always_sparse) == HllChange::raised);
  CHECK(engine::runs_of(hll, 100) == "z:10 v:3,1 Z:16373");
  CHECK(engine::runs_of(hll, 18) == "z:10 v:3,1 Z:16373");
  CHECK_FALSE(engine::runs_of(hll, 17));
  CHECK(engine::runs_of(hll.substr(0, hll.size() - 1), 100) == "z:10 v:3,1");
}

TEST_CASE("hyperloglog: what is none, and what is damaged", "[engine][hll]") {
  const std::string empty = engine::empty_hyperloglog();
  CHECK(engine::is_hyperloglog(empty));
  CHECK_FALSE(engine::is_hyperloglog(""));
  CHECK_FALSE(engine::is_hyperloglog(empty.substr(0, 15)));
  CHECK(engine::is_hyperloglog(empty.substr(0, 16)));
  const auto damaged = [&](std::string hll) {
    REQUIRE(engine::is_hyperloglog(hll));
    const std::string before = hll;
    CHECK_FALSE(engine::registers_of(hll));
    CHECK_FALSE(engine::make_dense(hll));
    CHECK(hll == before);
  };
  damaged(empty.substr(0, 16));         // no register
  damaged(empty.substr(0, 17));         // half of a run
  damaged(empty + '\0');                // one register too many
  damaged(empty.substr(0, 16) + '\0');  // one in all
  std::string dense = empty;
  REQUIRE(engine::make_dense(dense));
  CHECK_FALSE(engine::is_hyperloglog(dense + '\0'));
  CHECK_FALSE(engine::is_hyperloglog(dense.substr(0, dense.size() - 1)));
  dense[4] = '\x02';
  CHECK_FALSE(engine::is_hyperloglog(dense));
}

}  // namespace semel::tests
