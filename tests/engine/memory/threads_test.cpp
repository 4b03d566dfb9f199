// Which threads are inside, and when memory may be reused.
// Words: reader = a thread inside an operation; retire = take out of the table; reuse = the sink
// gets it back.
#include "engine/memory/threads.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

/// Counts and remembers what came back.
class CountingSink final : public SegmentSink {
 public:
  void reuse_segment(void* segment) noexcept override {
    const std::lock_guard lock{mutex_};
    back_.insert(segment);
  }
  [[nodiscard]] bool has(const void* segment) const {
    const std::lock_guard lock{mutex_};
    return back_.contains(const_cast<void*>(segment));
  }
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock{mutex_};
    return back_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::set<void*> back_;
};

/// Lets two threads take turns without time.
class Steps {
 public:
  void reach(int step) {
    const std::lock_guard lock{mutex_};
    step_ = step;
    changed_.notify_all();
  }
  void wait_for(int step) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return step_ >= step; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int step_ = 0;
};

struct Fixture {
  Fixture() { REQUIRE(region.reserve(std::size_t{16} << 20)); }
  void retire(const void* segment) {
    ThreadContext& own = threads.context();
    threads.enter(own);
    threads.retire_segment(own, const_cast<void*>(segment), 1);
    threads.leave(own);
  }
  void collect(int times) {
    for (int i = 0; i < times; ++i) threads.collect_now(threads.context());
  }
  [[nodiscard]] std::size_t context_count() {
    std::size_t count = 0;
    threads.for_each([&](ThreadContext&) { ++count; });
    return count;
  }

  Region region;
  CountingSink sink;
  std::unique_ptr<Arena> arena = std::make_unique<Arena>(region);
  Threads threads{*arena, sink};
  std::vector<char> memory = std::vector<char>(std::size_t{4} << 20);
};

}  // namespace

TEST_CASE("threads: what was retired comes back after everyone has passed, not before",
          "[engine][threads]") {
  Fixture f;
  f.retire(&f.memory[0]);
  CHECK_FALSE(f.sink.has(&f.memory[0]));
  f.collect(4);
  CHECK(f.sink.has(&f.memory[0]));
}

std::atomic<int> interruptions{0};
const Barrier counting{[]() noexcept { return Barrier::of_kernel().prepare(); },
                       []() noexcept {
                         interruptions.fetch_add(1, std::memory_order_relaxed);
                         return Barrier::of_kernel().run();
                       }};

