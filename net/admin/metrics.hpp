// Formats the metrics of a node as a page for Prometheus: text format 0.0.4.
//
// Pure: the caller collects the numbers. The metrics are listed in metrics.def.
// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/admin/process_metrics.hpp"
#include "semel/engine.hpp"
#include "semel/storage.hpp"

namespace semel::net {

inline constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

/// The most series of one list below, so that the size of a page is limited. Further elements are
/// omitted; semel_metrics_left_out counts them.
inline constexpr std::size_t metric_series_max = 1024;
inline constexpr std::size_t label_bytes_max = 256;  ///< a longer value is cut

struct CommandMetric {
  std::string name{};  ///< lower case, each once
  std::uint64_t calls = 0;
  double seconds = 0;          ///< in all of them
  std::uint64_t failed = 0;    ///< replied with an error after they began
  std::uint64_t rejected = 0;  ///< refused before they began
};

struct ErrorMetric {
  std::string code{};  ///< the first word of the reply, each once
  std::uint64_t count = 0;
};

struct DatabaseMetric {
  unsigned number = 0;
  std::uint64_t records = 0;
  std::uint64_t records_with_ttl = 0;
};

struct ScriptMetric {
  std::string name{};  ///< of the catalogue, each once
  std::uint64_t count = 0;
};

struct GroupMemberMetric {
  std::uint64_t id = 0;
  std::uint64_t lag = 0;  ///< entries that it lacks; known to the leader
  bool connected = false;
  bool votes = false;
  std::uint64_t match = 0;  ///< the newest entry that it has; known to the leader
  std::uint64_t bytes_sent = 0;
  std::uint64_t frames_received = 0;
};
/// Of the group that the node belongs to.
struct GroupMetric {
  std::uint64_t term = 0;
  std::uint64_t leader = 0;  ///< 0: not known
  bool leads = false;
  std::uint64_t commit = 0;
  std::uint64_t applied = 0;
  std::uint64_t elections_won = 0;
  bool votes = false;     ///< it is a voter
  std::uint64_t lag = 0;  ///< entries that are committed and not applied here
  bool fetches_snapshot = false;
  std::uint64_t snapshot_bytes_sent = 0;
  std::uint64_t snapshot_bytes_received = 0;
  std::uint64_t log_bytes = 0;
  bool disk_full = false;
  double clock_off_seconds = 0;
  double stalled_seconds = 0;
  std::uint64_t refused = 0;                 ///< connections of those that are no members
  std::vector<GroupMemberMetric> members{};  ///< but this node
};

struct MetricValues {
  // The process.
  std::string version{};  ///< of Semel
  std::string run_id{};
  std::string redis_version{};  ///< as in INFO
  std::uint64_t process_id = 0;
  std::uint16_t port = 0;
  double started_unix_seconds = 0;
  double uptime_seconds = 0;
  bool ready = false;
  std::optional<ProcessMetrics> process{};

  // Clients.
  std::uint64_t connections = 0;  ///< open now
  std::uint64_t connections_blocked = 0;
  std::uint64_t connections_max = 0;
  std::uint64_t connections_accepted = 0;
  std::uint64_t connections_refused = 0;
  std::uint64_t http_refused = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;

  // Commands.
  std::uint64_t commands = 0;
  std::uint64_t error_replies = 0;
  std::uint64_t scripts_refused = 0;
  std::uint64_t scripts_interpreted = 0;
  std::vector<ScriptMetric> scripts_native{};
  std::vector<CommandMetric> by_command{};
  std::vector<ErrorMetric> by_error{};
  /// A histogram of all commands: element i counts those that took at most 2^i microseconds and
  /// more than half of that; the last element also counts all that took longer. At most 64.
  std::vector<std::uint64_t> command_times{};
  double command_seconds = 0;  ///< the sum of them

  // Records.
  std::string maxmemory_policy = "noeviction";
  Stats engine{};
  std::vector<NamespaceCounts> claims{};  ///< at most limits::counted_namespaces_max and the rest
  std::vector<DatabaseMetric> databases{};
  std::optional<StorageStats> storage{};  ///< none: memory only
  std::optional<GroupMetric> group{};     ///< none: it belongs to none
};

struct MetricOptions {
  bool redis_names = false;  ///< also the usual names of Redis exporters
};

[[nodiscard]] std::string metrics_text(const MetricValues& values,
                                       const MetricOptions& options = {});

/// All metrics as tables in Markdown, for docs/operations.md.
[[nodiscard]] std::string metrics_table();

}  // namespace semel::net
