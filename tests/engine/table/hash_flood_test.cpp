// Keys chosen against the hash: what hurts one engine does not hurt another, and hurts none much.
// Words: crafted = found to share a home line under a known seed; home line = where probing begins.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "engine/api/engine_impl.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {
namespace {

using engine::Core;
using engine::HashBits;

Core& core_of(EngineFixture& f) {
  return semel::engine::impl_of(*f.engine).core();
}

std::uint32_t line_count_of(EngineFixture& f) {
  return core_of(f).keys().shards().front().table.line_count();
}

/// `count` keys with the same home line in `f`.
std::vector<std::string> craft(EngineFixture& f, std::size_t count) {
  std::vector<std::string> keys;
  const std::uint32_t lines = line_count_of(f);
  for (std::uint64_t i = 0; keys.size() < count; ++i) {
    std::string key = "user:" + std::to_string(i);
    if (core_of(f).keys().hash_of(0, key).line(lines) == 17) keys.push_back(std::move(key));
  }
  return keys;
}

/// The most keys that share a home line.
std::size_t largest_line(EngineFixture& f, const std::vector<std::string>& keys) {
  std::vector<std::size_t> lines(line_count_of(f), 0);
  for (const std::string& key : keys) {
    ++lines[core_of(f).keys().hash_of(0, key).line(line_count_of(f))];
  }
  return *std::max_element(lines.begin(), lines.end());
}

/// Mean number of lines after the home line at which records lie.
double mean_distance(EngineFixture& f) {
  std::size_t records = 0;
  std::size_t lines = 0;
  for (engine::Shard& shard : core_of(f).keys().shards()) {
    shard.table.for_each_segment([&](engine::ShardTable::Segment& segment) {
      for (std::uint32_t i = 0; i < shard.table.line_count() * engine::slots_per_line; ++i) {
        const engine::SlotWord word = segment.slots()[i].load(std::memory_order_acquire);
        if (!engine::slot::is_record(word)) continue;
        ++records;
        lines += engine::slot::distance(word);
      }
    });
  }
  return records == 0 ? 0 : static_cast<double>(lines) / static_cast<double>(records);
}

}  // namespace

TEST_CASE("hash flood: keys crafted for one engine are ordinary keys in another",
          "[engine][hash_flood]") {
  EngineFixture known{{.shard_count = 1, .hash_seed = 42}};
  const std::vector<std::string> crafted = craft(known, 4096);
  CHECK(largest_line(known, crafted) == 4096);
  for (int i = 0; i < 4; ++i) {
    EngineFixture other{{.shard_count = 1}};   // a secret of its own
    CHECK(largest_line(other, crafted) < 60);  // 16 on average
  }
  EngineFixture same{{.shard_count = 1, .hash_seed = 42}};
  CHECK(core_of(known).keys().hash_of(3, "k").bits == core_of(same).keys().hash_of(3, "k").bits);
  EngineFixture one;
  EngineFixture two;
  int equal = 0;
  for (int i = 0; i < 64; ++i) {
    const std::string key = std::to_string(i);
    equal += core_of(one).keys().hash_of(0, key).bits == core_of(two).keys().hash_of(0, key).bits
                 ? 1
                 : 0;
  }
  CHECK(equal < 4);
}

TEST_CASE("hash flood: crafted keys in the engine they were crafted for are found, in bounded room",
          "[engine][hash_flood]") {
  EngineFixture f{{.shard_count = 1, .hash_seed = 42}};
  const std::vector<std::string> crafted = craft(f, 4096);
  for (const std::string& key : crafted) REQUIRE(f.put(key, key));
  for (const std::string& key : crafted) REQUIRE(f.read(key) == key);
  // The step after the home line differs, so even these share a table of ordinary size.
  CHECK(f.engine->stats().bytes_table < std::size_t{8} << 20);
  CHECK(broken_rules(*f.engine) == "");
  for (const std::string& key : crafted) REQUIRE(*f.store().del(key));
  CHECK(f.engine->size(0) == 0);
}

