// SLOWLOG and LATENCY: what took long.
#include <algorithm>
#include <limits>

#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/stats/latency_events.hpp"
#include "net/stats/node_stats.hpp"
#include "net/stats/slow_log.hpp"

namespace semel::net {
namespace {

std::optional<LatencyEvent> event_of(Services& services, std::string_view name) {
  for (LatencyEvent& event : services.latency.all()) {
    if (event.name == name) return std::move(event);
  }
  return std::nullopt;
}

void write_histogram(Call& call, const CommandRow& row, const CommandTotals& totals) {
  call.reply.bulk(row.name);
  call.reply.map(2);
  call.reply.bulk("calls");
  call.reply.integer(static_cast<std::int64_t>(counted_times(totals)));
  call.reply.bulk("histogram_usec");
  // What a bucket adds nothing to is left out; counts add up.
  const auto filled = std::count_if(totals.times.begin(), totals.times.end(),
                                    [](std::uint64_t count) { return count != 0; });
  call.reply.map(static_cast<std::size_t>(filled));
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < totals.times.size(); ++i) {
    if (totals.times[i] == 0) continue;
    below += totals.times[i];
    call.reply.integer(std::int64_t{1} << i);
    call.reply.integer(static_cast<std::int64_t>(below));
  }
}

/// The rows that `words` name, those of a container with it; all of them, if there are no words.
std::vector<const CommandRow*> rows_of(std::span<const std::string_view> words) {
  std::vector<const CommandRow*> rows;
  for (const CommandRow& row : all_commands()) {
    const std::string_view parent = row.name.substr(0, row.name.find('|'));
    const bool is_named = std::any_of(words.begin(), words.end(), [&](std::string_view word) {
      return is_word(word, row.name) || is_word(word, parent);
    });
    if (words.empty() || is_named) rows.push_back(&row);
  }
  return rows;
}

/// A bar for each sample, the newest on the right.
std::string graph_of(const LatencyEvent& event, std::int64_t now_seconds) {
  constexpr std::size_t columns = 80;
  constexpr std::int64_t levels = 4;
  const std::size_t first = event.samples.size() - std::min(event.samples.size(), columns);
  std::int64_t high = 0;
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = first; i < event.samples.size(); ++i) {
    high = std::max(high, event.samples[i].ms);
    low = std::min(low, event.samples[i].ms);
  }
  std::string text = event.name + " - high " + std::to_string(high) + " ms, low " +
                     std::to_string(low) + " ms (all time high " + std::to_string(event.worst_ms) +
                     " ms)\n" + std::string(columns, '-') + "\n";
  for (std::int64_t level = levels; level >= 1; --level) {
    for (std::size_t i = first; i < event.samples.size(); ++i) {
      const std::int64_t height =
          high == low ? 1 : 1 + (event.samples[i].ms - low) * (levels - 1) / (high - low);
      text += height > level ? '|' : height == level ? '_' : ' ';
    }
    text += '\n';
  }
  const std::int64_t age = now_seconds - event.samples[first].unix_seconds;
  return text + "\nThe first one is " + std::to_string(age) + " seconds old.\n";
}

}  // namespace

namespace handlers {

void slowlog_get(Call& call) {
  std::int64_t count = 10;
  if (call.args.size() > 3) {
    return call.fail("ERR unknown subcommand or wrong number of arguments for '" +
                     std::string{call.args[1]} + "'. Try SLOWLOG HELP.");
  }
  if (call.args.size() == 3) {
    const auto number = integer_of(call.args[2]);
    if (!number || *number < -1) {
      return call.fail("ERR count should be greater than or equal to -1");
    }
    count = *number;
  }
  const std::size_t wanted = count < 0 ? SlowLog::length_max : static_cast<std::size_t>(count);
  const std::vector<SlowCall> calls = call.services.slow_log.newest(wanted);
  constexpr std::size_t fields = 6;
  call.reply.array(calls.size());
  for (const SlowCall& slow : calls) {
    call.reply.array(fields);
    call.reply.integer(static_cast<std::int64_t>(slow.id));
    call.reply.integer(slow.unix_seconds);
    call.reply.integer(slow.us);
    call.reply.array(slow.args.size());
    for (const std::string& word : slow.args) call.reply.bulk(word);
    call.reply.bulk(slow.address);
    call.reply.bulk(slow.name);
  }
}

void slowlog_len(Call& call) {
  call.reply.integer(static_cast<std::int64_t>(call.services.slow_log.size()));
}

void slowlog_reset(Call& call) {
  call.services.slow_log.clear();
  call.reply.ok();
}

void latency_latest(Call& call) {
  const std::vector<LatencyEvent> events = call.services.latency.all();
  constexpr std::size_t fields = 4;
  call.reply.array(events.size());
  for (const LatencyEvent& event : events) {
    call.reply.array(fields);
    call.reply.bulk(event.name);
    call.reply.integer(event.samples.back().unix_seconds);
    call.reply.integer(event.samples.back().ms);
    call.reply.integer(event.worst_ms);
  }
}

void latency_history(Call& call) {
  const auto event = event_of(call.services, call.args[2]);
  call.reply.array(event ? event->samples.size() : 0);
  if (!event) return;
  for (const LatencySample& sample : event->samples) {
    call.reply.array(2);
    call.reply.integer(sample.unix_seconds);
    call.reply.integer(sample.ms);
  }
}

void latency_reset(Call& call) {
  std::size_t count = 0;
  if (call.args.size() == 2) count = call.services.latency.clear();
  for (const std::string_view name : call.args.subspan(2)) {
    count += call.services.latency.clear(name) ? 1 : 0;
  }
  call.reply.integer(static_cast<std::int64_t>(count));
}

void latency_graph(Call& call) {
  const auto event = event_of(call.services, call.args[2]);
  if (!event) {
    return call.fail("ERR No samples available for event '" + std::string{call.args[2]} + "'");
  }
  call.reply.verbatim(graph_of(*event, call.engine.clock().unix_ms() / 1000));
}

void latency_doctor(Call& call) {
  if (call.services.latency.limit_ms() == 0) {
    return call.reply.verbatim(
        "Nothing is watched: latency-monitor-threshold is 0. Set it to the milliseconds from which "
        "on a command is too slow.\n");
  }
  const std::vector<LatencyEvent> events = call.services.latency.all();
  if (events.empty()) return call.reply.verbatim("Nothing has taken too long so far.\n");
  std::string text;
  for (const LatencyEvent& event : events) {
    std::int64_t sum = 0;
    for (const LatencySample& sample : event.samples) sum += sample.ms;
    text += event.name + ": in " + std::to_string(event.samples.size()) +
            " seconds something took too long, " +
            std::to_string(sum / static_cast<std::int64_t>(event.samples.size())) +
            " ms on average, " + std::to_string(event.worst_ms) +
            " ms at worst. SLOWLOG GET names the commands.\n";
  }
  call.reply.verbatim(text);
}

void latency_histogram(Call& call) {
  const NodeTotals totals = call.services.stats.totals();
  std::vector<const CommandRow*> rows = rows_of(call.args.subspan(2));
  std::erase_if(rows,
                [&](const CommandRow* row) { return totals.commands[index_of(*row)].calls == 0; });
  call.reply.map(rows.size());
  for (const CommandRow* row : rows) {
    write_histogram(call, *row, totals.commands[index_of(*row)]);
  }
}

}  // namespace handlers
}  // namespace semel::net
