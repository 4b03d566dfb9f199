#include "storage/log/mutation_codec.hpp"

#include <set>
#include <string>
#include <utility>
#include "tests/support/catch.hpp"

#include "semel/claim_fields.hpp"
#include "storage/log/spans.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using storage::Anchor;
using storage::DurableClock;

namespace {

constexpr Timestamp now{Millis{5'000'000}};
const DurableClock line{1'700'000'000'000};

Mutation string_put() {
  Mutation mutation;
  mutation.db = 3;
  mutation.version = 0x7ff'ffff'ffff'ffff;
  mutation.due = now + 60s;
  mutation.key = Bytes{"k\0y", 3};
  mutation.value = "value";
  return mutation;
}

Mutation claim_put() {
  Mutation mutation;
  mutation.kind = Kind::claim;
  mutation.version = 77;
  mutation.due = now + 100s;
  mutation.key = "orders:1";
  ClaimRecord& claim = mutation.claim.emplace();
  claim.state = ClaimState::held;
  claim.attempts = 3;
  claim.epoch = 76;
  claim.session = 0;
  claim.lease_until = now + 10s;
  claim.fingerprint.algorithm = 1;
  claim.fingerprint.digest.fill(7);
  claim.claim_id.emplace().fill(9);
  claim.owner = "worker-4";
  return mutation;
}

Mutation through_disk(const Mutation& mutation, const DurableClock& later, Timestamp then,
                      std::string& bytes) {
  bytes.assign(storage::encoded_bytes(mutation, now), '\0');
  REQUIRE(encode(mutation, line, now, bytes.data()) == bytes.data() + bytes.size());
  Bytes rest{bytes};
  Mutation back;
  REQUIRE(decode(rest, later, then, back));
  CHECK(rest.empty());
  return back;
}

}  // namespace

TEST_CASE("codec: a string comes back as it was", "[storage][codec]") {
  std::string bytes;
  const Mutation put = string_put();
  const Mutation back = through_disk(put, line, now, bytes);
  CHECK(back.type == Mutation::Type::put);
  CHECK(back.kind == Kind::string);
  CHECK(back.db == put.db);
  CHECK(back.version == put.version);
  CHECK(back.due == put.due);
  CHECK(back.key == put.key);
  CHECK(back.value == put.value);
  CHECK_FALSE(back.claim);
}

TEST_CASE("codec: a hash comes back as one, and so does its erase", "[storage][codec][hash]") {
  std::string bytes;
  Mutation put = string_put();
  put.kind = Kind::hash;
  put.value = Bytes{"\1\1\1\1ab", 6};
  const Mutation back = through_disk(put, line, now, bytes);
  CHECK(back.kind == Kind::hash);
  CHECK(back.type == Mutation::Type::put);
  CHECK(back.db == put.db);
  CHECK(back.due == put.due);
  CHECK(back.key == put.key);
  CHECK(back.value == put.value);
  CHECK_FALSE(back.claim);
  storage::MutationExtent extent;
  REQUIRE(storage::extent_of(bytes, extent));
  CHECK(extent.bytes == bytes.size());
  CHECK(extent.version == put.version);
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    Bytes cut = Bytes{bytes}.substr(0, size);
    Mutation ignored;
    CHECK_FALSE(decode(cut, line, now, ignored));
  }
  std::string erased;
  put.type = Mutation::Type::erase;
  put.value = {};
  CHECK(through_disk(put, line, now, erased).kind == Kind::hash);
}

TEST_CASE("codec: kinds that nobody writes are damage", "[storage][codec][hash]") {
  std::string bytes;
  Mutation put = string_put();
  put.kind = Kind::hash;
  put.value = "v";
  through_disk(put, line, now, bytes);
  const std::size_t kind_at = 1 + 1 + 8;  // head, size, version
  REQUIRE(bytes[kind_at] == 3);
  Mutation back;
  for (int kind = 0; kind < 256; ++kind) {
    std::string other = bytes;
    other[kind_at] = static_cast<char>(kind);
    Bytes rest = other;
    CHECK(decode(rest, line, now, back) == (kind >= 3 && kind <= 8));  // objects, a namespace
  }
  for (const int more : {4, 64}) {  // a claim, a claim's record
    std::string other = bytes;
    other[0] = static_cast<char>(other[0] | more);
    Bytes rest = other;
    CHECK_FALSE(decode(rest, line, now, back));
  }
}

