#include "net/stats/node_stats.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace semel::net {
namespace {

// Texts of errors come from handlers, not from clients; scripts may make up their own.
constexpr std::size_t error_bytes_max = 64;
constexpr std::string_view other_errors = "other";

// The node's own errors are always counted by name, however many scripts have made up.
constexpr std::array<std::string_view, 24> known_errors = {
    "ASK",   "BUSY",      "BUSYGROUP", "BUSYKEY",    "CROSSSLOT",  "DENIED",
    "ERR",   "EXECABORT", "INPROG",    "LOADING",    "MASTERDOWN", "MISCONF",
    "MOVED", "NOAUTH",    "NOPERM",    "NOPROTO",    "NOSCRIPT",   "NOTBUSY",
    "OOM",   "TRYAGAIN",  "UNBLOCKED", "UNKILLABLE", "WRONGPASS",  "WRONGTYPE"};

bool is_known(std::string_view word) noexcept {
  return std::find(known_errors.begin(), known_errors.end(), word) != known_errors.end();
}

/// As a name of INFO and a label it would mean something else.
bool is_odd(std::string_view word) noexcept {
  return word.empty() || word.size() > error_bytes_max ||
         std::any_of(word.begin(), word.end(), [](char c) {
           return c <= ' ' || c > '~' || c == ':' || c == ',' || c == '=';
         });
}

std::uint64_t less(std::uint64_t now, std::uint64_t base) noexcept {
  return now - std::min(now, base);
}

void subtract(NodeTotals& from, const NodeTotals& base) {
  for (std::size_t i = 0; i < std::min(from.commands.size(), base.commands.size()); ++i) {
    CommandTotals& command = from.commands[i];
    const CommandTotals& zero = base.commands[i];
    command.calls = less(command.calls, zero.calls);
    command.ns = less(command.ns, zero.ns);
    command.rejected = less(command.rejected, zero.rejected);
    command.failed = less(command.failed, zero.failed);
    for (std::size_t b = 0; b < time_buckets; ++b) {
      command.times[b] = less(command.times[b], zero.times[b]);
    }
  }
  for (const auto& [word, count] : base.errors) {
    const auto found = from.errors.find(word);
    if (found == from.errors.end()) continue;
    found->second = less(found->second, count);
    if (found->second == 0) from.errors.erase(found);
  }
  from.calls = less(from.calls, base.calls);
  from.error_replies = less(from.error_replies, base.error_replies);
  from.bytes_received = less(from.bytes_received, base.bytes_received);
  from.bytes_sent = less(from.bytes_sent, base.bytes_sent);
  from.reads = less(from.reads, base.reads);
  from.connections = less(from.connections, base.connections);
}

}  // namespace

std::size_t time_bucket(std::int64_t ns) noexcept {
  const std::uint64_t us = ns <= 1'000 ? 1 : static_cast<std::uint64_t>(ns + 999) / 1'000;
  return std::min(static_cast<std::size_t>(std::bit_width(us - 1)), time_buckets - 1);
}

std::uint64_t counted_times(const CommandTotals& totals) noexcept {
  return std::accumulate(totals.times.begin(), totals.times.end(), std::uint64_t{0});
}

StatsLane::StatsLane(std::size_t command_count, const std::atomic<bool>& counts_times)
    : commands_(std::make_unique<Cells[]>(command_count)), counts_times_(counts_times) {}

void StatsLane::failed(std::size_t command, std::string_view reply) {
  if (command != no_command) add(commands_[command].failed, 1);
  count_error(reply);
}

void StatsLane::rejected(std::size_t command, std::string_view reply) {
  if (command != no_command) add(commands_[command].rejected, 1);
  count_error(reply);
}

void StatsLane::count_error(std::string_view reply) {
  if (!reply.starts_with('-')) return;
  const std::size_t end = std::min(reply.find_first_of(" \r"), reply.size());
  std::string_view word = reply.substr(1, end - 1);
  if (is_odd(word)) word = other_errors;
  const base::MutexLock lock{mutex_};
  auto found = errors_.find(word);
  if (found == errors_.end()) {
    const bool is_ours = is_known(word) || word == other_errors;
    if (!is_ours && made_up_ == made_up_errors_max) {
      word = other_errors;
    } else if (!is_ours) {
      ++made_up_;
    }
    found = errors_.try_emplace(std::string{word}, 0).first;
  }
  ++found->second;
}

