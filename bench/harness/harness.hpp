// What every measurement stands on: pinned threads that start together, a calibrated time-stamp
// counter, memory figures of the process, and a child process for each measurement, so that
// neither memory nor allocator state of one reaches the next.
#pragma once

#include <sys/types.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "bench/harness/histogram.hpp"
#include "semel/clock.hpp"

namespace semel::bench {

/// Says what went wrong and ends the process. A fast wrong answer must never become a figure.
[[noreturn]] void fail(const char* sentence);
inline void require(bool right, const char* sentence) {
  if (!right) [[unlikely]]
    fail(sentence);
}

void pin_to_core(unsigned core);

/// Ticks of the time-stamp counter per nanosecond; measured on the first call.
[[nodiscard]] double ticks_per_ns();

/// The clock of every map: a word that costs nothing to read. With a counter read in each operation
/// all maps would wait for their cache misses one by one, and look more alike than they are.
[[nodiscard]] const Clock& bench_clock();

/// CPU time of the calling thread.
[[nodiscard]] std::uint64_t thread_cpu_ns();
/// Lets others run until `ns` nanoseconds have passed.
void pause_ns(std::uint64_t ns);

struct Memory {
  double now = 0;   ///< resident bytes
  double peak = 0;  ///< most resident bytes so far
};
[[nodiscard]] Memory memory_of_process();

/// Counter readings around one operation: the first waits for what came before, the second for
/// the operation itself.
[[nodiscard]] inline std::uint64_t ticks_before() noexcept {
  _mm_lfence();
  const std::uint64_t ticks = __rdtsc();
  _mm_lfence();
  return ticks;
}
[[nodiscard]] inline std::uint64_t ticks_after() noexcept {
  unsigned core = 0;
  return __rdtscp(&core);
}

/// One of the threads of a measurement.
class Lane {
 public:
  Lane(unsigned index, unsigned count, std::atomic<unsigned>& waiting) noexcept
      : index_(index), count_(count), waiting_(waiting) {}

  [[nodiscard]] unsigned index() const noexcept { return index_; }

  /// This lane's part of 0..total-1: adjacent, of equal size but for the last one.
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  [[nodiscard]] Range share(std::uint64_t total) const noexcept {
    const std::uint64_t each = total / count_;
    return {each * index_, index_ + 1 == count_ ? total : each * (index_ + 1)};
  }

  /// Waits for the other lanes, then starts the watch.
  void start() noexcept {
    // mo: acq_rel [bench.gate]: what a lane prepared is there when the others start.
    waiting_.fetch_sub(1, std::memory_order_acq_rel);
    // mo: acquire [bench.gate]
    while (waiting_.load(std::memory_order_acquire) != 0) _mm_pause();
    begin_ = __rdtsc();
  }
  void stop() noexcept { end_ = __rdtsc(); }

  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

 private:
  unsigned index_;
  unsigned count_;
  std::atomic<unsigned>& waiting_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

/// Runs `body(lane)` on `threads` threads pinned to cores 0, 1, ..; returns seconds from the first
/// start to the last stop. The body calls lane.start(), works, and calls lane.stop().
template <class Body>
double run_lanes(unsigned threads, Body&& body) {
  std::atomic<unsigned> waiting{threads};
  std::vector<Lane> lanes;
  for (unsigned i = 0; i < threads; ++i) lanes.emplace_back(i, threads, waiting);
  std::vector<std::thread> running;
  for (Lane& lane : lanes) {
    running.emplace_back([&lane, &body] {
      pin_to_core(lane.index());
      body(lane);
    });
  }
  for (std::thread& thread : running) thread.join();
  std::uint64_t begin = lanes.front().begin();
  std::uint64_t end = lanes.front().end();
  for (const Lane& lane : lanes) {
    begin = std::min(begin, lane.begin());
    end = std::max(end, lane.end());
  }
  return static_cast<double>(end - begin) / ticks_per_ns() * 1e-9;
}

/// The same loop as a tail measurement with nothing to do: what the machine alone costs.
[[nodiscard]] Tail idle_tail(unsigned threads, double seconds);

/// Runs `work` in a child process and fills `result` with the bytes it wrote. False: it failed.
[[nodiscard]] bool run_in_child(std::span<std::byte> result,
                                const std::function<void(std::span<std::byte>)>& work);

/// `measure()` in a child process; none if it failed, which it has said on stderr.
template <class Measure>
[[nodiscard]] auto in_child(Measure&& measure) {
  using Figures = std::invoke_result_t<Measure>;
  static_assert(std::is_trivially_copyable_v<Figures>);
  Figures figures{};
  const bool ended =
      run_in_child(std::as_writable_bytes(std::span{&figures, 1}), [&](std::span<std::byte> out) {
        const Figures measured = measure();
        const auto bytes = std::as_bytes(std::span{&measured, 1});
        std::copy(bytes.begin(), bytes.end(), out.begin());
      });
  return ended ? std::optional<Figures>{figures} : std::nullopt;
}

}  // namespace semel::bench
