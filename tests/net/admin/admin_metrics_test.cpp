// Words: a page of metrics is read by a small parser of the text format, which knows nothing of how
// it was made.
#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/admin/escape.hpp"
#include "net/admin/metrics.hpp"
#include "net/admin/process_metrics.hpp"

namespace semel::tests {
namespace {

using net::metrics_text;
using net::MetricValues;

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  std::string value;
};

struct Page {
  std::map<std::string, std::string> types;
  std::vector<Sample> samples;

  [[nodiscard]] std::optional<std::string> find(
      const std::string& name, const std::map<std::string, std::string>& labels = {}) const {
    for (const Sample& sample : samples) {
      if (sample.name == name && sample.labels == labels) return sample.value;
    }
    return std::nullopt;
  }
};

bool is_name(const std::string& text, bool may_have_colon) {
  const auto fits = [&](char c, bool is_first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (may_have_colon && c == ':') || (!is_first && c >= '0' && c <= '9');
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!fits(text[i], i == 0)) return false;
  }
  return !text.empty();
}

/// From the '{' on; moves `at` behind the '}'.
std::map<std::string, std::string> labels_of(const std::string& line, std::size_t& at) {
  std::map<std::string, std::string> labels;
  while (line.at(at) != '}') {
    const std::size_t equal = line.find('=', ++at);
    REQUIRE(equal != std::string::npos);
    const std::string name = line.substr(at, equal - at);
    REQUIRE(is_name(name, false));
    at = equal + 1;
    REQUIRE(line.at(at) == '"');
    std::string value;
    for (++at; line.at(at) != '"'; ++at) {
      if (line[at] == '\\') {
        ++at;
        REQUIRE((line.at(at) == '\\' || line[at] == '"' || line[at] == 'n'));
        value += line[at] == 'n' ? '\n' : line[at];
      } else {
        value += line[at];
      }
    }
    ++at;
    REQUIRE(labels.emplace(name, value).second);
    REQUIRE((line.at(at) == ',' || line[at] == '}'));
  }
  ++at;
  return labels;
}

bool is_number(const std::string& text) {
  if (text == "NaN" || text == "+Inf" || text == "-Inf") return true;
  std::size_t end = 0;
  const bool begins =
      !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) != 0 || text[0] == '-');
  if (begins) (void)std::stod(text, &end);
  return begins && end == text.size();
}

/// The metric that a sample belongs to: a histogram's samples have a suffix.
std::string family_of(const Page& page, const std::string& sample) {
  for (const std::string suffix : {"_bucket", "_sum", "_count"}) {
    if (!sample.ends_with(suffix)) continue;
    const std::string base = sample.substr(0, sample.size() - suffix.size());
    if (const auto type = page.types.find(base);
        type != page.types.end() && type->second == "histogram") {
      return base;
    }
  }
  return sample;
}

Page page_of(const std::string& text) {
  Page page;
  std::set<std::string> helped;
  std::string family;  // whose samples may come
  REQUIRE(text.ends_with('\n'));
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    std::istringstream words{line};
    std::string hash, kind, name, type;
    if (line.starts_with("# ")) {
      words >> hash >> kind >> name >> type;
      REQUIRE(is_name(name, true));
      REQUIRE(line.find('\\') == std::string::npos);
      if (kind == "HELP") {
        REQUIRE(helped.insert(name).second);
        REQUIRE_FALSE(type.empty());
      } else {
        REQUIRE(kind == "TYPE");
        REQUIRE(helped.contains(name));
        REQUIRE((type == "counter" || type == "gauge" || type == "histogram"));
        REQUIRE((name.ends_with("_total") == (type == "counter")));
        REQUIRE(page.types.emplace(name, type).second);
        family = name;
      }
      continue;
    }
    std::size_t at = line.find_first_of("{ ");
    REQUIRE(at != std::string::npos);
    Sample sample{.name = line.substr(0, at), .labels = {}, .value = {}};
    if (line[at] == '{') sample.labels = labels_of(line, at);
    REQUIRE(line.at(at) == ' ');
    sample.value = line.substr(at + 1);
    REQUIRE(is_number(sample.value));
    REQUIRE(family_of(page, sample.name) == family);
    REQUIRE_FALSE(page.find(sample.name, sample.labels));
    page.samples.push_back(std::move(sample));
  }
  return page;
}