TEST_CASE("codec: each row of a claim's fields comes back alone", "[storage][codec][claim]") {
  const auto check = [](const Mutation& put) {
    std::string bytes;
    const Mutation back = through_disk(put, line, now, bytes);
    REQUIRE(back.claim);
    for (const ClaimFlag& flag : claim_flags) {
      CHECK((*back.claim).*flag.field == (*put.claim).*flag.field);
    }
    for (const ClaimText& text : claim_texts) {
      CHECK((*back.claim).*text.field == (*put.claim).*text.field);
    }
    for (const ClaimNumber& number : claim_numbers) {
      CHECK((*back.claim).*number.kept == (*put.claim).*number.kept);
    }
  };
  for (const ClaimFlag& flag : claim_flags) {
    Mutation put = claim_put();
    (*put.claim).*flag.field = true;
    check(put);
  }
  for (const ClaimText& text : claim_texts) {
    Mutation put = claim_put();
    put.claim->owner = {};
    (*put.claim).*text.field = "text";
    check(put);
  }
  for (const ClaimNumber& number : claim_numbers) {
    for (const std::uint32_t count : {0U, 1U, 2U, 0xffff'ffffU}) {
      Mutation put = claim_put();
      (*put.claim).*number.kept = count;
      check(put);
    }
  }
}

TEST_CASE("codec: states and flags of a claim that nobody writes are damage",
          "[storage][codec][claim]") {
  std::string bytes;
  const Mutation put = claim_put();
  through_disk(put, line, now, bytes);
  const std::size_t state_at = bytes.find(put.key) + put.key.size();
  REQUIRE(bytes[state_at] == static_cast<char>(ClaimState::held));
  for (int state = 0; state < 256; ++state) {
    std::string other = bytes;
    other[state_at] = static_cast<char>(state);
    Bytes rest = other;
    Mutation back;
    CHECK(decode(rest, line, now, back) == (state >= 1 && state <= 5));
  }
}

TEST_CASE("codec: a delta comes back with its base and trail, in both forms", "[storage][codec]") {
  std::string bytes;
  Mutation delta = string_put();
  delta.kind = Kind::set;
  delta.version = 1'000'300;
  delta.value = "the record";
  delta.base = 1'000'000;
  delta.trail = "trail";
  // With the record, that is what is written.
  const Mutation whole = through_disk(delta, line, now, bytes);
  CHECK(whole.value == delta.value);
  CHECK_FALSE(is_delta(whole));
  CHECK(whole.base == 0);
  delta.value = {};
  const Mutation back = through_disk(delta, line, now, bytes);
  CHECK(is_delta(back));
  CHECK(back.kind == Kind::set);
  CHECK(back.version == delta.version);
  CHECK(back.base == delta.base);
  CHECK(back.trail == delta.trail);
  CHECK(back.due == delta.due);
  CHECK(back.key == delta.key);
  storage::MutationExtent extent;
  REQUIRE(storage::extent_of(bytes, extent));
  CHECK(extent.is_delta);
  CHECK(extent.kind == Kind::set);
  CHECK(extent.key == delta.key);
  const storage::MutationBase base{1'000'200, line.to_durable_ms(now)};
  REQUIRE(is_near(delta, line, base));
  std::string near(storage::encoded_bytes(delta, now, storage::MutationForm::near), '\0');
  REQUIRE(encode(delta, line, now, near.data(), &base) == near.data() + near.size());
  std::string wide;
  REQUIRE(storage::widen(near, base, wide));
  CHECK(wide == bytes);
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    Bytes cut = Bytes{bytes}.substr(0, size);
    Mutation ignored;
    CHECK_FALSE(decode(cut, line, now, ignored));
  }
  // A base that is not older, and no steps.
  for (const Version step : {Version{0}, delta.version + 1}) {
    Mutation wrong = delta;
    wrong.base = delta.version - step;
    std::string other(storage::encoded_bytes(wrong, now), '\0');
    encode(wrong, line, now, other.data());
    Bytes rest{other};
    Mutation ignored;
    CHECK_FALSE(decode(rest, line, now, ignored));
  }
}

