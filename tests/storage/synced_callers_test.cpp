// Words used in these tests
//   caller   a thread that waits for `synced`
//   round    one sync of the log, which answers all callers whose records it covers
#include <atomic>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "storage/log/disk.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// Counts the syncs of the log's segments. They are made by one thread, one after the other.
class CountingDisk final : public storage::Disk {
 public:
  [[nodiscard]] Status sync_part(char* memory, const std::string& path, std::size_t from,
                                 std::size_t to) override {
    begun.fetch_add(1, std::memory_order_seq_cst);  // mo: seq_cst: callers read both
    Status synced = Disk::sync_part(memory, path, from, to);
    ended.fetch_add(1, std::memory_order_seq_cst);  // mo: seq_cst: as above
    return synced;
  }
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> ended{0};
};

}  // namespace

TEST_CASE("synced: of more callers than processors none is answered by an earlier round",
          "[storage][race]") {
  // Few callers sleep until their round has ended; many pass their processors to each other.
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  const unsigned callers = GENERATE_COPY(2U, 4 * processors + 8);
  constexpr int each = 25;
  const Directory directory;
  ManualClock clock;
  CountingDisk disk;
  auto storage = Storage::open({.directory = directory.path(), .disk = &disk}, clock);
  REQUIRE(storage);
  auto engine = Engine::open({.clock = &clock,
                              .journal = storage->get(),
                              .durability = Durability::synced,
                              .memory_bytes = std::size_t{64} << 20,
                              .first_version = (*storage)->first_version()});
  REQUIRE(engine);
  REQUIRE((*storage)->recover(**engine));
  std::atomic<unsigned> refused{0};
  std::atomic<unsigned> early{0};
  std::vector<std::thread> threads;
  for (unsigned caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&, caller] {
      Store store = (*engine)->store();
      for (int i = 0; i < each; ++i) {
        // What has begun by now was begun without the record.
        // mo: seq_cst: in one order with the counting, here and below
        const std::uint64_t before = disk.begun.load(std::memory_order_seq_cst);
        const bool good = store.set(std::to_string(caller) + "." + std::to_string(i), "v").ok();
        const std::uint64_t after =
            disk.ended.load(std::memory_order_seq_cst);  // mo: seq_cst: as above
        if (!good) ++refused;
        if (after <= before) ++early;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(refused == 0);
  CHECK(early == 0);
  CHECK((*engine)->size(0) == std::size_t{callers} * each);
}

}  // namespace semel::tests