void StatsLane::add_to(NodeTotals& totals) const {
  // mo: relaxed: statistics, as all below.
  const auto read = [](const Cell& cell) { return cell.load(std::memory_order_relaxed); };
  for (std::size_t i = 0; i < totals.commands.size(); ++i) {
    CommandTotals& command = totals.commands[i];
    const Cells& cells = commands_[i];
    const std::uint64_t calls = read(cells.calls);
    command.calls += calls;
    totals.calls += calls;
    command.ns += read(cells.ns);
    command.rejected += read(cells.rejected);
    command.failed += read(cells.failed);
    for (std::size_t b = 0; b < time_buckets; ++b) command.times[b] += read(cells.times[b]);
  }
  totals.bytes_received += read(received_);
  totals.bytes_sent += read(sent_);
  totals.reads += read(reads_);
  totals.connections += read(connections_);
  const base::MutexLock lock{mutex_};
  for (const auto& [word, count] : errors_) {
    totals.errors[word] += count;
    totals.error_replies += count;
  }
}

StatsLane& NodeStats::lane(std::shared_ptr<StatsLane>& held) {
  const base::MutexLock lock{mutex_};
  if (held != nullptr) {
    if (std::find(lanes_.begin(), lanes_.end(), held) != lanes_.end()) return *held;
    held->let_go();  // of another node
  }
  for (const auto& lane : lanes_) {
    // mo: acquire [net.lane]: of the thread that let it go.
    if (lane->taken_.exchange(true, std::memory_order_acquire)) continue;
    held = lane;
    return *held;
  }
  held = std::make_shared<StatsLane>(command_count_, counts_times_);
  lanes_.push_back(held);
  return *held;
}

NodeTotals NodeStats::sum() const {
  NodeTotals totals;
  totals.commands.resize(command_count_);
  for (const auto& lane : lanes_) lane->add_to(totals);
  return totals;
}

NodeTotals NodeStats::totals() const {
  const base::MutexLock lock{mutex_};
  NodeTotals totals = sum();
  subtract(totals, base_);
  return totals;
}

void NodeStats::reset() {
  const base::MutexLock lock{mutex_};
  base_ = sum();
}

void NodeStats::sample(std::int64_t now_ms) {
  const base::MutexLock lock{mutex_};
  constexpr std::int64_t step_ms = 100;
  if (samples_taken_ != 0 && now_ms - samples_[(samples_taken_ - 1) % sample_count].ms < step_ms) {
    return;
  }
  Sample sample{.ms = now_ms};
  for (const auto& lane : lanes_) {
    // mo: relaxed: statistics.
    for (std::size_t i = 0; i < command_count_; ++i) {
      sample.calls += lane->commands_[i].calls.load(std::memory_order_relaxed);
    }
    // mo: relaxed: statistics.
    sample.received += lane->received_.load(std::memory_order_relaxed);
    sample.sent += lane->sent_.load(std::memory_order_relaxed);
  }
  samples_[samples_taken_++ % sample_count] = sample;
}

template <class Field>
double NodeStats::per_second(Field Sample::*field) const {
  const base::MutexLock lock{mutex_};
  if (samples_taken_ < 2) return 0;
  const Sample& last = samples_[(samples_taken_ - 1) % sample_count];
  const Sample& first =
      samples_taken_ > sample_count ? samples_[samples_taken_ % sample_count] : samples_[0];
  if (last.ms <= first.ms) return 0;
  return static_cast<double>(last.*field - first.*field) * 1000.0 /
         static_cast<double>(last.ms - first.ms);
}

std::uint64_t NodeStats::calls_per_second() const {
  return static_cast<std::uint64_t>(per_second(&Sample::calls));
}
double NodeStats::received_kb_per_second() const {
  return per_second(&Sample::received) / 1024;
}
double NodeStats::sent_kb_per_second() const {
  return per_second(&Sample::sent) / 1024;
}

}  // namespace semel::net
