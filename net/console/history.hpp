// The console's figures of the last hour: a ring of samples, and the counters of claims by
// namespace once a minute. Pure; the caller takes the numbers and the time.
//
// Memory: 360 samples of some 150 bytes, and at most 61 times 101 namespaces of 80 bytes and a
// name: less than 1 MiB.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "net/admin/metrics.hpp"
#include "net/console/console_limits.hpp"
#include "semel/types.hpp"

namespace semel::net {

/// Rates over the time before `unix_ms`, and figures as of then.
struct ConsoleSample {
  std::uint64_t number = 0;  ///< counts up by one
  std::int64_t unix_ms = 0;
  double seconds = 0;  ///< the length of that time
  double commands_per_second = 0;
  /// Latency of commands, an upper bound of their histogram; 0: there was no command.
  double p50_us = 0;
  double p99_us = 0;
  double max_us = 0;
  std::uint64_t bytes_used = 0;
  std::uint64_t bytes_resident = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes_unsynced = 0;
  double syncs_per_second = 0;
  double log_bytes_per_second = 0;
  std::uint64_t lag = 0;  ///< entries of the group
  std::array<double, claim_count_count> claims_per_second{};
};

class ConsoleHistory {
 public:
  void add(const MetricValues& values, std::int64_t unix_ms, Timestamp now);
  /// Whether it is time for add().
  [[nodiscard]] bool is_due(Timestamp now) const noexcept {
    return !has_last_ || now - last_.at >= console_limits::sample_every;
  }
  [[nodiscard]] const std::deque<ConsoleSample>& samples() const noexcept { return samples_; }

  /// By namespace, as of the last add().
  struct Claims {
    std::string_view name{};  ///< valid until the next add(); empty: all namespaces without a row
    std::array<std::uint64_t, claim_count_count> total{};
    std::array<std::uint64_t, claim_count_count> hour{};
    std::array<double, claim_count_count> per_second{};
  };
  [[nodiscard]] std::vector<Claims> claims() const;
  /// Claims of a namespace in each of the minutes() but the first.
  struct Course {
    std::string_view name{};  ///< as in Claims
    std::vector<std::array<std::uint64_t, claim_count_count>> counts{};
  };
  /// Of the namespaces with claims in that time; the others of the last add() have none.
  [[nodiscard]] std::vector<Course> courses() const;
  /// When their counters were read, from old to new: about once a minute in the last hour.
  [[nodiscard]] std::vector<std::int64_t> minutes() const;
  /// How long `hour` is: at most an hour and a minute.
  [[nodiscard]] Millis hour_span() const noexcept;

 private:
  struct Counts {
    Timestamp at{};
    std::int64_t unix_ms = 0;
    std::vector<NamespaceCounts> claims{};
  };
  struct Last {
    Timestamp at{};
    std::uint64_t commands = 0;
    std::vector<std::uint64_t> times{};
    std::uint64_t syncs = 0;
    std::uint64_t log_bytes = 0;
    std::vector<NamespaceCounts> claims{};
  };

  [[nodiscard]] static const NamespaceCounts* find(const std::vector<NamespaceCounts>& all,
                                                   std::size_t index, std::string_view name);

  std::deque<ConsoleSample> samples_;
  std::deque<Counts> counts_;
  bool is_hour_over_ = false;  // the first of counts_ is younger than the start
  bool has_last_ = false;
  Last last_;
  Last before_;  // the one in front of it
  std::uint64_t number_ = 0;
};

/// The upper bound of the bucket at the quantile `share` of a histogram of powers of two; 0: the
/// histogram is empty.
[[nodiscard]] double bound_of_share(const std::vector<std::uint64_t>& times, double share);

}  // namespace semel::net
