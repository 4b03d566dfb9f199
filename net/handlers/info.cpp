#include "net/handlers/info.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "net/cluster/group.hpp"
#include "net/commands/command.hpp"
#include "net/commands/node_hooks.hpp"
#include "net/resp/client_memory.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/scripts.hpp"
#include "net/session/clients.hpp"
#include "net/session/memory_guard.hpp"
#include "net/session/node_role.hpp"
#include "net/session/tracking.hpp"
#include "net/settings/settings.hpp"
#include "net/stats/node_stats.hpp"
#include "net/stats/process_facts.hpp"
#include "net/time/deadlines.hpp"
#include "net/time/held_clock.hpp"
#include "semel/clock.hpp"
#include "semel/version.hpp"

namespace semel::net {
namespace {

/// One section, line by line.
class Lines {
 public:
  explicit Lines(std::string_view title) { text_.append("# ").append(title).append("\r\n"); }

  void put(std::string_view name, std::string_view value) {
    text_.append(name).append(":").append(value).append("\r\n");
  }
  void put(std::string_view name, const char* value) { put(name, std::string_view{value}); }
  template <class Number>
  requires std::is_integral_v<Number>
  void put(std::string_view name, Number value) {
    put(name, std::string_view{std::to_string(value)});
  }
  void put(std::string_view name, double value, int digits) {
    std::array<char, 64> room{};
    const int length = std::snprintf(room.data(), room.size(), "%.*f", digits, value);
    put(name, std::string_view{room.data(), static_cast<std::size_t>(std::max(length, 0))});
  }
  void bytes(std::string_view name, std::uint64_t count) {
    put(name, count);
    put(std::string{name} + "_human", std::string_view{human_bytes(count)});
  }
  /// Fields that are always 0 here; clients look for them.
  void zeros(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) put(name, 0);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Values that several sections show, read at most once.
struct Facts {
  Services& services;
  Stats stats = services.engine.stats();
  NodeTotals totals = services.stats.totals();
  ProcessFacts process = process_facts();
};

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::int64_t uptime_seconds(Services& services) {
  // The engine of a group has the time of its log, which begins anywhere.
  const Timestamp when =
      services.group != nullptr ? SystemClock{}.now() : services.engine.clock().now();
  const std::int64_t now = when.time_since_epoch().count();
  return std::max<std::int64_t>(now - services.facts.started_ms, 0) / 1000;
}

std::string server(Facts& facts) {
  constexpr std::int64_t seconds_per_day = 86'400;
  Services& services = facts.services;
  Lines lines{"Server"};
  lines.put("redis_version", reported_redis_version);
  lines.put("server_name", "semel");
  lines.put("semel_version", SEMEL_VERSION);
  lines.put("redis_git_sha1", "00000000");
  lines.put("redis_git_dirty", 0);
  lines.put("redis_build_id", "0");
  lines.put("redis_mode", facts.services.group == nullptr ? "standalone" : "cluster");
  lines.put("os", facts.process.system);
  lines.put("arch_bits", 8 * sizeof(void*));
  lines.put("monotonic_clock", "POSIX clock_gettime");
  lines.put("multiplexing_api", "epoll");
  lines.put("atomicvar_api", "c++20-atomic");
  lines.put("gcc_version", __VERSION__);
  lines.put("process_id", facts.process.id);
  lines.put("process_supervised", "no");
  lines.put("run_id", services.facts.run_id);
  // mo: relaxed: for people
  lines.put("tcp_port", services.facts.tcp_port.load(std::memory_order_relaxed));
  const Clock& clock = services.engine.clock();
  const std::int64_t unix_ms =
      services.group != nullptr ? SystemClock{}.unix_ms() : clock.unix_ms();
  lines.put("server_time_usec", unix_ms * 1000);
  lines.put("uptime_in_seconds", uptime_seconds(services));
  lines.put("uptime_in_days", uptime_seconds(services) / seconds_per_day);
  lines.put("hz", 10);
  lines.put("configured_hz", 10);
  lines.put("lru_clock", 0);
  lines.put("executable", services.facts.executable);
  lines.put("config_file", services.facts.config_file);
  lines.put("io_threads_active", services.settings.integer(Setting::io_threads) == 1 ? 0 : 1);
  return lines.take();
}

std::string clients(Facts& facts) {
  Services& services = facts.services;
  const auto handles = services.clients.all();
  const auto blocked = std::count_if(handles.begin(), handles.end(), [](const auto& handle) {
    return handle->shown.waits.load(std::memory_order_relaxed);  // mo: relaxed: for people
  });
  Lines lines{"Clients"};
  lines.put("connected_clients", handles.size());
  lines.put("cluster_connections", 0);
  lines.put("maxclients", services.settings.integer(Setting::maxclients));
  std::size_t input = 0;
  std::size_t output = 0;
  for (const auto& handle : handles) {
    const ClientBytes bytes = bytes_of(*handle);
    input = std::max(input, bytes.input + bytes.input_spare);
    output = std::max(output, bytes.output + bytes.large);
  }
  lines.put("client_recent_max_input_buffer", input);
  lines.put("client_recent_max_output_buffer", output);
  lines.put("blocked_clients", blocked);
  lines.put("tracking_clients", services.tracking.figures().clients);
  lines.put("clients_in_timeout_table", services.deadlines.size());
  return lines.take();
}

/// One interpreter serves both scripts and functions: its memory is shown as that of scripts.
void put_scripts(Lines& lines, Services& services) {
  const Scripts::Totals scripts = services.scripts.totals();
  const FunctionStore::Totals functions = services.scripts.functions.totals();
  const std::uint64_t kept = scripts.bytes + functions.bytes;
  lines.put("used_memory_lua", scripts.interpreter_bytes);
  lines.put("used_memory_vm_eval", scripts.interpreter_bytes);
  lines.put("used_memory_lua_human", human_bytes(scripts.interpreter_bytes));
  lines.put("used_memory_scripts_eval", scripts.bytes);
  lines.put("number_of_cached_scripts", scripts.count);
  lines.put("number_of_functions", functions.functions);
  lines.put("number_of_libraries", functions.libraries);
  lines.put("scripts_refused", services.scripts.refused_count());
  lines.put("used_memory_vm_functions", 0);
  lines.bytes("used_memory_vm_total", scripts.interpreter_bytes);
  lines.put("used_memory_functions", functions.bytes);
  lines.bytes("used_memory_scripts", kept);
}

/// Allocated: for records, table and timers; active: what the engine took for them; resident: all
/// that is of no file, heaps of other parts included.
void put_allocator(Lines& lines, const Facts& facts) {
  const Stats& stats = facts.stats;
  const std::uint64_t allocated =
      std::min(stats.bytes_used, stats.bytes_records + stats.bytes_table + stats.bytes_wheel);
  const std::uint64_t resident = facts.process.private_bytes;
  const std::uint64_t all = facts.process.resident_bytes;
  const auto difference = [](std::uint64_t more, std::uint64_t less) {
    return static_cast<std::int64_t>(more) - static_cast<std::int64_t>(less);
  };
  lines.put("allocator_allocated", allocated);
  lines.put("allocator_active", stats.bytes_used);
  lines.put("allocator_resident", resident);
  lines.put("allocator_frag_ratio", ratio(stats.bytes_used, allocated), 2);
  lines.put("allocator_frag_bytes", difference(stats.bytes_used, allocated));
  lines.put("allocator_rss_ratio", ratio(resident, stats.bytes_used), 2);
  lines.put("allocator_rss_bytes", difference(resident, stats.bytes_used));
  lines.put("rss_overhead_ratio", ratio(all, resident), 2);
  lines.put("rss_overhead_bytes", difference(all, resident));
}

std::string memory(Facts& facts) {
  const Stats& stats = facts.stats;
  std::atomic<std::uint64_t>& highest = facts.services.stats.memory_peak;
  // mo: relaxed: a metric; of two threads that raise it at once the lower may win.
  const std::uint64_t peak = std::max(highest.load(std::memory_order_relaxed), stats.bytes_used);
  highest.store(peak, std::memory_order_relaxed);
  const std::uint64_t overhead = stats.bytes_used - std::min(stats.bytes_records, stats.bytes_used);
  const auto percent = [&](std::uint64_t part, std::uint64_t whole) {
    std::array<char, 32> room{};
    static_cast<void>(std::snprintf(room.data(), room.size(), "%.2f%%", 100 * ratio(part, whole)));
    return std::string{room.data()};
  };
  Lines lines{"Memory"};
  MemoryGuard& guard = facts.services.memory;
  lines.bytes("used_memory", guard.is_on() ? guard.counted_bytes() : stats.bytes_used);
  lines.bytes("used_memory_rss", facts.process.resident_bytes);
  lines.bytes("used_memory_peak", peak);
  lines.put("used_memory_peak_perc", percent(stats.bytes_used, peak));
  lines.put("used_memory_overhead", overhead);
  lines.put("used_memory_startup", 0);
  lines.put("used_memory_dataset", stats.bytes_records);
  lines.put("used_memory_dataset_perc", percent(stats.bytes_records, stats.bytes_used));
  put_allocator(lines, facts);
  lines.bytes("total_system_memory", facts.process.system_memory_bytes);
  put_scripts(lines, facts.services);
  const Settings& settings = facts.services.settings;
  lines.bytes("maxmemory", static_cast<std::uint64_t>(settings.integer(Setting::maxmemory)));
  lines.put("maxmemory_policy", settings.text(Setting::maxmemory_policy));
  const double fragmentation = ratio(facts.process.resident_bytes, stats.bytes_used);
  lines.put("mem_fragmentation_ratio", fragmentation, 2);
  lines.put("mem_fragmentation_bytes", static_cast<std::int64_t>(facts.process.resident_bytes) -
                                           static_cast<std::int64_t>(stats.bytes_used));
  lines.zeros({"mem_not_counted_for_evict", "mem_replication_backlog",
               "mem_total_replication_buffers", "mem_clients_slaves"});
  const ClientMemory& clients = *facts.services.client_memory;
  lines.put("mem_clients_normal",
            clients.bytes() + facts.services.clients.size() * ClientHandle::own_bytes);
  lines.put("maxmemory_clients", clients.limit());
  lines.zeros({"mem_cluster_links", "mem_aof_buffer"});
  lines.put("mem_allocator", "semel");
  lines.put("active_defrag_running", 0);
  lines.put("lazyfree_pending_objects", facts.stats.records_flushed);
  lines.put("lazyfreed_objects", 0);
  return lines.take();
}

std::string persistence(Facts& facts) {
  const NodeFacts& process = facts.services.facts;
  Lines lines{"Persistence"};
  lines.zeros(
      {"loading", "async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age"});
  lines.put("current_fork_perc", "0.00");
  lines.zeros({"current_save_keys_processed", "current_save_keys_total"});
  const NodeHooks& hooks = facts.services.hooks;
  const BackupState backup = hooks.backup_state ? hooks.backup_state() : BackupState{};
  const std::uint64_t changes = facts.stats.changes;
  lines.put("rdb_changes_since_last_save", changes - std::min(changes, backup.done_changes));
  const bool runs = backup.stage == BackupState::Stage::running;
  lines.put("rdb_bgsave_in_progress", runs ? 1 : 0);
  lines.put("rdb_last_save_time",
            (backup.done_unix_ms == 0 ? process.started_unix_ms : backup.done_unix_ms) / 1000);
  lines.put("rdb_last_bgsave_status", backup.last_failed ? "err" : "ok");
  lines.put("rdb_last_bgsave_time_sec", backup.last_seconds);
  lines.put("rdb_current_bgsave_time_sec", runs ? backup.seconds : -1);
  lines.put("rdb_saves", static_cast<std::int64_t>(backup.done));
  lines.zeros({"rdb_last_cow_size", "rdb_last_load_keys_expired", "rdb_last_load_keys_loaded"});
  lines.put("aof_enabled", facts.services.settings.text(Setting::appendonly) == "yes" ? 1 : 0);
  lines.zeros({"aof_rewrite_in_progress", "aof_rewrite_scheduled"});
  lines.put("aof_last_rewrite_time_sec", -1);
  lines.put("aof_current_rewrite_time_sec", -1);
  lines.put("aof_last_bgrewrite_status", "ok");
  lines.zeros({"aof_rewrites", "aof_rewrites_consecutive_failures"});
  lines.put("aof_last_write_status", "ok");
  lines.zeros({"aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size"});
  return lines.take();
}

std::string stats(Facts& facts) {
  const NodeTotals& totals = facts.totals;
  Services& services = facts.services;
  std::uint64_t channels = 0;
  std::uint64_t patterns = 0;
  for (const auto& handle : services.clients.all()) {
    // mo: relaxed: for people.
    channels += handle->shown.channels.load(std::memory_order_relaxed);
    patterns += handle->shown.patterns.load(std::memory_order_relaxed);
  }
  Lines lines{"Stats"};
  lines.put("total_connections_received", totals.connections);
  lines.put("total_commands_processed", totals.calls);
  lines.put("instantaneous_ops_per_sec", services.stats.calls_per_second());
  lines.put("total_net_input_bytes", totals.bytes_received);
  lines.put("total_net_output_bytes", totals.bytes_sent);
  lines.zeros({"total_net_repl_input_bytes", "total_net_repl_output_bytes"});
  lines.put("instantaneous_input_kbps", services.stats.received_kb_per_second(), 2);
  lines.put("instantaneous_output_kbps", services.stats.sent_kb_per_second(), 2);
  lines.put("instantaneous_input_repl_kbps", "0.00");
  lines.put("instantaneous_output_repl_kbps", "0.00");
  lines.put("rejected_connections", services.stats.refused());
  lines.zeros({"sync_full", "sync_partial_ok", "sync_partial_err"});
  lines.put("expired_keys", facts.stats.expired);
  lines.put("expired_stale_perc", "0.00");
  lines.zeros({"expired_time_cap_reached_count", "expire_cycle_cpu_milliseconds"});
  lines.put("evicted_keys", facts.stats.evicted);
  lines.put("evicted_clients", services.client_memory->evictions());
  lines.zeros({"total_eviction_exceeded_time", "current_eviction_exceeded_time"});
  lines.put("keyspace_hits", facts.stats.hits);
  lines.put("keyspace_misses", facts.stats.misses);
  lines.put("pubsub_channels", channels);
  lines.put("pubsub_patterns", patterns);
  lines.zeros({"pubsubshard_channels", "latest_fork_usec", "total_forks", "migrate_cached_sockets",
               "slave_expires_tracked_keys", "active_defrag_hits", "active_defrag_misses",
               "active_defrag_key_hits", "active_defrag_key_misses", "total_active_defrag_time",
               "current_active_defrag_time"});
  const Tracking::Figures tracking = services.tracking.figures();
  lines.put("tracking_total_keys", tracking.keys);
  lines.put("tracking_total_items", tracking.items);
  lines.put("tracking_total_prefixes", tracking.prefixes);
  const Following* const following = services.following;
  lines.put("unexpected_error_replies",
            following == nullptr ? 0 : following->view().commands_refused);
  lines.put("total_error_replies", totals.error_replies);
  lines.put("dump_payload_sanitizations", 0);
  lines.put("total_reads_processed", totals.reads);
  lines.put("total_writes_processed", totals.reads);
  lines.zeros({"io_threaded_reads_processed", "io_threaded_writes_processed",
               "reply_buffer_shrinks", "reply_buffer_expands"});
  return lines.take();
}

/// Of a node that follows another server.
void put_link(Lines& lines, const FollowView& view, const Settings& settings) {
  using Link = FollowView::Link;
  lines.put("role", "slave");
  lines.put("master_host", view.master.host);
  lines.put("master_port", view.master.port);
  lines.put("master_link_status", view.link == Link::connected ? "up" : "down");
  lines.put("master_last_io_seconds_ago", view.quiet_seconds);
  lines.put("master_sync_in_progress", view.link == Link::sync ? 1 : 0);
  lines.put("slave_read_repl_offset", std::max(view.read_offset, std::int64_t{0}));
  lines.put("slave_repl_offset", std::max(view.offset, std::int64_t{0}));
  if (view.link == Link::sync) {
    lines.put("master_sync_total_bytes", view.sync_bytes);
    lines.put("master_sync_read_bytes", view.sync_bytes_read);
    lines.put("master_sync_left_bytes", view.sync_bytes - view.sync_bytes_read);
    lines.put("master_sync_last_io_seconds_ago", view.quiet_seconds);
  }
  if (view.link != Link::connected) {
    lines.put("master_link_down_since_seconds", view.down_seconds);
  }
  // Also of a stream that waits for the node, while its link is up.
  if (!view.error.empty()) lines.put("master_link_error", std::string_view{view.error});
  lines.put("slave_priority", 100);
  lines.put("slave_read_only", settings.boolean(Setting::replica_read_only) ? 1 : 0);
  lines.put("replica_announced", 1);
}

std::string replication_of_follower(Facts& facts, const FollowView& view) {
  Lines lines{"Replication"};
  put_link(lines, view, facts.services.settings);
  lines.put("connected_slaves", 0);
  lines.put("master_failover_state", "no-failover");
  constexpr std::size_t id_digits = 40;
  lines.put("master_replid", view.replid.empty() ? facts.services.facts.run_id : view.replid);
  lines.put("master_replid2", std::string(id_digits, '0'));
  lines.put("master_repl_offset", std::max(view.offset, std::int64_t{0}));
  lines.put("second_repl_offset", -1);
  lines.zeros({"repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset",
               "repl_backlog_histlen"});
  lines.put("semel_full_syncs", view.full_syncs);
  lines.put("semel_partial_syncs", view.partial_syncs);
  return lines.take();
}

std::string replication(Facts& facts) {
  if (facts.services.role.follows() && facts.services.following != nullptr) {
    return replication_of_follower(facts, facts.services.following->view());
  }
  Lines lines{"Replication"};
  const GroupView view =
      facts.services.group == nullptr ? GroupView{{.leads = true}} : facts.services.group->view();
  lines.put("role", view.leads ? "master" : "slave");
  if (!view.leads) {
    std::string address;
    for (const GroupMember& each : view.members) {
      if (each.id == view.leader) address = each.client_address;
    }
    const auto [host, port] = host_and_port(address);
    lines.put("master_host", host);
    lines.put("master_port", port);
    lines.put("master_link_status", view.leader == 0 ? "down" : "up");
    lines.put("slave_repl_offset", view.applied);
  }
  lines.put("connected_slaves",
            static_cast<std::uint64_t>(std::count_if(
                view.members.begin(), view.members.end(),
                [&](const GroupMember& each) { return view.leads && each.is_connected; })));
  lines.put("master_failover_state", "no-failover");
  lines.put("master_replid", facts.services.facts.run_id);
  constexpr std::size_t id_digits = 40;
  lines.put("master_replid2", std::string(id_digits, '0'));
  lines.put("master_repl_offset", view.applied);
  lines.put("second_repl_offset", -1);
  lines.zeros({"repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset",
               "repl_backlog_histlen"});
  return lines.take();
}

std::string cpu(Facts& facts) {
  Lines lines{"CPU"};
  constexpr int digits = 6;
  lines.put("used_cpu_sys", facts.process.system_seconds, digits);
  lines.put("used_cpu_user", facts.process.user_seconds, digits);
  lines.put("used_cpu_sys_children", 0.0, digits);
  lines.put("used_cpu_user_children", 0.0, digits);
  lines.put("used_cpu_sys_main_thread", facts.process.main_system_seconds, digits);
  lines.put("used_cpu_user_main_thread", facts.process.main_user_seconds, digits);
  return lines.take();
}

std::string modules(Facts&) {
  return Lines{"Modules"}.take();
}

std::string text_of(double value, int digits) {
  std::array<char, 64> room{};
  static_cast<void>(std::snprintf(room.data(), room.size(), "%.*f", digits, value));
  return room.data();
}

std::string command_stats(Facts& facts) {
  Lines lines{"Commandstats"};
  for (const CommandRow& row : all_commands()) {
    const CommandTotals& totals = facts.totals.commands[index_of(row)];
    if (totals.calls == 0 && totals.rejected == 0) continue;
    const std::uint64_t us = totals.ns / 1000;
    lines.put("cmdstat_" + std::string{row.name},
              "calls=" + std::to_string(totals.calls) + ",usec=" + std::to_string(us) +
                  ",usec_per_call=" + text_of(ratio(us, totals.calls), 2) +
                  ",rejected_calls=" + std::to_string(totals.rejected) +
                  ",failed_calls=" + std::to_string(totals.failed));
  }
  return lines.take();
}

std::string error_stats(Facts& facts) {
  Lines lines{"Errorstats"};
  for (const auto& [word, count] : facts.totals.errors) {
    lines.put("errorstat_" + word, "count=" + std::to_string(count));
  }
  return lines.take();
}

/// The upper bound, in microseconds, of the bucket that contains the percentile `percent`.
std::uint64_t percentile(const CommandTotals& totals, std::uint64_t counted, double percent) {
  constexpr double whole = 100;
  const double wanted = static_cast<double>(counted) * percent / whole;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < time_buckets; ++i) {
    below += totals.times[i];
    if (below > 0 && static_cast<double>(below) >= wanted) return std::uint64_t{1} << i;
  }
  return std::uint64_t{1} << (time_buckets - 1);
}

std::string latency_stats(Facts& facts) {
  Lines lines{"Latencystats"};
  const Settings& settings = facts.services.settings;
  if (!settings.boolean(Setting::latency_tracking)) return lines.take();
  const std::vector<std::string> percents =
      settings.list(Setting::latency_tracking_info_percentiles);
  for (const CommandRow& row : all_commands()) {
    const CommandTotals& totals = facts.totals.commands[index_of(row)];
    const auto counted = counted_times(totals);
    if (counted == 0) continue;
    std::string shown;
    for (const std::string& percent : percents) {
      const auto number = static_cast<double>(float_of(percent).value_or(0));
      shown.append(shown.empty() ? "p" : ",p").append(percent).append("=");
      shown += std::to_string(percentile(totals, counted, number)) + ".000";
    }
    lines.put("latency_percentiles_usec_" + std::string{row.name}, shown);
  }
  return lines.take();
}

std::string cluster(Facts& facts) {
  Lines lines{"Cluster"};
  lines.put("cluster_enabled", facts.services.group == nullptr ? 0 : 1);
  return lines.take();
}

std::string keyspace(Facts& facts) {
  Lines lines{"Keyspace"};
  std::array<std::uint64_t, limits::db_count> keys{};
  std::uint64_t all = 0;
  const HeldClock::Hold hold{facts.services.role.follows()};  // size() removes ended keys
  for (std::size_t db = 0; db < keys.size(); ++db) {
    keys[db] = facts.services.engine.size(static_cast<std::uint8_t>(db));
    all += keys[db];
  }
  // Records with an end are counted for all databases together: shared out by their sizes.
  const double timed = std::min(ratio(facts.stats.records_with_ttl, all), 1.0);
  for (std::size_t db = 0; db < keys.size(); ++db) {
    if (keys[db] == 0) continue;
    const auto expires = static_cast<std::uint64_t>(timed * static_cast<double>(keys[db]) + 0.5);
    lines.put("db" + std::to_string(db), "keys=" + std::to_string(keys[db]) +
                                             ",expires=" + std::to_string(expires) + ",avg_ttl=0");
  }
  return lines.take();
}

std::string semel(Facts& facts) {
  const Stats& stats = facts.stats;
  Lines lines{"Semel"};
  lines.put("records", stats.records);
  lines.put("records_with_ttl", stats.records_with_ttl);
  lines.put("records_flushed", stats.records_flushed);
  lines.put("operations", stats.operations);
  lines.put("refused", stats.refused);
  lines.put("claims_granted", stats.claims_granted);
  lines.put("claims_duplicate", stats.claims_duplicate);
  lines.put("takeovers", stats.takeovers);
  lines.put("stale_owners", stats.stale_owners);
  lines.put("claims_forgotten", stats.claims_forgotten);
  lines.put("waiters", stats.waiters);
  lines.put("namespaces", stats.namespaces);
  lines.put("namespaces_dropped", stats.namespaces_dropped);
  lines.put("bytes_namespaces", stats.bytes_namespaces);
  lines.put("sections", stats.sections);
  lines.put("growth_steps", stats.growth_steps);
  lines.put("lost_races", stats.lost_races);
  lines.put("slots", stats.slots);
  lines.put("probe_lines_max", stats.probe_lines_max);
  lines.put("wheel_items", stats.wheel_items);
  lines.put("wheel_lag_ms", stats.wheel_lag.count());
  lines.put("bytes_records", stats.bytes_records);
  lines.put("bytes_table", stats.bytes_table);
  lines.put("bytes_wheel", stats.bytes_wheel);
  lines.put("bytes_used", stats.bytes_used);
  lines.put("bytes_limit", stats.bytes_limit);
  lines.put("spills", stats.spills);
  lines.put("spills_failed", stats.spills_failed);
  return lines.take();
}

struct Section {
  std::string_view name;
  std::string (*write)(Facts&);
  bool usual;   ///< of "default"
  bool of_all;  ///< of "all", too
};

constexpr std::array<Section, 14> sections{{
    {"server", server, true, true},
    {"clients", clients, true, true},
    {"memory", memory, true, true},
    {"persistence", persistence, true, true},
    {"stats", stats, true, true},
    {"replication", replication, true, true},
    {"cpu", cpu, true, true},
    {"modules", modules, true, false},
    {"commandstats", command_stats, false, true},
    {"errorstats", error_stats, true, true},
    {"latencystats", latency_stats, false, true},
    {"cluster", cluster, true, true},
    {"keyspace", keyspace, true, true},
    {"semel", semel, true, true},
}};

bool asks_for(std::string_view name, const Section& section) {
  return is_word(name, section.name) || is_word(name, "everything") ||
         (is_word(name, "all") && section.of_all) || (is_word(name, "default") && section.usual);
}

}  // namespace

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t step = 1024;
  constexpr std::string_view units = "KMGTPE";
  if (bytes < step) return std::to_string(bytes) + "B";
  double amount = static_cast<double>(bytes) / step;
  std::size_t unit = 0;
  while (amount >= step && unit + 1 < units.size()) {
    amount /= step;
    ++unit;
  }
  return text_of(amount, 2) + units[unit];
}

std::string info_text(Services& services, std::span<const std::string_view> names) {
  std::optional<Facts> facts;
  std::string text;
  for (const Section& section : sections) {
    const bool asked =
        names.empty() ? section.usual : std::any_of(names.begin(), names.end(), [&](auto name) {
          return asks_for(name, section);
        });
    if (!asked) continue;
    if (!facts) facts.emplace(Facts{services});
    if (!text.empty()) text += "\r\n";
    text += section.write(*facts);
  }
  return text;
}

}  // namespace semel::net