TEST_CASE("hash flood: 65,536 keys are found near their home lines, with any seed",
          "[engine][hash_flood]") {
  for (const std::optional<std::uint64_t> seed :
       {std::optional<std::uint64_t>{}, std::optional<std::uint64_t>{7}}) {
    EngineFixture f{{.hash_seed = seed}};
    for (int i = 0; i < 65'536; ++i) REQUIRE(f.put("session/" + std::to_string(i), ""));
    CHECK(f.engine->stats().probe_lines_max == 8);
    CHECK(mean_distance(f) < 1.5);
    CHECK(f.engine->stats().slots < std::uint64_t{65'536} * 4);
  }
}

TEST_CASE("hash flood: similar keys of every length spread over the lines",
          "[engine][hash_flood]") {
  EngineFixture f{{.shard_count = 1}};
  for (const std::size_t prefix : {0U, 3U, 8U, 15U, 30U, 120U, 230U, 250U, 5000U}) {
    std::vector<std::string> keys;
    const std::string common(prefix, 'a');
    for (int i = 0; i < 2560; ++i) keys.push_back(common + std::to_string(100'000 + i));
    INFO(prefix);
    CHECK(largest_line(f, keys) < 40);  // 10 on average
  }
}

TEST_CASE("hash flood: one key in sixteen databases has sixteen hashes", "[engine][hash_flood]") {
  EngineFixture f;
  std::set<std::uint64_t> hashes;
  for (std::uint8_t db = 0; db < limits::db_count; ++db) {
    hashes.insert(core_of(f).keys().hash_of(db, "k").bits);
  }
  CHECK(hashes.size() == limits::db_count);
}

namespace {

struct StdSync {
  template <class T>
  using atomic = std::atomic<T>;
  static constexpr bool vector_lines = engine::has_vector_lines;
};

/// Keeps what was retired until the end.
class HeapSource {
 public:
  ~HeapSource() {
    for (void* memory : all_) std::free(memory);
  }
  void* allocate_segment(std::size_t bytes) {
    void* memory = std::aligned_alloc(64, bytes);
    std::memset(memory, 0, bytes);
    all_.insert(memory);
    return memory;
  }
  void release_segment(void* memory) noexcept {
    all_.erase(memory);
    std::free(memory);
  }
  void retire_segment(void*) noexcept {}

 private:
  std::set<void*> all_;
};

}  // namespace

TEST_CASE("hash flood: more equal hashes than a probe has slots are refused, the rest lives on",
          "[engine][hash_flood]") {
  using Table = engine::Table<StdSync, HeapSource>;
  HeapSource source;
  const auto directory = std::make_unique<Table::Word[]>(std::size_t{1} << engine::depth_max);
  Table table{source, 257, directory.get()};
  REQUIRE(table.start());
  const HashBits hash = HashBits::of(0x1234'5678);
  const auto find = [&](std::uint64_t key) {
    return table.find(hash, [key](engine::Handle handle) { return handle == key; });
  };
  // 0: there is no room and none can be made.
  const auto put = [&](std::uint64_t key) {
    for (int tries = 0; tries < 100; ++tries) {
      const Table::Probe probe = find(key);
      if (probe.state == Table::Probe::State::full) {
        if (!table.grow(hash, probe.segment)) return false;
      } else if (table.publish(probe, key)) {
        return true;
      }
    }
    return false;
  };
  for (std::uint64_t key = 1; key <= 64; ++key) REQUIRE(put(key));
  for (int again = 0; again < 3; ++again) CHECK_FALSE(put(65));
  // The segment was not left frozen: its records can be changed, and room that comes is used.
  REQUIRE(table.bury(find(7), 100));
  CHECK(find(7).state != Table::Probe::State::found);
  for (std::uint64_t key = 1; key <= 64; ++key) {
    if (key != 7) REQUIRE(find(key).state == Table::Probe::State::found);
  }
  REQUIRE(table.publish(find(8), 8));
}

}  // namespace semel::tests
