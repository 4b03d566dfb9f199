#include "net/console/console_json.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <numeric>

#include "net/console/console_limits.hpp"
#include "net/console/key_text.hpp"

namespace semel::net {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, claim_count_count> count_names = {
    "granted",  "takeover", "replay", "in_flight", "mismatch",
    "in_doubt", "too_old",  "poison", "busy",      "other"};

template <class Number>
json::object by_outcome(const std::array<Number, claim_count_count>& counts) {
  json::object object;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) object[json_text(count_names[i])] = counts[i];
  }
  return object;
}

json::object group_json(const GroupMetric& group) {
  json::array members;
  for (const GroupMemberMetric& each : group.members) {
    members.push_back(json::object{{"id", each.id},
                                   {"lag", each.lag},
                                   {"match", each.match},
                                   {"connected", each.connected},
                                   {"votes", each.votes}});
  }
  return {{"leads", group.leads},         {"leader", group.leader},
          {"term", group.term},           {"commit", group.commit},
          {"applied", group.applied},     {"lag", group.lag},
          {"votes", group.votes},         {"fetches_snapshot", group.fetches_snapshot},
          {"disk_full", group.disk_full}, {"log_bytes", group.log_bytes},
          {"members", std::move(members)}};
}

json::object storage_json(const StorageStats& storage) {
  return {{"accepting", storage.accepting},        {"failed", storage.failed},
          {"trouble", json_text(storage.trouble)}, {"bytes_unsynced", storage.bytes_unsynced},
          {"bytes_log", storage.bytes_log},        {"bytes_files", storage.bytes_files}};
}

bool is_payload(std::string_view name) noexcept {
  return name == "result" || name == "failure";
}

bool is_epoch(std::string_view name) noexcept {
  return name == "epoch" || name == "seen_epoch";
}

json::value payload_json(const Reply& reply) {
  if (reply.is_null()) return nullptr;
  const std::string_view bytes = reply.text;
  const bool is_cut = bytes.size() > console_limits::payload_bytes_shown;
  return json::object{{"text", key_text(bytes.substr(0, console_limits::payload_bytes_shown))},
                      {"bytes", bytes.size()},
                      {"cut", is_cut}};
}

}  // namespace

std::string_view name_of(ClaimCount count) noexcept {
  return count_names[static_cast<std::size_t>(count)];
}

json::object status_json(const MetricValues& values, const ConsoleHistory& history,
                         const ConsoleState& state) {
  json::array claims;
  for (const ConsoleHistory::Claims& each : history.claims()) {
    claims.push_back(json::object{{"name", json_text(each.name)},
                                  {"total", by_outcome(each.total)},
                                  {"hour", by_outcome(each.hour)},
                                  {"per_second", by_outcome(each.per_second)}});
  }
  json::object memory{
      {"used", values.engine.bytes_used},          {"limit", values.engine.bytes_limit},
      {"records", values.engine.bytes_records},    {"table", values.engine.bytes_table},
      {"timers", values.engine.bytes_wheel},       {"namespaces", values.engine.bytes_namespaces},
      {"decisions", values.engine.bytes_decisions}};
  if (values.process) memory["resident"] = values.process->resident_bytes;
  return {{"version", json_text(values.version)},
          {"port", values.port},
          {"process", values.process_id},
          {"unix_ms", state.unix_ms},
          {"uptime_seconds", values.uptime_seconds},
          {"ready", state.not_ready.empty()},
          {"not_ready", json_text(state.not_ready)},
          {"actions", state.has_actions},
          {"sessions", state.sessions},
          {"connections", values.connections},
          {"connections_max", values.connections_max},
          {"connections_blocked", values.connections_blocked},
          {"commands", values.commands},
          {"error_replies", values.error_replies},
          {"records", values.engine.records},
          {"waiters", values.engine.waiters},
          {"refused", values.engine.refused},
          {"memory", std::move(memory)},
          {"claims", std::move(claims)},
          {"hour_seconds", history.hour_span().count() / 1000},
          {"storage",
           values.storage ? json::value(storage_json(*values.storage)) : json::value(nullptr)},
          {"group", values.group ? json::value(group_json(*values.group)) : json::value(nullptr)}};
}