MetricValues metrics_of_a_node() {
  MetricValues values;
  values.version = "1.2.3";
  values.run_id = "abc";
  values.redis_version = "7.0.15";
  values.process_id = 77;
  values.port = 6379;
  values.started_unix_seconds = 1767322625.5;
  values.uptime_seconds = 12.25;
  values.ready = true;
  values.process = net::ProcessMetrics{1.5, 4096, 8192, 9, 1024};
  values.connections = 3;
  values.connections_blocked = 2;
  values.connections_max = 10'000;
  values.connections_accepted = 5;
  values.connections_refused = 1;
  values.bytes_received = 1000;
  values.bytes_sent = 2000;
  values.commands = 30;
  values.error_replies = 4;
  values.by_command = {{"get", 20, 0.25, 1, 2}, {"set", 10, 0.5, 0, 0}};
  values.by_error = {{"ERR", 3}, {"WRONGTYPE", 1}};
  values.command_times = {5, 0, 20, 5};
  values.command_seconds = 0.75;
  values.databases = {{0, 7, 6}, {3, 2, 0}};
  values.storage = StorageStats{};
  return values;
}

std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

constexpr std::string_view table_begin = "writes the list -->\n";
constexpr std::string_view table_end = "<!-- metrics: end -->";

std::string page_with_table(const std::string& page) {
  const std::size_t begin = page.find(table_begin) + table_begin.size();
  const std::size_t end = page.find(table_end);
  REQUIRE(end != std::string::npos);
  REQUIRE(begin <= end);
  return page.substr(0, begin) + "\n" + net::metrics_table() + "\n" + page.substr(end);
}

}  // namespace

TEST_CASE("metrics: a page is in the text format, with and without Redis' names",
          "[net][metrics]") {
  const MetricValues values = metrics_of_a_node();
  const Page plain = page_of(metrics_text(values));
  const Page both = page_of(metrics_text(values, {.redis_names = true}));
  for (const auto& [name, type] : plain.types) CHECK((!name.starts_with("redis_")));
  CHECK(both.types.size() > plain.types.size());
  for (const auto& [name, type] : plain.types) CHECK(both.types.contains(name));
}

TEST_CASE("metrics: figures stand under their names", "[net][metrics]") {
  const Page page = page_of(metrics_text(metrics_of_a_node()));
  CHECK(page.find("semel_build_info", {{"version", "1.2.3"}}) == "1");
  CHECK(page.find("semel_ready") == "1");
  CHECK(page.find("semel_start_time_seconds") == "1767322625.5");
  CHECK(page.find("semel_uptime_seconds") == "12.25");
  CHECK(page.find("semel_connections") == "3");
  CHECK(page.find("semel_connections_blocked") == "2");
  CHECK(page.find("semel_connections_limit") == "10000");
  CHECK(page.find("semel_connections_accepted_total") == "5");
  CHECK(page.find("semel_connections_refused_total") == "1");
  CHECK(page.find("semel_network_received_bytes_total") == "1000");
  CHECK(page.find("semel_network_sent_bytes_total") == "2000");
  CHECK(page.find("semel_commands_total") == "30");
  CHECK(page.find("semel_command_calls_total", {{"command", "get"}}) == "20");
  CHECK(page.find("semel_command_seconds_total", {{"command", "set"}}) == "0.5");
  CHECK(page.find("semel_command_failed_total", {{"command", "get"}}) == "1");
  CHECK(page.find("semel_command_rejected_total", {{"command", "get"}}) == "2");
  CHECK(page.find("semel_error_replies_total") == "4");
  CHECK(page.find("semel_errors_total", {{"code", "WRONGTYPE"}}) == "1");
  CHECK(page.find("semel_database_records", {{"db", "3"}}) == "2");
  CHECK(page.find("semel_database_records_with_ttl", {{"db", "0"}}) == "6");
  CHECK(page.find("process_cpu_seconds_total") == "1.5");
  CHECK(page.find("process_resident_memory_bytes") == "4096");
  CHECK(page.find("process_virtual_memory_bytes") == "8192");
  CHECK(page.find("process_open_fds") == "9");
  CHECK(page.find("process_max_fds") == "1024");
}