TEST_CASE("threads: a thread in upkeep interrupts the others an eighth as often",
          "[engine][threads]") {
  Fixture f;
  Threads threads{*f.arena, f.sink, counting};
  ThreadContext& own = threads.context();
  const auto interruptions_of = [&](bool in_upkeep, int count) {
    const int before = interruptions.load(std::memory_order_relaxed);
    own.in_upkeep = in_upkeep;
    threads.enter(own);
    for (int i = 0; i < count; ++i) threads.retire_segment(own, &f.memory[0], 1);
    threads.leave(own);
    own.in_upkeep = false;
    return interruptions.load(std::memory_order_relaxed) - before;
  };
  CHECK(interruptions_of(false, 8'192) == 16);
  CHECK(interruptions_of(true, 8'192) == 2);
  threads.collect_all(own);
}

TEST_CASE("threads: a segment at an address as small as a handle comes back as a segment",
          "[engine][threads]") {
  Fixture f;
  const auto* const low = reinterpret_cast<const void*>(std::uintptr_t{0x540'0000});
  f.retire(low);
  f.collect(4);
  CHECK(f.sink.has(low));
}

TEST_CASE("threads: nothing a reader may look at is reused while it is inside",
          "[engine][threads][race]") {
  Fixture f;
  Steps steps;
  std::thread reader{[&] {
    ThreadContext& own = f.threads.context();
    f.threads.enter(own);
    steps.reach(1);
    steps.wait_for(2);
    f.threads.leave(own);
    f.threads.enter(own);  // inside again, but it cannot know of what was retired before
    steps.reach(3);
    steps.wait_for(4);
    f.threads.leave(own);
  }};
  steps.wait_for(1);
  f.retire(&f.memory[0]);
  f.collect(20);
  CHECK_FALSE(f.sink.has(&f.memory[0]));
  steps.reach(2);
  steps.wait_for(3);
  f.collect(1);
  f.retire(&f.memory[1]);
  f.collect(20);
  CHECK_FALSE(f.sink.has(&f.memory[1]));
  steps.reach(4);
  reader.join();
  f.collect(4);
  CHECK(f.sink.has(&f.memory[0]));
  CHECK(f.sink.has(&f.memory[1]));
}

TEST_CASE("threads: collect_all leaves nothing, not even of threads that have gone",
          "[engine][threads]") {
  Fixture f;
  for (int i = 0; i < 3; ++i) {
    std::thread{[&] { f.retire(&f.memory[static_cast<std::size_t>(i)]); }}.join();
  }
  f.retire(&f.memory[10]);
  f.threads.collect_all(f.threads.context());
  CHECK(f.sink.count() == 4);
}

TEST_CASE("threads: a context is taken over by the next thread", "[engine][threads][race]") {
  Fixture f;
  static_cast<void>(f.threads.context());
  CHECK(f.context_count() == 1);
  for (int i = 0; i < 10; ++i) {
    std::thread{[&] { f.threads.context().bump(Count::hits); }}.join();
  }
  CHECK(f.context_count() == 2);
  CHECK(f.threads.sum(Count::hits) == 10);
  // Two at a time need one more.
  Steps steps;
  std::thread first{[&] {
    f.threads.context().bump(Count::hits);
    steps.reach(1);
    steps.wait_for(2);
  }};
  steps.wait_for(1);
  std::thread{[&] { f.threads.context().bump(Count::hits); }}.join();
  steps.reach(2);
  first.join();
  CHECK(f.context_count() == 3);
  CHECK(f.threads.sum(Count::hits) == 12);
}

TEST_CASE("threads: one thread inside several has a context in each", "[engine][threads]") {
  Fixture one;
  Fixture other;
  ThreadContext& first = one.threads.context();
  ThreadContext& second = other.threads.context();
  CHECK(&first != &second);
  CHECK(&one.threads.context() == &first);
  CHECK(&other.threads.context() == &second);
}

TEST_CASE("threads: wait_for_others returns after the operations under way, and sees what they did",
          "[engine][threads][race]") {
  Fixture f;
  Steps steps;
  int done = 0;  // no atomic: the wait itself must order it
  std::vector<std::thread> operations;
  std::atomic<int> inside{0};
  for (int t = 0; t < 2; ++t) {
    operations.emplace_back([&, t] {
      ThreadContext& own = f.threads.context();
      f.threads.enter(own);
      if (inside.fetch_add(1, std::memory_order_acq_rel) == 1) steps.reach(1);
      steps.wait_for(2);
      if (t == 0) done = 7;
      f.threads.leave(own);
    });
  }
  steps.wait_for(1);
  steps.reach(2);
  f.threads.wait_for_others(f.threads.context());
  CHECK(done == 7);
  for (std::thread& operation : operations) operation.join();
  f.threads.wait_for_others(f.threads.context());  // no thread is inside: at once
}

TEST_CASE("threads: the end of a thread after the end of its engine touches nothing",
          "[engine][threads][race]") {
  Steps steps;
  auto f = std::make_unique<Fixture>();
  std::thread late{[&] {
    static_cast<void>(f->threads.context());
    steps.reach(1);
    steps.wait_for(2);
  }};
  steps.wait_for(1);
  f.reset();
  steps.reach(2);
  late.join();
  Fixture next;
  static_cast<void>(next.threads.context());
  CHECK(next.context_count() == 1);
}

TEST_CASE("threads: a sum that is read between one thread's plus and another's minus is not huge",
          "[engine][threads]") {
  Fixture f;
  f.threads.context().bump(Count::records, ~std::uint64_t{0});
  CHECK(f.threads.sum(Count::records) == 0);
  f.threads.context().bump(Count::records, 3);
  CHECK(f.threads.sum(Count::records) == 2);
}

namespace {

/// A piece of memory that says whether it is in use.
struct Node {
  std::atomic<std::uint64_t> alive{1};
  char padding[192]{};
};

/// Marks what comes back, and has it written anew at once.
class MarkingSink final : public SegmentSink {
 public:
  void reuse_segment(void* segment) noexcept override {
    static_cast<Node*>(segment)->alive.store(0, std::memory_order_relaxed);
    const std::lock_guard lock{mutex_};
    free_.push_back(static_cast<Node*>(segment));
  }
  Node* take() {
    const std::lock_guard lock{mutex_};
    if (free_.empty()) return nullptr;
    Node* const node = free_.back();
    free_.pop_back();
    return node;
  }

 private:
  std::mutex mutex_;
  std::vector<Node*> free_;
};

}  // namespace

namespace {

/// A barrier that works as often as the test says; the kernel's, but that it can be counted.
std::atomic<int> works_left{0};
const Barrier failing{[]() noexcept { return Barrier::of_kernel().prepare(); },
                      []() noexcept {
                        // mo: relaxed: a count
                        return works_left.fetch_sub(1, std::memory_order_relaxed) > 0 &&
                               Barrier::of_kernel().run();
                      }};

void play_readers_and_writers(const Barrier& barrier) {
  Region region;
  REQUIRE(region.reserve(std::size_t{16} << 20));
  MarkingSink sink;
  Arena arena{region};
  Threads threads{arena, sink, barrier};
  constexpr std::size_t node_count = 8192;
  const auto nodes = std::make_unique<Node[]>(node_count);
  std::atomic<std::size_t> fresh{1};
  std::atomic<Node*> shared{&nodes[0]};
  std::atomic<int> dead{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 2; ++t) {
    all.emplace_back([&] {  // writers: replace and retire
      for (int i = 0; i < 10'000; ++i) {
        Node* node = sink.take();
        if (node == nullptr) {
          const std::size_t index = fresh.fetch_add(1, std::memory_order_relaxed);
          if (index >= node_count) continue;
          node = &nodes[index];
        }
        node->alive.store(1, std::memory_order_relaxed);
        ThreadContext& own = threads.context();
        threads.enter(own);
        Node* const old = shared.exchange(node, std::memory_order_acq_rel);
        threads.retire_segment(own, old, 4096);
        threads.leave(own);
      }
    });
    all.emplace_back([&] {  // readers
      for (int i = 0; i < 60'000; ++i) {
        ThreadContext& own = threads.context();
        threads.enter(own);
        const Node* const node = shared.load(std::memory_order_acquire);
        for (int look = 0; look < 8; ++look) {
          if (node->alive.load(std::memory_order_relaxed) != 1) {
            dead.fetch_add(1, std::memory_order_relaxed);
          }
        }
        threads.leave(own);
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  CHECK(dead.load(std::memory_order_acquire) == 0);
}

}  // namespace

TEST_CASE("threads: readers never meet memory that was given back", "[engine][threads][race]") {
  play_readers_and_writers(Barrier::of_kernel());
}

TEST_CASE("threads: nor where the kernel has no membarrier, or stops to allow it",
          "[engine][threads][race][attack][fault-21]") {
  works_left.store(GENERATE(0, 1, 5), std::memory_order_relaxed);  // mo: relaxed: a count
  play_readers_and_writers(failing);
}

TEST_CASE("threads: the list of what is retired keeps its order, and its promise of room",
          "[engine][threads][attack][fault-18]") {
  RetireList list;
  std::uint64_t pushed = 0;
  std::uint64_t popped = 0;
  const auto pop = [&] {
    std::array<std::uint64_t, 1> oldest{};
    REQUIRE(list.pop(1, oldest) == 1);
    REQUIRE(oldest[0] == ++popped);
  };
  for (const std::size_t step : {1U, 125U, 126U, 127U, 300U, 1U}) {
    for (std::size_t i = 0; i < step; ++i) REQUIRE(list.push({++pushed, 1}));
    REQUIRE(list.reserve());
    for (std::size_t i = 0; i < step; i += 2) pop();
  }
  while (!list.empty()) pop();
  CHECK(popped == pushed);
}

}  // namespace semel::engine