json::object history_json(const ConsoleHistory& history, std::uint64_t after) {
  json::array samples;
  for (const ConsoleSample& each : history.samples()) {
    if (each.number <= after) continue;
    samples.push_back(json::object{{"number", each.number},
                                   {"unix_ms", each.unix_ms},
                                   {"commands", each.commands_per_second},
                                   {"p50_us", each.p50_us},
                                   {"p99_us", each.p99_us},
                                   {"max_us", each.max_us},
                                   {"used", each.bytes_used},
                                   {"resident", each.bytes_resident},
                                   {"records", each.records},
                                   {"unsynced", each.bytes_unsynced},
                                   {"syncs", each.syncs_per_second},
                                   {"log_bytes", each.log_bytes_per_second},
                                   {"lag", each.lag},
                                   {"claims", by_outcome(each.claims_per_second)}});
  }
  return {{"samples", std::move(samples)},
          {"every_seconds", console_limits::sample_every.count() / 1000},
          {"samples_max", console_limits::samples_max}};
}

json::object courses_json(const ConsoleHistory& history) {
  json::array minutes;
  for (const std::int64_t unix_ms : history.minutes()) minutes.push_back(unix_ms);
  json::array namespaces;
  for (const ConsoleHistory::Course& each : history.courses()) {
    json::array granted;
    json::array duplicates;
    json::array refused;
    for (const auto& counts : each.counts) {
      const auto of = [&](ClaimCount kind) { return counts[static_cast<std::size_t>(kind)]; };
      const std::uint64_t grants = of(ClaimCount::granted) + of(ClaimCount::takeover);
      const std::uint64_t repeats = of(ClaimCount::replay) + of(ClaimCount::in_flight);
      const auto all = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
      granted.push_back(grants);
      duplicates.push_back(repeats);
      refused.push_back(all - grants - repeats);
    }
    namespaces.push_back(json::object{{"name", json_text(each.name)},
                                      {"granted", std::move(granted)},
                                      {"duplicates", std::move(duplicates)},
                                      {"refused", std::move(refused)}});
  }
  return {{"minutes", std::move(minutes)}, {"namespaces", std::move(namespaces)}};
}

json::value reply_json(const Reply& reply) {
  switch (reply.type) {
    case Reply::Type::integer:
      return reply.integer;
    case Reply::Type::number:
      return reply.number;
    case Reply::Type::boolean:
      return reply.integer != 0;
    case Reply::Type::null:
      return nullptr;
    case Reply::Type::simple:
    case Reply::Type::error:
    case Reply::Type::bulk:
      return json::value(key_text(reply.text));
    case Reply::Type::map: {
      json::object object;
      for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2) {
        const std::string& name = reply.items[i].text;
        const Reply& value = reply.items[i + 1];
        if (is_payload(name)) {
          object[name] = payload_json(value);
        } else if (is_epoch(name) && value.type == Reply::Type::integer) {
          object[name] = std::to_string(value.integer);
        } else {
          object[name] = reply_json(value);
        }
      }
      return object;
    }
    default:
      break;
  }
  json::array array;
  for (const Reply& item : reply.items) array.push_back(reply_json(item));
  return array;
}

json::object policy_json(const Policy& policy) {
  return {
      {"db", policy.db},
      {"lease_ms", policy.lease.count()},
      {"result_ttl_ms", policy.result_ttl.count()},
      {"unique_ttl_ms", policy.unique_ttl.count()},
      {"failure_ttl_ms", policy.failure_ttl.count()},
      {"attempts_max", policy.attempts_max},
      {"on_lease_end", policy.on_lease_end == Policy::OnLeaseEnd::retry ? "retry" : "in-doubt"}};
}

const Reply* field_of(const Reply& map, std::string_view name) noexcept {
  if (map.type != Reply::Type::map) return nullptr;
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    if (map.items[i].text == name) return &map.items[i + 1];
  }
  return nullptr;
}

}  // namespace semel::net