TEST_CASE("codec: an erase has no end and no value", "[storage][codec]") {
  std::string bytes;
  Mutation erase = string_put();
  erase.type = Mutation::Type::erase;
  erase.due = no_end;
  erase.value = {};
  const Mutation back = through_disk(erase, line, now, bytes);
  CHECK(back.type == Mutation::Type::erase);
  CHECK(back.due == no_end);
  CHECK(back.value.empty());
}

TEST_CASE("codec: a done claim keeps result, digest and ends", "[storage][codec]") {
  Mutation done = claim_put();
  ClaimRecord& claim = *done.claim;
  claim.state = ClaimState::done;
  claim.lease_until = {};
  claim.claim_id.reset();
  claim.result_until = now + 20s;
  claim.unique_until = now + 100s;
  claim.result = Bytes{"re\0sult", 7};
  std::string bytes;
  const Mutation back = through_disk(done, line, now, bytes);
  REQUIRE(back.claim);
  CHECK(back.claim->state == ClaimState::done);
  CHECK(back.claim->lease_until == Timestamp{});
  CHECK(back.claim->result_until == claim.result_until);
  CHECK(back.claim->unique_until == claim.unique_until);
  CHECK(back.claim->result == claim.result);
  CHECK(back.claim->owner == claim.owner);
  CHECK(back.claim->attempts == 3);
  CHECK(back.claim->epoch == 76);
  CHECK(back.claim->fingerprint == claim.fingerprint);
}

TEST_CASE("codec: memos come back beside what is known of a doubt, and cost no byte without them",
          "[storage][codec][memos]") {
  Mutation doubt = claim_put();
  doubt.claim->state = ClaimState::in_doubt;
  doubt.claim->result = "known";
  std::string without;
  CHECK(through_disk(doubt, line, now, without).claim->memos.empty());
  const std::string memos(200, 'm');
  doubt.claim->memos = memos;
  std::string bytes;
  const Mutation back = through_disk(doubt, line, now, bytes);
  REQUIRE(back.claim);
  CHECK(back.claim->memos == memos);
  CHECK(back.claim->result == "known");
  CHECK(back.claim->owner == doubt.claim->owner);
  CHECK(bytes.size() == without.size() + memos.size() + 2 + 1);  // and its size, and the body's

  // A length of the memos that goes beyond the record.
  std::string longer = bytes;
  const std::size_t at = longer.find("worker-4") + 8;
  longer[at] = '\xff';
  longer[at + 1] = '\x7f';
  Bytes rest{longer};
  Mutation none;
  CHECK_FALSE(storage::decode(rest, line, now, none));
}

