#include "net/console/history.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace semel::net {
namespace {

/// Counters may be reset (CONFIG RESETSTAT): then all of `now` was counted since.
std::uint64_t grown(std::uint64_t now, std::uint64_t before) noexcept {
  return now >= before ? now - before : now;
}

std::vector<std::uint64_t> grown(const std::vector<std::uint64_t>& now,
                                 const std::vector<std::uint64_t>& before) {
  std::vector<std::uint64_t> difference = now;
  for (std::size_t i = 0; i < std::min(now.size(), before.size()); ++i) {
    difference[i] = grown(now[i], before[i]);
  }
  return difference;
}

}  // namespace

double bound_of_share(const std::vector<std::uint64_t>& times, double share) {
  const auto all = std::accumulate(times.begin(), times.end(), std::uint64_t{0});
  if (all == 0) return 0;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(all)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    seen += times[i];
    if (seen >= std::max<std::uint64_t>(wanted, 1)) return std::ldexp(1.0, static_cast<int>(i));
  }
  return 0;
}

const NamespaceCounts* ConsoleHistory::find(const std::vector<NamespaceCounts>& all,
                                            std::size_t index, std::string_view name) {
  // Namespaces keep their order and new ones are appended; the rest, without a name, is the last.
  if (index < all.size() && all[index].name == name) return &all[index];
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const NamespaceCounts& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

void ConsoleHistory::add(const MetricValues& values, std::int64_t unix_ms, Timestamp now) {
  constexpr double ms_per_second = 1000;
  Last next{.at = now,
            .commands = values.commands,
            .times = values.command_times,
            .syncs = values.storage ? values.storage->syncs : 0,
            .log_bytes = values.storage ? values.storage->bytes : 0,
            .claims = values.claims};
  if (has_last_) {
    const double seconds =
        std::max(0.001, static_cast<double>((now - last_.at).count()) / ms_per_second);
    const auto rate = [&](std::uint64_t after, std::uint64_t before) {
      return static_cast<double>(grown(after, before)) / seconds;
    };
    const auto times = grown(next.times, last_.times);
    ConsoleSample sample{.number = ++number_,
                         .unix_ms = unix_ms,
                         .seconds = seconds,
                         .commands_per_second = rate(next.commands, last_.commands),
                         .p50_us = bound_of_share(times, 0.5),
                         .p99_us = bound_of_share(times, 0.99),
                         .max_us = bound_of_share(times, 1),
                         .bytes_used = values.engine.bytes_used,
                         .bytes_resident = values.process ? values.process->resident_bytes : 0,
                         .records = values.engine.records,
                         .bytes_unsynced = values.storage ? values.storage->bytes_unsynced : 0,
                         .syncs_per_second = rate(next.syncs, last_.syncs),
                         .log_bytes_per_second = rate(next.log_bytes, last_.log_bytes),
                         .lag = values.group ? values.group->lag : 0};
    for (std::size_t i = 0; i < next.claims.size(); ++i) {
      const NamespaceCounts& each = next.claims[i];
      const NamespaceCounts* const earlier = find(last_.claims, i, each.name);
      for (std::size_t kind = 0; kind < claim_count_count; ++kind) {
        sample.claims_per_second[kind] +=
            rate(each.counts[kind], earlier == nullptr ? 0 : earlier->counts[kind]);
      }
    }
    samples_.push_back(sample);
    if (samples_.size() > console_limits::samples_max) samples_.pop_front();
  }
  constexpr Millis counts_every = console_limits::sample_every *
                                  static_cast<std::int64_t>(console_limits::samples_between_counts);
  if (counts_.empty() || now - counts_.back().at >= counts_every) {
    counts_.push_back({now, unix_ms, values.claims});
    if (counts_.size() > console_limits::counts_max) {
      counts_.pop_front();
      is_hour_over_ = true;
    }
  }
  before_ = has_last_ ? std::move(last_) : next;
  last_ = std::move(next);
  has_last_ = true;
}

std::vector<ConsoleHistory::Claims> ConsoleHistory::claims() const {
  constexpr double ms_per_second = 1000;
  std::vector<Claims> all;
  const double seconds = static_cast<double>((last_.at - before_.at).count()) / ms_per_second;
  for (std::size_t i = 0; i < last_.claims.size(); ++i) {
    const NamespaceCounts& now = last_.claims[i];
    Claims claims{.name = now.name, .total = now.counts};
    // During the first hour, count everything since the start.
    const NamespaceCounts* const hour_ago =
        is_hour_over_ ? find(counts_.front().claims, i, now.name) : nullptr;
    const NamespaceCounts* const before = find(before_.claims, i, now.name);
    for (std::size_t kind = 0; kind < claim_count_count; ++kind) {
      const std::uint64_t count = now.counts[kind];
      claims.hour[kind] = grown(count, hour_ago == nullptr ? 0 : hour_ago->counts[kind]);
      if (seconds <= 0) continue;
      claims.per_second[kind] =
          static_cast<double>(grown(count, before == nullptr ? 0 : before->counts[kind])) / seconds;
    }
    all.push_back(claims);
  }
  return all;
}

std::vector<ConsoleHistory::Course> ConsoleHistory::courses() const {
  std::vector<Course> all;
  if (counts_.size() < 2) return all;
  const std::vector<NamespaceCounts>& newest = counts_.back().claims;
  for (std::size_t i = 0; i < newest.size(); ++i) {
    Course course{.name = newest[i].name};
    bool has_claims = false;
    const NamespaceCounts* before = find(counts_.front().claims, i, course.name);
    for (std::size_t minute = 1; minute < counts_.size(); ++minute) {
      const NamespaceCounts* const after = find(counts_[minute].claims, i, course.name);
      auto& counts = course.counts.emplace_back();
      for (std::size_t kind = 0; after != nullptr && kind < claim_count_count; ++kind) {
        counts[kind] = grown(after->counts[kind], before == nullptr ? 0 : before->counts[kind]);
        has_claims = has_claims || counts[kind] != 0;
      }
      before = after;
    }
    if (has_claims) all.push_back(std::move(course));
  }
  return all;
}

std::vector<std::int64_t> ConsoleHistory::minutes() const {
  std::vector<std::int64_t> all;
  for (const Counts& each : counts_) all.push_back(each.unix_ms);
  return all;
}

Millis ConsoleHistory::hour_span() const noexcept {
  return counts_.empty() ? Millis{0} : last_.at - counts_.front().at;
}

}  // namespace semel::net
