// What a node counts: each thread in a lane of its own, summed on request.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "net/time/ticks.hpp"

namespace semel::net {

/// Times by their power of two: bucket i counts what took at most 2^i microseconds.
inline constexpr std::size_t time_buckets = 24;
[[nodiscard]] std::size_t time_bucket(std::int64_t ns) noexcept;

/// Of one command.
struct CommandTotals {
  std::uint64_t calls = 0;
  std::uint64_t ns = 0;
  std::uint64_t rejected = 0;  ///< before they ran
  std::uint64_t failed = 0;    ///< while they ran
  std::array<std::uint64_t, time_buckets> times{};
};

/// How many calls are counted by their time: not those while latency-tracking was off.
[[nodiscard]] std::uint64_t counted_times(const CommandTotals& totals) noexcept;

struct NodeTotals {
  std::vector<CommandTotals> commands{};  ///< by index_of(row)
  /// By the first word of the reply. Words that scripts make up are bounded: the rest is `other`.
  std::map<std::string, std::uint64_t> errors{};
  std::uint64_t calls = 0;
  std::uint64_t error_replies = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t reads = 0;  ///< rounds of requests
  std::uint64_t connections = 0;
};

/// What one thread counts. One writer; others read it for people.
class StatsLane {
 public:
  /// Of `command_count` commands, as NodeStats, which owns `counts_times` and outlives each call.
  explicit StatsLane(std::size_t command_count, const std::atomic<bool>& counts_times);
  StatsLane(const StatsLane&) = delete;
  StatsLane& operator=(const StatsLane&) = delete;

  /// The thread's present: the end of the last measured command.
  [[nodiscard]] std::int64_t now() const noexcept { return now_; }
  /// Goes on to `ticks`' now; returns how much that was.
  std::int64_t lap(const TickSource& ticks) noexcept {
    const std::int64_t before = now_;
    now_ = ticks.ns();
    return now_ - before;
  }

  void called(std::size_t command, std::int64_t ns_each, std::uint64_t count = 1) noexcept {
    Cells& cells = commands_[command];
    add(cells.calls, count);
    add(cells.ns, static_cast<std::uint64_t>(ns_each) * count);
    // mo: relaxed: a setting.
    if (!counts_times_.load(std::memory_order_relaxed)) return;
    add(cells.times[time_bucket(ns_each)], count);
  }
  /// `reply` begins with the error. `command` may be no_command.
  void failed(std::size_t command, std::string_view reply);
  void rejected(std::size_t command, std::string_view reply);
  /// failed(), with an error that is counted.
  void failed_again(std::size_t command) noexcept { add(commands_[command].failed, 1); }
  void moved(std::size_t received, std::size_t sent) noexcept {
    add(received_, received);
    add(sent_, sent);
    add(reads_, 1);
  }
  void connected() noexcept { add(connections_, 1); }

  static constexpr std::size_t no_command = ~std::size_t{0};
  /// Error codes made up by scripts that are counted by name.
  static constexpr std::size_t made_up_errors_max = 32;

  /// The thread writes no more; another thread may take the lane.
  void let_go() noexcept {
    taken_.store(false, std::memory_order_release);  // mo: release [net.lane]: the counts
  }

 private:
  friend class NodeStats;
  using Cell = std::atomic<std::uint64_t>;
  struct Cells {
    Cell calls{0};
    Cell ns{0};
    Cell rejected{0};
    Cell failed{0};
    std::array<Cell, time_buckets> times{};
  };

  static void add(Cell& cell, std::uint64_t by) noexcept {
    // mo: relaxed: one writer; readers want a recent figure, not an order.
    cell.store(cell.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  void count_error(std::string_view reply);
  void add_to(NodeTotals& totals) const;

  std::unique_ptr<Cells[]> commands_;
  const std::atomic<bool>& counts_times_;
  Cell received_{0};
  Cell sent_{0};
  Cell reads_{0};
  Cell connections_{0};
  std::int64_t now_ = 0;  // the writer's alone
  std::atomic<bool> taken_{true};
  mutable base::Mutex mutex_;
  std::map<std::string, std::uint64_t, std::less<>> errors_ SEMEL_GUARDED_BY(mutex_);
  std::size_t made_up_ SEMEL_GUARDED_BY(mutex_) = 0;
};

/// Owns a lane, and returns it at its end.
struct HeldLane {
  HeldLane() = default;
  ~HeldLane() {
    if (lane != nullptr) lane->let_go();
  }
  HeldLane(const HeldLane&) = delete;
  HeldLane& operator=(const HeldLane&) = delete;
  std::shared_ptr<StatsLane> lane;
};

class NodeStats {
 public:
  /// Commands are numbers below `command_count`.
  explicit NodeStats(std::size_t command_count) : command_count_(command_count) {}
  NodeStats(const NodeStats&) = delete;
  NodeStats& operator=(const NodeStats&) = delete;

  /// The lane that a thread keeps in `held`: a new one, if it holds none of this node.
  [[nodiscard]] StatsLane& lane(std::shared_ptr<StatsLane>& held);
  [[nodiscard]] NodeTotals totals() const;
  /// Counts from 0 again (CONFIG RESETSTAT).
  void reset();

  /// To be called ten times a second or more; `now_ms` goes on.
  void sample(std::int64_t now_ms);
  /// Whether commands that end from now on are counted by their time as well.
  void set_counts_times(bool counts) noexcept {
    counts_times_.store(counts, std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  [[nodiscard]] std::uint64_t calls_per_second() const;
  [[nodiscard]] double received_kb_per_second() const;
  [[nodiscard]] double sent_kb_per_second() const;

  void connection_refused() noexcept {
    refused_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  /// A connection was closed because it spoke HTTP.
  void http_refused() noexcept {
    http_refused_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  [[nodiscard]] std::uint64_t refused_http() const noexcept {
    return http_refused_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  [[nodiscard]] std::uint64_t refused() const noexcept {
    return refused_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

  std::atomic<std::uint64_t> memory_peak{0};  ///< the most that INFO has seen in use

 private:
  struct Sample {
    std::int64_t ms = 0;
    std::uint64_t calls = 0;
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
  };
  static constexpr std::size_t sample_count = 16;  // the last one and a half seconds

  [[nodiscard]] NodeTotals sum() const SEMEL_REQUIRES(mutex_);
  template <class Field>
  [[nodiscard]] double per_second(Field Sample::*field) const;

  const std::size_t command_count_;
  std::atomic<bool> counts_times_{true};
  mutable base::Mutex mutex_;
  std::vector<std::shared_ptr<StatsLane>> lanes_ SEMEL_GUARDED_BY(mutex_);
  NodeTotals base_ SEMEL_GUARDED_BY(mutex_);  // what counts as 0
  std::array<Sample, sample_count> samples_ SEMEL_GUARDED_BY(mutex_){};
  std::size_t samples_taken_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> http_refused_{0};
};

}  // namespace semel::net
