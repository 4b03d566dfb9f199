#include "storage/cold/cold_bucket.hpp"

#include <array>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/claim_fields.hpp"
#include "storage/cold/cold_filter.hpp"

namespace semel::storage {

namespace {

/// A bucket of records of every shape, and what they were.
class Sample {
 public:
  Sample(std::uint64_t seed, std::size_t count) : random_(seed) {
    Version version = 1'000'000;
    for (std::size_t i = 0; i < count; ++i) {
      version += 1 + random_() % 100'000;
      made_.push_back(make(version));
    }
    std::vector<std::string> values(count);
    std::vector<BucketRecord> records;
    for (std::size_t i = 0; i < count; ++i) {
      link(made_[i]);
      const std::uint8_t head = encode_value(made_[i].mutation, line_, values[i]);
      records.push_back({made_[i].mutation.version, line_.to_durable_ms(made_[i].mutation.due),
                         head, made_[i].mutation.key, values[i]});
    }
    encode_bucket(records, bytes_);
  }

  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  struct Made {
    std::string key;
    std::string value;
    std::string owner;
    Mutation mutation;
  };
  [[nodiscard]] const std::vector<Made>& made() const noexcept { return made_; }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] const DurableClock& line() const noexcept { return line_; }

 private:
  [[nodiscard]] std::string some_bytes(std::size_t most) {
    std::string bytes(random_() % (most + 1), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  [[nodiscard]] Timestamp some_time() {
    const std::uint64_t what = random_() % 4;
    if (what == 0) return Timestamp{};
    if (what == 1) return no_end;
    return Timestamp{Millis{static_cast<std::int64_t>(1 + random_() % 100'000'000)}};
  }
  /// They stand still from here on.
  static void link(Made& made) {
    made.mutation.key = made.key;
    if (!made.mutation.claim) {
      made.mutation.value = made.value;
      return;
    }
    made.mutation.claim->owner = made.owner;
    made.mutation.claim->result = made.value;
  }
  Made make(Version version) {
    Made made{some_bytes(40) + "k", some_bytes(300), some_bytes(limits::owner_label_max), {}};
    Mutation& mutation = made.mutation;
    mutation.version = version;
    mutation.db = static_cast<std::uint8_t>(random_() % limits::db_count);
    mutation.due = random_() % 3 == 0
                       ? no_end
                       : Timestamp{Millis{static_cast<std::int64_t>(1 + random_() % 100'000'000)}};
    mutation.keep_until = mutation.due;
    const auto kind = random_() % 3;
    if (kind == 0) mutation.kind = Kind::hash;  // to a bucket, any bytes
    if (kind < 2) return made;
    mutation.kind = Kind::claim;
    ClaimRecord& claim = mutation.claim.emplace();
    claim.state = random_() % 2 == 0 ? ClaimState::done : ClaimState::failed;
    claim.result_expired = random_() % 2 == 0;
    claim.poison = random_() % 2 == 0;
    for (const ClaimNumber& number : claim_numbers) {
      claim.*number.kept = static_cast<std::uint32_t>(random_() % 3);
    }
    claim.epoch = version - random_() % 1'000;
    claim.lease_until = some_time();
    claim.result_until = random_() % 2 == 0 ? mutation.due : some_time();
    claim.unique_until = random_() % 2 == 0 ? mutation.due : some_time();
    if (random_() % 2 == 0) claim.claim_id.emplace().fill(7);
    if (random_() % 2 == 0) claim.result_digest.fill(9);
    if (random_() % 2 == 0) claim.fingerprint = {.algorithm = 3, .digest = {1, 2, 3}};
    return made;
  }

  std::mt19937_64 random_;
  const DurableClock line_{1'700'000'000'000};
  std::vector<Made> made_;
  std::string bytes_;
};

}  // namespace

TEST_CASE("cold bucket: a record of each kind comes back, and no other kind does",
          "[storage][cold]") {
  const DurableClock line{1'700'000'000'000};
  std::array<bool, 16> known{};
  for (const Kind kind : record_kinds()) {
    INFO(name_of(kind));
    Mutation mutation;
    mutation.kind = kind;
    mutation.version = 7;
    mutation.due = mutation.keep_until = no_end;
    mutation.key = "k";
    if (kind == Kind::claim) mutation.claim.emplace().epoch = 7;
    std::string value;
    const std::uint8_t head = encode_value(mutation, line, value);
    Mutation got;
    REQUIRE(decode_record({7, DurableClock::no_end_ms, head, "k", value}, line, got));
    CHECK(got.kind == kind);
    known[head & 15] = true;
  }
  // A head of a later release, or damage.
  for (std::uint8_t head = 0; head < 16; ++head) {
    if (known[head | 2]) continue;
    Mutation got;
    CHECK_FALSE(decode_record({7, DurableClock::no_end_ms, head, "k", {}}, line, got));
  }
}

TEST_CASE("cold bucket: every record comes back as it went in", "[storage][cold]") {
  std::mt19937_64 random{Catch::rngSeed()};
  for (int round = 0; round < 50; ++round) {
    const Sample sample{random(), random() % 60};
    BucketReader reader{sample.bytes()};
    BucketRecord read;
    std::size_t count = 0;
    for (; reader.next(read); ++count) {
      const Mutation& want = sample.made()[count].mutation;
      Mutation got;
      REQUIRE(decode_record(read, sample.line(), got));
      REQUIRE(got.key == want.key);
      REQUIRE(got.value == want.value);
      REQUIRE(got.version == want.version);
      REQUIRE(got.due == want.due);
      REQUIRE(got.db == want.db);
      REQUIRE(got.kind == want.kind);
      REQUIRE(got.claim.has_value() == want.claim.has_value());
      if (!want.claim) continue;
      REQUIRE(got.claim->state == want.claim->state);
      REQUIRE(got.claim->result_expired == want.claim->result_expired);
      REQUIRE(got.claim->poison == want.claim->poison);
      for (const ClaimNumber& number : claim_numbers) {
        REQUIRE((*got.claim).*number.kept == (*want.claim).*number.kept);
      }
      REQUIRE(got.claim->epoch == want.claim->epoch);
      REQUIRE(got.claim->lease_until == want.claim->lease_until);
      REQUIRE(got.claim->result_until == want.claim->result_until);
      REQUIRE(got.claim->unique_until == want.claim->unique_until);
      REQUIRE(got.claim->claim_id == want.claim->claim_id);
      REQUIRE(got.claim->result_digest == want.claim->result_digest);
      REQUIRE(got.claim->fingerprint == want.claim->fingerprint);
      REQUIRE(got.claim->owner == want.claim->owner);
      REQUIRE(got.claim->result == want.claim->result);
    }
    REQUIRE_FALSE(reader.damaged());
    REQUIRE(count == sample.made().size());
  }
}

TEST_CASE("cold bucket: whatever the bytes are, reading them ends inside of them",
          "[storage][cold]") {
  std::mt19937_64 random{Catch::rngSeed()};
  const Sample sample{random(), 30};
  for (int round = 0; round < 5'000; ++round) {
    std::string bytes = sample.bytes();
    const std::size_t flips = 1 + random() % 3;
    for (std::size_t i = 0; i < flips; ++i) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    }
    if (random() % 3 == 0) bytes.resize(random() % bytes.size());
    const std::string exact{bytes.data(), bytes.size()};  // so that a sanitizer sees its end
    BucketReader reader{exact};
    BucketRecord read;
    std::size_t count = 0;
    Mutation mutation;
    while (reader.next(read)) {
      static_cast<void>(decode_record(read, sample.line(), mutation));  // it must only not crash
      REQUIRE(++count < 1'000'000);
    }
  }
}

TEST_CASE("cold filter: it knows what was added, and takes few others for it", "[storage][cold]") {
  std::mt19937_64 random{Catch::rngSeed()};
  constexpr std::uint64_t count = 100'000;
  ColdFilter filter{ColdFilter::lines_for(count, 15)};
  REQUIRE(filter.ok());
  std::vector<std::uint64_t> added;
  // A crowded corner of the ranks: the lines do not follow them.
  for (std::uint64_t i = 0; i < count; ++i) added.push_back(random() >> 20);
  for (const std::uint64_t rank : added) filter.add(rank);
  for (const std::uint64_t rank : added) REQUIRE(filter.may_hold(rank));
  unsigned taken = 0;
  for (int i = 0; i < 1'000'000; ++i) taken += filter.may_hold(random() >> 20) ? 1 : 0;
  CHECK(taken < 2'000);  // 0.13 % expected
  CHECK(taken > 500);    // fewer: the filter is larger than it was meant to be
  CHECK(filter.bytes() <= count * 15 / 8 + 64);
}

}  // namespace semel::storage