TEST_CASE("metrics: Redis' dashboards find what they ask for", "[net][metrics]") {
  MetricValues values = metrics_of_a_node();
  values.engine.hits = 8;
  values.engine.misses = 9;
  values.engine.expired = 10;
  values.engine.bytes_used = 11;
  values.engine.bytes_limit = 12;
  const Page page = page_of(metrics_text(values, {.redis_names = true}));
  const std::map<std::string, std::string> expected = {
      {"redis_up", "1"},
      {"redis_connected_clients", "3"},
      {"redis_blocked_clients", "2"},
      {"redis_memory_used_bytes", "11"},
      {"redis_memory_max_bytes", "12"},
      {"redis_commands_processed_total", "30"},
      {"redis_keyspace_hits_total", "8"},
      {"redis_keyspace_misses_total", "9"},
      {"redis_expired_keys_total", "10"},
      {"redis_evicted_keys_total", "0"},
      {"redis_net_input_bytes_total", "1000"},
      {"redis_net_output_bytes_total", "2000"},
      {"redis_uptime_in_seconds", "12.25"},
      {"redis_connections_received_total", "5"},
      {"redis_rejected_connections_total", "1"},
  };
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(page.find(name) == value);
  }
  CHECK(page.find("redis_commands_total", {{"cmd", "get"}}) == "20");
  CHECK(page.find("redis_commands_duration_seconds_total", {{"cmd", "get"}}) == "0.25");
  CHECK(page.find("redis_db_keys", {{"db", "db0"}}) == "7");
  CHECK(page.find("redis_db_keys_expiring", {{"db", "db0"}}) == "6");
  const auto info = std::find_if(page.samples.begin(), page.samples.end(),
                                 [](const Sample& s) { return s.name == "redis_instance_info"; });
  REQUIRE(info != page.samples.end());
  CHECK(info->labels.at("role") == "master");
  CHECK(info->labels.at("redis_version") == "7.0.15");
  CHECK(info->labels.at("tcp_port") == "6379");
  CHECK(info->labels.at("maxmemory_policy") == "noeviction");
}

