// The row of each kind of object (engine/kinds/kinds.hpp).
#include "engine/kinds/kinds.hpp"

#include <string>
#include "tests/support/catch.hpp"

#include "engine/rules/claim_codec.hpp"
#include "semel/journal.hpp"

using namespace semel;

namespace {

constexpr Timestamp some_due{Millis{5'000}};

std::string encoded(ClaimState state) {
  engine::Scratch scratch;
  ClaimRecord claim;
  claim.state = state;
  claim.epoch = 3;
  if (state == ClaimState::done) {
    claim.result_until = Timestamp{Millis{2'000}};
    claim.unique_until = some_due;
    claim.result = "result";
  }
  return std::string{engine::encode(claim, scratch)};
}

}  // namespace

TEST_CASE("kinds: each kind of a record has a row with its name, and no other number has one",
          "[engine][rules]") {
  for (std::size_t number = 0; number < engine::kinds_max; ++number) {
    const Kind kind = static_cast<Kind>(number);
    const Bytes name = engine::row_of(kind).name;
    CHECK(name == (name_of(kind) == "unknown" ? Bytes{} : name_of(kind)));
  }
  CHECK(engine::row_of(Kind::string).name == "string");
  CHECK(engine::row_of(Kind::claim).name == "claim");
  CHECK(engine::row_of(Kind::hash).name == "hash");
}

TEST_CASE("kinds: a string is its value, is always sound and visible, and wakes at its end",
          "[engine][rules]") {
  engine::Scratch scratch;
  Mutation mutation;
  mutation.claim.emplace();
  engine::fill_value(Kind::string, "v", mutation);
  CHECK(mutation.value == "v");
  CHECK_FALSE(mutation.claim.has_value());
  CHECK(engine::value_of(mutation, scratch) == "v");
  CHECK(engine::is_sound(Kind::string, ""));
  CHECK(engine::is_visible(Kind::string, encoded(ClaimState::vacant)));
  CHECK(engine::wake_of(Kind::string, "v", some_due) == some_due);
}

TEST_CASE("kinds: a claim leaves and comes back as its record, and wakes when its result ends",
          "[engine][rules][claims]") {
  engine::Scratch scratch;
  const std::string done = encoded(ClaimState::done);
  Mutation mutation;
  mutation.kind = Kind::claim;
  engine::fill_value(Kind::claim, done, mutation);
  CHECK(mutation.value.empty());
  REQUIRE(mutation.claim.has_value());
  CHECK(mutation.claim->result == "result");
  CHECK(engine::value_of(mutation, scratch) == done);
  CHECK(engine::wake_of(Kind::claim, done, some_due) == Timestamp{Millis{2'000}});
  CHECK(engine::is_visible(Kind::claim, done));
  CHECK_FALSE(engine::is_visible(Kind::claim, encoded(ClaimState::vacant)));
}

TEST_CASE("kinds: bytes that are not a hash are not sound as one", "[engine][rules]") {
  CHECK_FALSE(engine::is_sound(Kind::hash, "no hash"));
  CHECK_FALSE(engine::is_sound(Kind::hash, ""));
}