TEST_CASE("codec: times keep their place on the line when the process' clock starts again",
          "[storage][codec]") {
  // Ten seconds later, after a boot: the engine's clock is near its zero.
  const Timestamp then{Millis{1'000}};
  const DurableClock later{1'700'000'000'000 + 5'000'000 + 10'000 - 1'000};
  std::string bytes;
  const Mutation back = through_disk(string_put(), later, then, bytes);
  CHECK(back.due == then + 50s);
}

TEST_CASE("codec: a remote owner's lease starts again in full, another's stays",
          "[storage][codec]") {
  std::string bytes;
  const Timestamp then = now + 4s;
  const Mutation remote = through_disk(claim_put(), line, then, bytes);
  CHECK(remote.claim->lease_until == then + 10s);
  CHECK(remote.due == now + 104s);  // and what outlives the lease with it
  Mutation local = claim_put();
  local.claim->session = 5;
  const Mutation back = through_disk(local, line, then, bytes);
  CHECK(back.claim->lease_until == now + 10s);
  CHECK(back.due == now + 100s);
}

TEST_CASE("codec: every cut of a mutation is noticed", "[storage][codec]") {
  std::string bytes;
  through_disk(claim_put(), line, now, bytes);
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    Bytes cut = Bytes{bytes}.substr(0, size);
    Mutation back;
    CHECK_FALSE(decode(cut, line, now, back));
  }
}

TEST_CASE("codec: how long it must be kept is read without the rest", "[storage][codec]") {
  std::string bytes;
  Mutation put = string_put();
  storage::MutationExtent extent;
  for (const Timestamp keep_until : {put.due, put.due + 5s, no_end}) {
    put.keep_until = keep_until;
    const Mutation back = through_disk(put, line, now, bytes);
    CHECK(back.keep_until == keep_until);
    REQUIRE(storage::extent_of(bytes + "next", extent));
    CHECK(extent.bytes == bytes.size());
    CHECK(extent.version == put.version);
    CHECK(extent.keep_until_ms == line.to_durable_ms(keep_until));
  }
}

namespace {

constexpr storage::MutationBase near_base{Version{1} << 40, 1'700'000'001'000};

/// There and back in the near form, with the same size, extent and full form.
void check_near(const Mutation& mutation) {
  std::string full;
  std::string bytes(storage::encoded_bytes(mutation, now, storage::MutationForm::near), '\0');
  const Mutation expected = through_disk(mutation, line, now, full);
  REQUIRE(encode(mutation, line, now, bytes.data(), &near_base) == bytes.data() + bytes.size());
  Bytes rest{bytes};
  Mutation back;
  REQUIRE(decode(rest, line, now, back, &near_base));
  CHECK(rest.empty());
  CHECK(back.version == mutation.version);
  CHECK(back.due == mutation.due);
  CHECK(back.keep_until == mutation.keep_until);
  CHECK(back.key == mutation.key);
  CHECK(back.value == mutation.value);
  CHECK(back.kind == mutation.kind);
  CHECK(back.db == mutation.db);
  CHECK(back.type == mutation.type);
  std::string again;
  CHECK(through_disk(back, line, now, again).version == expected.version);
  CHECK(again == full);
  storage::MutationExtent extent;
  const std::string two = bytes + "next";
  REQUIRE(storage::extent_of(two, extent, &near_base));
  CHECK(extent.bytes == bytes.size());
  CHECK(extent.version == mutation.version);
  CHECK(extent.keep_until_ms == line.to_durable_ms(mutation.keep_until));
  CHECK(extent.key == mutation.key);
  std::string wide;
  REQUIRE(storage::widen(bytes + bytes, near_base, wide));
  CHECK(wide == full + full);
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    wide.clear();
    CHECK_FALSE(storage::widen(Bytes{bytes}.substr(0, size), near_base, wide));
    CHECK(wide.empty());
    Bytes cut = Bytes{bytes}.substr(0, size);
    CHECK_FALSE(decode(cut, line, now, back, &near_base));
  }
}

}  // namespace

TEST_CASE("codec: the near form has versions and times around its base, exactly, and no others",
          "[storage][codec][near]") {
  constexpr Version base = near_base.version;
  constexpr Version half = Version{1} << 31;
  const auto at = [](std::uint64_t durable_ms) { return line.from_durable_ms(durable_ms); };
  constexpr std::uint64_t last_ms = near_base.ms + (std::uint64_t{1} << 32) - 2;
  Mutation put = string_put();
  put.keep_until = put.due = at(near_base.ms);
  for (const Version version : {base - half, base - 1, base, base + 1, base + half - 1}) {
    put.version = version;
    REQUIRE(is_near(put, line, near_base));
    check_near(put);
  }
  for (const Version version : {base - half - 1, base + half, Version{1}, limits::version_max}) {
    put.version = version;
    CHECK_FALSE(is_near(put, line, near_base));
  }
  put.version = base;
  const Timestamp near_ends[] = {at(near_base.ms), at(near_base.ms + 1), at(last_ms), no_end};
  for (const Timestamp due : near_ends) {
    for (const Timestamp keep_until : near_ends) {
      put.due = due;
      put.keep_until = keep_until;
      REQUIRE(is_near(put, line, near_base));
      check_near(put);
    }
  }
  for (const std::uint64_t far : {near_base.ms - 1, last_ms + 1, std::uint64_t{1}}) {
    put.due = at(far);
    put.keep_until = no_end;
    CHECK_FALSE(is_near(put, line, near_base));
    std::swap(put.due, put.keep_until);
    CHECK_FALSE(is_near(put, line, near_base));
  }
  put.due = put.keep_until = Timestamp{};
  CHECK_FALSE(is_near(put, line, near_base));
}

