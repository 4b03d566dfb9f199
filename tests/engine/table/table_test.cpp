// The table alone, over plain memory and a seeded hash. Vocabulary: put, has, bury, key numbers.
#include "engine/table/table.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "tests/support/catch.hpp"

using namespace semel;
using namespace semel::engine;

namespace {

struct StdSync {
  template <class T>
  using atomic = std::atomic<T>;
  static constexpr bool vector_lines = has_vector_lines;
};

/// Hands out segments and keeps what was retired until the end, so a stale reader stays safe.
class HeapSource {
 public:
  ~HeapSource() {
    for (void* memory : all_) std::free(memory);
  }
  void* allocate_segment(std::size_t bytes) {
    const std::lock_guard lock{mutex_};
    if (left_ == 0) return nullptr;
    --left_;
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    std::memset(memory, 0, bytes);
    all_.insert(memory);
    return memory;
  }
  void release_segment(void* memory) noexcept {
    const std::lock_guard lock{mutex_};
    all_.erase(memory);
    std::free(memory);
  }
  void retire_segment(void*) noexcept {
    const std::lock_guard lock{mutex_};
    ++retired_;
  }
  void allow(std::size_t segments) { left_ = segments; }
  [[nodiscard]] std::size_t retired() const { return retired_; }

 private:
  std::mutex mutex_;
  std::set<void*> all_;
  std::size_t left_ = ~std::size_t{0};
  std::size_t retired_ = 0;
};

using TestTable = Table<StdSync, HeapSource>;

struct Fixture {
  HeapSource source;
  std::unique_ptr<TestTable::Word[]> directory =
      std::make_unique<TestTable::Word[]>(std::size_t{1} << depth_max);
  TestTable table{source, 257, directory.get()};
  Fixture() { REQUIRE(table.start()); }

  static HashBits hash(std::uint64_t key) { return HashBits::of(base::mix_bits(key)); }
  TestTable::Probe find(std::uint64_t key) const {
    return table.find(hash(key), [key](Handle handle) { return handle == key; });
  }
  [[nodiscard]] bool has(std::uint64_t key) const {
    return find(key).state == TestTable::Probe::State::found;
  }
  /// False: it was there, or there is no memory to grow.
  bool put(std::uint64_t key) {
    for (;;) {
      const auto probe = find(key);
      if (probe.state == TestTable::Probe::State::found) return false;
      if (probe.state == TestTable::Probe::State::full || TestTable::is_frozen(probe)) {
        if (!table.grow(hash(key), probe.segment)) return false;
      } else if (table.publish(probe, key)) {
        return true;
      }
    }
  }
  bool bury(std::uint64_t key, Version version) {
    for (;;) {
      const auto probe = find(key);
      if (probe.state != TestTable::Probe::State::found) return false;
      if (table.bury(probe, version)) return true;
      if (TestTable::is_frozen(probe) && !table.grow(hash(key), probe.segment)) return false;
    }
  }
};

}  // namespace

TEST_CASE("slot: an empty word stays empty when frozen and is not a record", "[engine][table]") {
  CHECK(slot::is_empty(0));
  CHECK(slot::is_empty(slot::frozen));
  CHECK_FALSE(slot::is_record(slot::frozen));
  CHECK(slot::is_tombstone(slot::make_tombstone(7)));
  CHECK(slot::version(slot::make_tombstone(Version{1} << 59)) == Version{1} << 59);
  const SlotWord word = slot::make(0x7f'abcd, 7, slot::handle_mask);
  CHECK(slot::tag(word) == 0x7f'abcd);
  CHECK(slot::distance(word) == 7);
  CHECK(slot::handle(word) == slot::handle_mask);
  CHECK_FALSE(slot::is_frozen(word));
}

TEST_CASE("table: every key is found through all growth and no other is", "[engine][table]") {
  Fixture t;
  constexpr std::uint64_t count = 200'000;
  for (std::uint64_t key = 1; key <= count; ++key) REQUIRE(t.put(key));
  for (std::uint64_t key = 1; key <= count; ++key) REQUIRE(t.has(key));
  for (std::uint64_t key = count + 1; key <= count + 10'000; ++key) REQUIRE_FALSE(t.has(key));
  CHECK_FALSE(t.put(1));
  CHECK(t.source.retired() + 1 >= t.table.segment_count());
  const double load =
      static_cast<double>(count) / static_cast<double>(t.table.segment_count() * 257 * 8);
  CHECK(load > 0.4);
}

TEST_CASE("table: tombstones are cleaned without growing", "[engine][table]") {
  Fixture t;
  for (std::uint64_t round = 0; round < 200; ++round) {
    for (std::uint64_t key = 1; key <= 500; ++key) REQUIRE(t.put(round * 500 + key));
    for (std::uint64_t key = 1; key <= 500; ++key) REQUIRE(t.bury(round * 500 + key, round + 1));
  }
  CHECK(t.table.segment_count() == 1);
  for (std::uint64_t key = 1; key <= 1000; ++key) REQUIRE_FALSE(t.has(key));
}

TEST_CASE("table: a key that ended is asked for a larger version, also after cleaning",
          "[engine][table]") {
  Fixture t;
  REQUIRE(t.put(42));
  REQUIRE(t.bury(42, 1'000));
  CHECK(t.find(42).floor >= 1'000);
  for (std::uint64_t key = 100; key < 10'000; ++key) {
    REQUIRE(t.put(key));
    REQUIRE(t.bury(key, 2'000 + key));
  }
  CHECK(t.find(42).floor >= 1'000);
}

TEST_CASE("table: growth without memory changes nothing", "[engine][table]") {
  Fixture t;
  t.source.allow(1);  // growth needs two
  std::uint64_t key = 1;
  while (t.put(key)) ++key;
  CHECK(key > 257 * 8 / 2);
  for (std::uint64_t each = 1; each < key; ++each) REQUIRE(t.has(each));
  CHECK_FALSE(TestTable::is_frozen(t.find(1)));
  t.source.allow(10);
  CHECK(t.put(key));
}

TEST_CASE("table: of many inserters of the same keys exactly one wins each",
          "[engine][table][race]") {
  Fixture t;
  constexpr unsigned threads = 4;
  constexpr std::uint64_t count = 50'000;
  std::vector<std::thread> running;
  std::atomic<std::uint64_t> won{0};
  for (unsigned i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      std::uint64_t mine = 0;
      for (std::uint64_t key = 1; key <= count; ++key) mine += t.put(key);
      won.fetch_add(mine, std::memory_order_relaxed);  // mo: relaxed: read after join
    });
  }
  for (std::thread& thread : running) thread.join();
  CHECK(won.load(std::memory_order_relaxed) == count);  // mo: relaxed: after join
}

TEST_CASE("table: segments are visited once each and cover everything", "[engine][table]") {
  Fixture t;
  for (std::uint64_t key = 1; key <= 20'000; ++key) REQUIRE(t.put(key));
  std::set<std::uint64_t> seen;
  t.table.for_each_segment([&](TestTable::Segment& segment) {
    for (std::uint32_t i = 0; i < t.table.line_count() * slots_per_line; ++i) {
      const SlotWord word = segment.slots()[i].load(std::memory_order_acquire);  // mo: as table.hpp
      if (slot::is_record(word)) CHECK(seen.insert(slot::handle(word)).second);
    }
  });
  CHECK(seen.size() == 20'000);
}
