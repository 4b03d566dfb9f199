// The gateway's counters, and their text for Prometheus.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "gateway/guard/memory.hpp"
#include "gateway/rules/outcome.hpp"
#include "gateway/rules/route.hpp"

namespace semel::gateway {

class Counter {
 public:
  void add(std::uint64_t by = 1) noexcept {
    value_.fetch_add(by, std::memory_order_relaxed);  // mo: relaxed: a statistic, not an order
  }
  void subtract() noexcept {
    value_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: a statistic, not an order
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic, not an order
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Times in buckets, as Prometheus' histograms are.
class Histogram {
 public:
  /// Upper bounds in microseconds.
  static constexpr std::array<std::uint64_t, 12> bounds{250,     500,       1'000,     2'500,
                                                        5'000,   10'000,    25'000,    100'000,
                                                        500'000, 1'000'000, 5'000'000, 30'000'000};
  void add(std::uint64_t microseconds) noexcept;
  void append_text(std::string& text, const std::string& name) const;

 private:
  std::array<Counter, bounds.size() + 1> buckets_;
  Counter sum_;
};

/// The counts of one route, or of requests without one.
struct RouteCounts {
  explicit RouteCounts(std::string called) : name(std::move(called)) {}
  const std::string name;
  std::array<Counter, outcome_count> outcomes{};
};

/// One object for all threads of a gateway.
class Counters {
 public:
  /// Counts for each of `routes`, and last for the default. A name that is shown already keeps its
  /// counts.
  [[nodiscard]] std::vector<std::shared_ptr<RouteCounts>> counts_for(
      const std::vector<Route>& routes) const;
  /// Sets the counts that text() shows from now on.
  void show(std::vector<std::shared_ptr<RouteCounts>> routes);

  void count_request(RouteCounts& route, Outcome outcome, unsigned status,
                     std::uint64_t microseconds) noexcept;
  [[nodiscard]] std::string text(const MemoryBudget& memory) const;

  Counter connections;          ///< open now
  Counter connections_refused;  ///< beyond the limit
  Counter clients_dropped;      ///< their connection was needed by another
  Counter requests_open;        ///< whose head has arrived, and that are not answered
  Counter upstream_opened;
  Counter upstream_reused;
  Counter upstream_failed;     ///< connecting, or its TLS
  Counter replies_unrecorded;  ///< passed on, but the store did not take them
  Counter leases_superseded;   ///< a reply came after its lease was lost
  Counter log_lines_lost;
  // Of a node as the store.
  Counter store_connections;      ///< that serve now
  Counter store_connects_failed;  ///< or refused by the node
  Counter store_repeated;         ///< commands that were sent again
  Counter store_unanswered;       ///< calls that ended without an answer

 private:
  mutable base::Mutex mutex_;
  std::vector<std::shared_ptr<RouteCounts>> routes_ SEMEL_GUARDED_BY(mutex_);
  std::array<Counter, 6> status_classes_;
  Histogram durations_;
};

}  // namespace semel::gateway
