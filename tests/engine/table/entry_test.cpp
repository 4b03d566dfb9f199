// A record's bytes: every field comes back as it was written, at every size and at the ends.
#include "engine/table/entry.hpp"

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/table/slot.hpp"
#include "semel/limits.hpp"

namespace semel::engine {
namespace {

/// Writes a record into memory of exactly its size, so that a sanitizer sees one byte too many.
struct Written {
  Written(const Entry::Header& header, Bytes key, Bytes value)
      : memory((Entry::bytes(key.size(), value.size()) + 7) / 8) {
    Entry::write(memory.data(), header, key, value);
  }
  [[nodiscard]] const Entry& entry() const {
    return *reinterpret_cast<const Entry*>(memory.data());
  }
  std::vector<std::uint64_t> memory;
};

void require_round_trip(const Entry::Header& header, Bytes key, Bytes value) {
  const Written written{header, key, value};
  const Entry& entry = written.entry();
  REQUIRE(entry.kind() == header.kind);
  REQUIRE(entry.db() == header.db);
  REQUIRE(entry.due() == header.due);
  REQUIRE(entry.version() == header.version);
  REQUIRE(entry.key() == key);
  REQUIRE(entry.value() == value);
  REQUIRE(entry.bytes() == Entry::bytes(key.size(), value.size()));
  REQUIRE(entry.has_key(header.db, key));
  REQUIRE_FALSE(entry.has_key(header.db ^ 1, key));
}

}  // namespace

TEST_CASE("entry: sizes around the short form's end come back", "[engine][entry]") {
  const Entry::Header header{Kind::string, 3, Timestamp{Millis{77}}, 12};
  const std::string text(70'000, 'x');
  for (const std::size_t key : {1U, 7U, 8U, 9U, 64U, 65U, 254U, 255U, 256U, 257U, 65'536U}) {
    for (const std::size_t value : {0U, 1U, 254U, 255U, 256U, 257U, 70'000U}) {
      require_round_trip(header, Bytes{text}.substr(0, key), Bytes{text}.substr(0, value));
    }
  }
  CHECK(Entry::bytes(255, 255) == 16 + 510);
  CHECK(Entry::bytes(256, 0) == 24 + 256);
  CHECK(Entry::bytes(1, 256) == 24 + 257);
}

TEST_CASE("entry: times and versions come back up to their largest", "[engine][entry]") {
  for (const Version version :
       {Version{0}, Version{1}, (Version{1} << 48) - 1, Version{1} << 48, Entry::version_max}) {
    for (const std::int64_t due : {std::int64_t{0}, std::int64_t{1}, limits::ttl_max.count() * 2,
                                   (std::int64_t{1} << 44) - 2}) {
      for (const Kind kind : {Kind::string, Kind::claim}) {
        for (const unsigned db : {0U, 15U}) {
          require_round_trip({kind, static_cast<std::uint8_t>(db), Timestamp{Millis{due}}, version},
                             "key", "value");
        }
      }
    }
  }
  require_round_trip({Kind::string, 0, no_end, 1}, "key", "value");
  // Beyond what fits a record does not end; before the clock's zero it has ended.
  CHECK(Written({Kind::string, 0, Timestamp{Millis{std::int64_t{1} << 50}}, 1}, "k", "")
            .entry()
            .due() == no_end);
  CHECK(Written({Kind::string, 0, Timestamp{Millis{-5}}, 1}, "k", "").entry().due() == Timestamp{});
}

TEST_CASE("entry: keys that differ in one byte, in length or in database are distinguished",
          "[engine][entry]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int round = 0; round < 3000; ++round) {
    std::string key(1 + random() % 300, '\0');
    for (char& byte : key) byte = static_cast<char>(random());
    const Written written{{Kind::string, 7, no_end, 1}, key, "value"};
    REQUIRE(written.entry().has_key(7, key));
    std::string other = key;
    other[random() % other.size()] ^= static_cast<char>(1 << (random() % 8));
    REQUIRE_FALSE(written.entry().has_key(7, other));
    REQUIRE_FALSE(written.entry().has_key(7, key + "x"));
    if (key.size() > 1) REQUIRE_FALSE(written.entry().has_key(7, Bytes{key}.substr(1)));
    REQUIRE_FALSE(written.entry().has_key(6, key));
  }
}

TEST_CASE("entry: a mark taken away while the record is journalled does not come back",
          "[engine][entry][race]") {
  constexpr std::size_t rounds = 2'000;
  std::vector<Written> records;
  records.reserve(rounds);
  for (std::size_t i = 0; i < rounds; ++i) {
    records.emplace_back(Entry::Header{Kind::string, 0, no_end, i + 1, true}, "key", "value");
    records.back().entry().note_early_timer(true);
  }
  // Both take the same record at about the same time: each waits until the other is where it is.
  std::atomic<std::size_t> journalled{0};
  std::atomic<std::size_t> set_again{0};
  const auto run = [&](std::atomic<std::size_t>& own, const std::atomic<std::size_t>& other,
                       auto&& clear) {
    for (std::size_t i = 0; i < rounds; ++i) {
      own.store(i + 1, std::memory_order_seq_cst);
      for (unsigned spins = 0; other.load(std::memory_order_seq_cst) < i + 1; ++spins) {
        if (spins > 2'000) std::this_thread::yield();  // the other has no processor
      }
      clear(records[i].entry());
    }
  };
  std::thread wheel{[&] {
    run(set_again, journalled, [](const Entry& entry) { entry.note_early_timer(false); });
  }};
  run(journalled, set_again, [](const Entry& entry) { entry.set_journalled(); });
  wheel.join();
  for (const Written& record : records) {
    REQUIRE_FALSE(record.entry().pending());
    REQUIRE_FALSE(record.entry().has_early_timer());
  }
}

TEST_CASE("slot: the parts of a word come back and do not touch each other", "[engine][entry]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int round = 0; round < 10'000; ++round) {
    const HashBits hash = HashBits::of(random());
    const Handle handle = 1 + random() % slot::handle_mask;
    const auto distance = static_cast<unsigned>(random() % probe_lines_max);
    const SlotWord word = slot::make(hash.tag(), distance, handle);
    REQUIRE(slot::is_record(word));
    REQUIRE_FALSE(slot::is_tombstone(word));
    REQUIRE_FALSE(slot::is_frozen(word));
    REQUIRE(slot::handle(word) == handle);
    REQUIRE(slot::tag(word) == hash.tag());
    REQUIRE(slot::distance(word) == distance);
    REQUIRE(slot::handle(word | slot::frozen) == handle);
    REQUIRE(slot::is_record(word | slot::frozen));
    const Version version = random() & Entry::version_max;
    const SlotWord tombstone = slot::make_tombstone(version);
    REQUIRE(slot::is_tombstone(tombstone | slot::frozen));
    REQUIRE_FALSE(slot::is_empty(tombstone));
    REQUIRE(slot::version(tombstone | slot::frozen) == version);
    REQUIRE(hash.line(257) < 257);
    REQUIRE(slot::step(hash.tag()) % 2 == 1);
  }
  CHECK(slot::is_empty(0));
  CHECK(slot::is_empty(slot::frozen));
}

}  // namespace semel::engine
