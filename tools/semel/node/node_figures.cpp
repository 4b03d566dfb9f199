#include "tools/semel/node/node_figures.hpp"

#include <algorithm>
#include <string>

#include "net/commands/command.hpp"
#include "net/handlers/info.hpp"
#include "semel/limits.hpp"

namespace semel::tool {
namespace {

constexpr double ns_per_second = 1e9;

void fill_clients(net::Node& node, const net::Server& server, net::MetricFigures& figures) {
  const net::ServerStats stats = server.stats();
  const auto handles = node.clients.all();
  figures.port = server.port();
  figures.connections = stats.clients;
  figures.connections_blocked = static_cast<std::uint64_t>(
      std::count_if(handles.begin(), handles.end(), [](const auto& handle) {
        return handle->shown.waits.load(std::memory_order_relaxed);  // mo: relaxed: for people
      }));
  figures.connections_max = server.maxclients();
  figures.connections_accepted = stats.accepted;
  figures.connections_refused = stats.rejected_full + stats.rejected_files + node.stats.refused();
  figures.http_refused = node.stats.refused_http();
  figures.scripts_refused = node.scripts.refused_count();
  figures.bytes_received = stats.bytes_in;
  figures.bytes_sent = stats.bytes_out;
}

void fill_commands(const net::NodeFigures& from, net::MetricFigures& figures) {
  figures.commands = from.calls;
  figures.error_replies = from.error_replies;
  figures.command_times.assign(net::time_buckets, 0);
  for (const net::CommandRow& row : net::all_commands()) {
    const net::CommandFigures& command = from.commands[net::index_of(row)];
    if (command.calls == 0 && command.rejected == 0) continue;
    const double seconds = static_cast<double>(command.ns) / ns_per_second;
    figures.by_command.push_back({.name = std::string{row.name},
                                  .calls = command.calls,
                                  .seconds = seconds,
                                  .failed = command.failed,
                                  .rejected = command.rejected});
    figures.command_seconds += seconds;
    for (std::size_t i = 0; i < command.times.size(); ++i) {
      figures.command_times[i] += command.times[i];
    }
  }
  for (const auto& [code, count] : from.errors) figures.by_error.push_back({code, count});
}

void fill_databases(const Engine& engine, net::MetricFigures& figures) {
  std::uint64_t all = 0;
  for (unsigned db = 0; db < limits::db_count; ++db) {
    const std::uint64_t records = engine.size(static_cast<std::uint8_t>(db));
    if (records == 0) continue;
    all += records;
    figures.databases.push_back({.number = db, .records = records});
  }
  // Records with an end are counted for all databases together: shared out by their sizes, as INFO
  // does it.
  for (net::DatabaseMetric& database : figures.databases) {
    const double share = static_cast<double>(database.records) / static_cast<double>(all);
    const double timed = share * static_cast<double>(figures.engine.records_with_ttl);
    database.records_with_ttl = std::min(database.records, static_cast<std::uint64_t>(timed + 0.5));
  }
}

}  // namespace

void fill_figures(net::Node& node, const net::Server& server, const NodeStorage& storage,
                  net::MetricFigures& figures) {
  figures.run_id = node.facts.run_id;
  figures.redis_version = net::reported_redis_version;
  fill_clients(node, server, figures);
  fill_commands(node.stats.figures(), figures);
  figures.engine = node.engine().stats();
  fill_databases(node.engine(), figures);
  figures.storage = storage.stats();
}

}  // namespace semel::tool