TEST_CASE("codec: a claim, a hash and an erase have a near form", "[storage][codec][near]") {
  Mutation put = string_put();
  put.version = near_base.version + 3;
  put.kind = Kind::hash;
  check_near(put);
  put.type = Mutation::Type::erase;
  put.value = {};
  check_near(put);

  Mutation held = claim_put();
  held.version = near_base.version + 77;
  held.claim->epoch = near_base.version + 76;
  held.claim->session = 5;
  REQUIRE(is_near(held, line, near_base));
  check_near(held);
  held.claim->session = 0;
  held.claim->result_until = now + 20s;
  held.claim->unique_until = no_end;
  held.claim->result = "result";
  REQUIRE(is_near(held, line, near_base));
  check_near(held);
  // Each of its ends may be too far.
  constexpr Millis too_far{std::int64_t{1} << 32};
  for (Timestamp ClaimRecord::*const end :
       {&ClaimRecord::lease_until, &ClaimRecord::result_until, &ClaimRecord::unique_until}) {
    Mutation far = held;
    (*far.claim).*end = now + too_far;
    CHECK_FALSE(is_near(far, line, near_base));
  }
}

TEST_CASE("time line: goes on exactly within a boot, and by the wall clock after one",
          "[storage][time]") {
  const Anchor last{.line_ms = 1'000'000, .engine_ms = 500, .unix_ms = 5'000'000, .boot_id = "a"};
  const auto line_at = [&](const char* boot, std::int64_t engine_ms, std::int64_t unix_ms) {
    const Timestamp at{Millis{engine_ms}};
    return DurableClock::resume(last, boot, at, unix_ms).to_durable_ms(at);
  };
  CHECK(line_at("a", 700, 9'999'999) == 1'000'200);  // a wall clock that was set is not looked at
  CHECK(line_at("b", 100, 5'000'300) == 1'000'300);  // how far it was off does not matter
  CHECK(line_at("b", 100, 400) == 1'000'000);  // set back: time stands still, nothing ends early
  CHECK(line_at("a", 100, 5'000'300) == 1'000'300);  // the clock is another one
}

TEST_CASE("spans: one is over when all it holds has ended, and not much later",
          "[storage][spans]") {
  constexpr std::uint64_t now_ms = 1'700'000'000'123;
  for (const Millis unit : {Millis{1s}, Millis{1min}}) {
    const auto unit_ms = static_cast<std::uint64_t>(unit.count());
    for (std::uint64_t left = 0; left < std::uint64_t{100} * 24 * 3'600'000; left = left * 3 + 1) {
      const std::uint64_t end = now_ms + left;
      const storage::SpanNumber span = storage::span_of(end, now_ms, unit);
      CHECK(span >= storage::running_span(end - 1));  // not over while it must be kept
      CHECK(span >= end);
      CHECK(span <= end + left / 8 + unit_ms);
    }
  }
  CHECK(storage::span_of(DurableClock::no_end_ms, now_ms, 1s) == storage::span_never);
}

TEST_CASE("spans: mixed ttls of four weeks make few of them", "[storage][spans]") {
  constexpr std::uint64_t now_ms = 1'700'000'000'123;
  std::set<storage::SpanNumber> spans;
  for (std::uint64_t minute = 0; minute < std::uint64_t{28} * 24 * 60; ++minute) {
    spans.insert(storage::span_of(now_ms + minute * 60'000, now_ms, 1min));
  }
  CHECK(spans.size() < 150);
}

TEST_CASE("durable clock: both clocks are read at one moment, although the process is stopped",
          "[storage][mutation_codec]") {
  /// Its process is stopped for a while at each of the first readings.
  class StoppedClock final : public Clock {
   public:
    [[nodiscard]] Timestamp now() const noexcept override { return Timestamp{Millis{pass()}}; }
    [[nodiscard]] std::int64_t unix_ms() const noexcept override {
      return 1'700'000'000'000 + pass();
    }

   private:
    std::int64_t pass() const noexcept {
      if (stops_ < 7) ms_ += ++stops_ * 100;
      return ms_;
    }
    mutable std::int64_t ms_ = 1'000;
    mutable int stops_ = 0;
  };
  const storage::ClockReading reading = storage::read_clocks(StoppedClock{});
  CHECK(reading.unix_ms - reading.now.time_since_epoch().count() == 1'700'000'000'000);
}

}  // namespace semel::tests
