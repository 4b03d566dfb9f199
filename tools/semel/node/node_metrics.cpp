#include "tools/semel/node/node_metrics.hpp"

#include <algorithm>
#include <string>

#include "net/cluster/group.hpp"
#include "net/commands/command.hpp"
#include "net/handlers/info.hpp"
#include "semel/engine_host.hpp"
#include "semel/limits.hpp"

namespace semel::tool {
namespace {

constexpr double ns_per_second = 1e9;
constexpr double ms_per_second = 1e3;

void fill_clients(net::Node& node, const net::Server& server, net::MetricValues& values) {
  const net::ServerStats stats = server.stats();
  const auto handles = node.clients.all();
  values.port = server.port();
  values.connections = stats.clients;
  values.connections_blocked = static_cast<std::uint64_t>(
      std::count_if(handles.begin(), handles.end(), [](const auto& handle) {
        return handle->shown.waits.load(std::memory_order_relaxed);  // mo: relaxed: shown only
      }));
  values.connections_max = server.maxclients();
  values.connections_accepted = stats.accepted;
  values.connections_refused = stats.rejected_full + stats.rejected_files + node.stats.refused();
  values.http_refused = node.stats.refused_http();
  values.scripts_refused = node.scripts.refused_count();
  values.scripts_interpreted = node.scripts.interpreted_count();
  for (const auto& [name, count] : node.scripts.native_counts()) {
    values.scripts_native.push_back({std::string{name}, count});
  }
  values.bytes_received = stats.bytes_in;
  values.bytes_sent = stats.bytes_out;
}

void fill_commands(const net::NodeTotals& from, net::MetricValues& values) {
  values.commands = from.calls;
  values.error_replies = from.error_replies;
  values.command_times.assign(net::time_buckets, 0);
  for (const net::CommandRow& row : net::all_commands()) {
    const net::CommandTotals& command = from.commands[net::index_of(row)];
    if (command.calls == 0 && command.rejected == 0) continue;
    const double seconds = static_cast<double>(command.ns) / ns_per_second;
    values.by_command.push_back({.name = std::string{row.name},
                                 .calls = command.calls,
                                 .seconds = seconds,
                                 .failed = command.failed,
                                 .rejected = command.rejected});
    values.command_seconds += seconds;
    for (std::size_t i = 0; i < command.times.size(); ++i) {
      values.command_times[i] += command.times[i];
    }
  }
  for (const auto& [code, count] : from.errors) values.by_error.push_back({code, count});
}

void fill_databases(const Engine& engine, net::MetricValues& values) {
  std::uint64_t all = 0;
  for (unsigned db = 0; db < limits::db_count; ++db) {
    const std::uint64_t records = engine.size(static_cast<std::uint8_t>(db));
    if (records == 0) continue;
    all += records;
    values.databases.push_back({.number = db, .records = records});
  }
  // Records with an end are counted for all databases together: shared out by their sizes, as INFO
  // does it.
  for (net::DatabaseMetric& database : values.databases) {
    const double share = static_cast<double>(database.records) / static_cast<double>(all);
    const double timed = share * static_cast<double>(values.engine.records_with_ttl);
    database.records_with_ttl = std::min(database.records, static_cast<std::uint64_t>(timed + 0.5));
  }
}

void fill_group(const net::Group& from, net::MetricValues& values) {
  const net::GroupView view = from.view();
  net::GroupMetric& group = values.group.emplace();
  group.term = view.term;
  group.leader = view.leader;
  group.leads = view.leads;
  group.commit = view.commit;
  group.applied = view.applied;
  group.elections_won = view.elections;
  group.lag = view.lag();
  group.fetches_snapshot = view.is_fetching;
  group.snapshot_bytes_sent = view.snapshot_bytes_sent;
  group.snapshot_bytes_received = view.snapshot_bytes_received;
  group.log_bytes = view.log_bytes;
  group.disk_full = view.disk_is_full;
  group.clock_off_seconds = static_cast<double>(view.clock_off_ms) / ms_per_second;
  group.stalled_seconds = static_cast<double>(view.stalled_ms) / ms_per_second;
  group.refused = view.refused;
  for (const net::GroupMember& each : view.members) {
    if (each.id == view.node_id) {
      group.votes = each.is_voter;
      continue;
    }
    const std::uint64_t lag = view.leads ? view.commit - std::min(view.commit, each.match) : 0;
    group.members.push_back({.id = each.id,
                             .lag = lag,
                             .connected = each.is_connected,
                             .votes = each.is_voter,
                             .match = each.match,
                             .bytes_sent = each.bytes_sent,
                             .frames_received = each.frames_received});
  }
}

}  // namespace

void fill_metrics(net::Node& node, const net::Server& server, const NodeStorage& storage,
                  net::MetricValues& values) {
  values.run_id = node.facts.run_id;
  values.redis_version = net::reported_redis_version;
  fill_clients(node, server, values);
  fill_commands(node.stats.totals(), values);
  values.maxmemory_policy = node.settings.text(net::Setting::maxmemory_policy);
  values.engine = node.engine().stats();
  values.claims = node.engine().host().claim_counts();
  fill_databases(node.engine(), values);
  values.storage = storage.stats();
  if (node.services().group != nullptr) fill_group(*node.services().group, values);
}

}  // namespace semel::tool