TEST_CASE("metrics: every figure of the engine is shown", "[net][metrics]") {
  // All of its fields have 8 bytes; each gets a number of its own.
  std::array<std::uint64_t, sizeof(Stats) / sizeof(std::uint64_t)> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 5'000'000'000 + i * 1'000;
  MetricValues values = metrics_of_a_node();
  values.engine = std::bit_cast<Stats>(numbers);
  const auto lag = static_cast<std::uint64_t>(values.engine.wheel_lag.count());
  const Page page = page_of(metrics_text(values));
  for (const std::uint64_t number : numbers) {
    const std::string shown = std::to_string(number == lag ? number / 1'000 : number);
    const auto count = std::count_if(page.samples.begin(), page.samples.end(),
                                     [&](const Sample& sample) { return sample.value == shown; });
    INFO("field " << (number - 5'000'000'000) / 1'000);
    CHECK(count == 1);
  }
}

TEST_CASE("metrics: claims are counted by namespace and outcome, with a bound", "[net][metrics]") {
  MetricValues values = metrics_of_a_node();
  const auto samples_of = [](const Page& page) {
    return std::count_if(page.samples.begin(), page.samples.end(),
                         [](const Sample& sample) { return sample.name == "semel_claims_total"; });
  };
  CHECK(samples_of(page_of(metrics_text(values))) == 0);
  NamespaceCounts orders{.name = "orders", .counts = {}};
  for (std::size_t i = 0; i < orders.counts.size(); ++i) orders.counts[i] = i + 1;
  values.claims = {orders, {.name = {}, .counts = {70}}};
  const Page page = page_of(metrics_text(values));
  const std::map<std::string, std::string> expected = {
      {"granted", "1"},  {"takeover", "2"}, {"replay", "3"}, {"in_flight", "4"}, {"mismatch", "5"},
      {"in_doubt", "6"}, {"too_old", "7"},  {"poison", "8"}, {"busy", "9"},      {"other", "10"}};
  for (const auto& [outcome, count] : expected) {
    CHECK(page.find("semel_claims_total", {{"namespace", "orders"}, {"outcome", outcome}}) ==
          count);
  }
  CHECK(page.find("semel_claims_total",
                  {{"namespace", "other namespaces"}, {"outcome", "granted"}}) == "70");
  // Whatever the caller collects, so many namespaces are shown and no more.
  values.claims.assign(10'000, orders);
  for (std::size_t i = 0; i < values.claims.size(); ++i) {
    values.claims[i].name = "n" + std::to_string(i);
  }
  CHECK(samples_of(page_of(metrics_text(values))) ==
        (limits::counted_namespaces_max + 1) * claim_count_count);
}

TEST_CASE("metrics: scripts that ran natively are counted by their known names", "[net][metrics]") {
  MetricValues values = metrics_of_a_node();
  values.scripts_interpreted = 4;
  values.scripts_native = {{"one command", 3}, {"release", 2}};
  const Page page = page_of(metrics_text(values));
  CHECK(page.find("semel_scripts_native_total", {{"script", "release"}}) == "2");
  CHECK(page.find("semel_scripts_native_total", {{"script", "one command"}}) == "3");
  CHECK(page.find("semel_scripts_interpreted_total") == "4");
}

TEST_CASE("metrics: a group is shown where the node belongs to one", "[net][metrics]") {
  MetricValues values = metrics_of_a_node();
  CHECK(metrics_text(values).find("semel_group") == std::string::npos);
  values.group = net::GroupMetric{.term = 3,
                                  .leader = 2,
                                  .leads = true,
                                  .commit = 40,
                                  .applied = 39,
                                  .elections_won = 5,
                                  .votes = true,
                                  .lag = 6,
                                  .fetches_snapshot = true,
                                  .snapshot_bytes_sent = 11,
                                  .snapshot_bytes_received = 12,
                                  .log_bytes = 13,
                                  .disk_full = true,
                                  .clock_off_seconds = -1.5,
                                  .stalled_seconds = 7.25,
                                  .refused = 14,
                                  .members = {{.id = 1,
                                               .lag = 7,
                                               .connected = true,
                                               .votes = true,
                                               .match = 33,
                                               .bytes_sent = 21,
                                               .frames_received = 22}}};
  const Page page = page_of(metrics_text(values));
  CHECK(page.find("semel_group_term") == "3");
  CHECK(page.find("semel_group_leads") == "1");
  CHECK(page.find("semel_group_leader") == "2");
  CHECK(page.find("semel_group_commit_index") == "40");
  CHECK(page.find("semel_group_applied_index") == "39");
  CHECK(page.find("semel_group_elections_won_total") == "5");
  CHECK(page.find("semel_group_votes") == "1");
  CHECK(page.find("semel_group_lag_entries") == "6");
  CHECK(page.find("semel_group_fetches_snapshot") == "1");
  CHECK(page.find("semel_group_snapshot_sent_bytes_total") == "11");
  CHECK(page.find("semel_group_snapshot_received_bytes_total") == "12");
  CHECK(page.find("semel_group_log_bytes") == "13");
  CHECK(page.find("semel_group_disk_full") == "1");
  CHECK(page.find("semel_group_clock_off_seconds") == "-1.5");
  CHECK(page.find("semel_group_stalled_seconds") == "7.25");
  CHECK(page.find("semel_group_peers_refused_total") == "14");
  const std::string text = metrics_text(values);
  CHECK(text.find("semel_group_member_votes{member=\"1\"} 1\n") != std::string::npos);
  CHECK(text.find("semel_group_member_match_index{member=\"1\"} 33\n") != std::string::npos);
  CHECK(text.find("semel_group_member_sent_bytes_total{member=\"1\"} 21\n") != std::string::npos);
  CHECK(text.find("semel_group_member_received_frames_total{member=\"1\"} 22\n") !=
        std::string::npos);
  CHECK(text.find("semel_group_member_connected{member=\"1\"} 1\n") != std::string::npos);
  CHECK(text.find("semel_group_member_lag_entries{member=\"1\"} 7\n") != std::string::npos);
}

TEST_CASE("metrics: a storage and the process are shown where there is one", "[net][metrics]") {
  MetricValues values = metrics_of_a_node();
  values.storage = StorageStats{.accepting = false,
                                .failed = true,
                                .trouble = "disk full",
                                .syncs = 1,
                                .bytes = 2,
                                .bytes_unsynced = 3,
                                .bytes_log = 4,
                                .bytes_files = 5,
                                .mutations_drained = 6,
                                .mutations_ended = 7,
                                .rewrites = 8,
                                .database = {.files = 9,
                                             .bytes_flushed = 10,
                                             .bytes_compacted = 11,
                                             .bytes_read = 12,
                                             .bytes_logged = 13,
                                             .log_syncs = 14,
                                             .stalled_us = 15}};
  const Page with = page_of(metrics_text(values));
  CHECK(with.find("semel_storage_accepting") == "0");
  CHECK(with.find("semel_storage_failed") == "1");
  CHECK(with.find("semel_storage_syncs_total") == "1");
  CHECK(with.find("semel_storage_appended_bytes_total") == "2");
  CHECK(with.find("semel_storage_unsynced_bytes") == "3");
  CHECK(with.find("semel_storage_log_bytes") == "4");
  CHECK(with.find("semel_storage_files_bytes") == "5");
  CHECK(with.find("semel_storage_mutations_drained_total") == "6");
  CHECK(with.find("semel_storage_mutations_ended_total") == "7");
  CHECK(with.find("semel_storage_rewrites_total") == "8");
  CHECK(with.find("semel_rocksdb_files") == "9");
  CHECK(with.find("semel_rocksdb_flushed_bytes_total") == "10");
  CHECK(with.find("semel_rocksdb_compacted_bytes_total") == "11");
  CHECK(with.find("semel_rocksdb_compaction_read_bytes_total") == "12");
  CHECK(with.find("semel_rocksdb_logged_bytes_total") == "13");
  CHECK(with.find("semel_rocksdb_log_syncs_total") == "14");
  CHECK(with.find("semel_rocksdb_stalled_microseconds_total") == "15");
  values.storage.reset();
  values.process.reset();
  const Page without = page_of(metrics_text(values));
  for (const auto& [name, type] : without.types) {
    CHECK((!name.starts_with("semel_storage_") && !name.starts_with("semel_rocksdb_") &&
           !name.starts_with("process_")));
  }
}

TEST_CASE("metrics: times of commands are a histogram that adds up", "[net][metrics]") {
  MetricValues values = metrics_of_a_node();
  const std::string name = "semel_command_duration_seconds";
  const Page page = page_of(metrics_text(values));
  CHECK(page.find(name + "_bucket", {{"le", "1e-06"}}) == "5");
  CHECK(page.find(name + "_bucket", {{"le", "2e-06"}}) == "5");
  CHECK(page.find(name + "_bucket", {{"le", "4e-06"}}) == "25");
  CHECK(page.find(name + "_bucket", {{"le", "+Inf"}}) == "30");
  CHECK(page.find(name + "_sum") == "0.75");
  CHECK(page.find(name + "_count") == "30");
  values.command_times.clear();
  const Page empty = page_of(metrics_text(values));
  CHECK(empty.find(name + "_bucket", {{"le", "+Inf"}}) == "0");
  CHECK(empty.find(name + "_count") == "0");
  values.command_times.assign(1'000, 1);
  CHECK(page_of(metrics_text(values)).find(name + "_count") == "64");
}

TEST_CASE("metrics: labels hold whatever they are given", "[net][metrics]") {
  MetricValues values;
  const std::string odd = "a\"b\\c\nd{e},f=\xc3\xa9";
  values.by_error = {{odd, 1}, {"\xff\xc3", 2}, {std::string(1'000, 'x'), 3}};
  const Page page = page_of(metrics_text(values, {.redis_names = true}));
  CHECK(page.find("semel_errors_total", {{"code", odd}}) == "1");
  CHECK(page.find("semel_errors_total", {{"code", "\\xff\\xc3"}}) == "2");
  CHECK(page.find("semel_errors_total", {{"code", std::string(net::label_bytes_max, 'x')}}) == "3");
  values.uptime_seconds = std::numeric_limits<double>::infinity();
  values.started_unix_seconds = std::numeric_limits<double>::quiet_NaN();
  const Page numbers = page_of(metrics_text(values));
  CHECK(numbers.find("semel_uptime_seconds") == "+Inf");
  CHECK(numbers.find("semel_start_time_seconds") == "NaN");
}

TEST_CASE("metrics: a list beyond its bound is cut, and the page says so", "[net][metrics]") {
  MetricValues values;
  for (std::size_t i = 0; i < net::metric_series_max; ++i) {
    values.by_error.push_back({"E" + std::to_string(i), 1});
  }
  CHECK(page_of(metrics_text(values)).find("semel_metrics_left_out") == "0");
  values.by_error.push_back({"LAST", 1});
  const Page page = page_of(metrics_text(values));
  CHECK(page.find("semel_metrics_left_out") == "1");
  CHECK_FALSE(page.find("semel_errors_total", {{"code", "LAST"}}));
}

TEST_CASE("metrics: the kernel's line about a process is read, whatever it is called",
          "[net][metrics]") {
  const std::string fields =
      "S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 4 0 999 1048576 25 18446744073709551615 1 1";
  for (const std::string name : {"semel", "a b) S 9", ") ) ("}) {
    const auto values = net::parse_process_stat("77 (" + name + ") " + fields, 100, 4096);
    REQUIRE(values);
    CHECK(values->cpu_seconds == 2.0);
    CHECK(values->virtual_bytes == 1'048'576);
    CHECK(values->resident_bytes == 25 * 4'096);
  }
  CHECK_FALSE(net::parse_process_stat("", 100, 4096));
  CHECK_FALSE(net::parse_process_stat("77 (semel) S 1 2", 100, 4096));
  CHECK_FALSE(net::parse_process_stat("77 (semel) " + fields, 0, 4096));

  const auto own = net::read_process_metrics();
  REQUIRE(own);
  CHECK(own->resident_bytes > 100'000);
  CHECK(own->virtual_bytes >= own->resident_bytes);
  CHECK(own->open_files >= 3);
  const std::ifstream further{"/proc/self/stat"};
  CHECK(net::read_process_metrics()->open_files == own->open_files + 1);
}

TEST_CASE("metrics: UTF-8 is distinguished from other bytes", "[net][metrics]") {
  using namespace std::string_view_literals;
  CHECK(net::utf8_length("") == 0);
  CHECK(net::utf8_length("\0"sv) == 1);
  for (const std::string_view whole :
       {"a"sv, "\xc2\x80"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv, "\xed\x9f\xbf"sv, "\xee\x80\x80"sv,
        "\xf0\x90\x80\x80"sv, "\xf4\x8f\xbf\xbf"sv}) {
    CHECK(net::utf8_length(whole) == whole.size());
    if (whole.size() > 1) CHECK(net::utf8_length(whole.substr(0, whole.size() - 1)) == 0);
  }
  for (const std::string_view broken :
       {"\x80"sv, "\xbf"sv, "\xc0\x80"sv, "\xc1\xbf"sv, "\xe0\x9f\xbf"sv, "\xed\xa0\x80"sv,
        "\xf0\x8f\xbf\xbf"sv, "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv, "\xff"sv,
        "\xc2"
        "a"sv}) {
    CHECK(net::utf8_length(broken) == 0);
  }
  CHECK(net::cut_at_character("ab\xc3\xa9", 3) == "ab");
  CHECK(net::cut_at_character("ab\xc3\xa9", 4) == "ab\xc3\xa9");
  CHECK(net::cut_at_character("abc", 0).empty());
}

TEST_CASE("metrics: docs/operations.md holds the list of metrics", "[net][metrics]") {
  const std::string page = content_of(SEMEL_OPERATIONS);
  // If not: admin_tests "[write-metrics]"
  CHECK((page == page_with_table(page)));
}

TEST_CASE("metrics: write the list of metrics into docs/operations.md", "[.][write-metrics]") {
  const std::string page = page_with_table(content_of(SEMEL_OPERATIONS));
  std::ofstream{SEMEL_OPERATIONS, std::ios::binary} << page;
  CHECK(content_of(SEMEL_OPERATIONS) == page);
}

}  // namespace semel::tests
