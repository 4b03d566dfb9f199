#include "gateway/shared/counters.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace semel::gateway {
namespace {

void append_line(std::string& text, const std::string& series, std::uint64_t value) {
  text.append(series).append(" ").append(std::to_string(value)).append("\n");
}

void append_head(std::string& text, const std::string& name, const char* type, const char* help) {
  text.append("# HELP ").append(name).append(" ").append(help).append("\n");
  text.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

std::string seconds(std::uint64_t microseconds) {
  std::string digits = std::to_string(microseconds);
  constexpr std::size_t places = 6;
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  digits.insert(digits.size() - places, ".");
  while (digits.ends_with('0')) digits.pop_back();
  if (digits.ends_with('.')) digits.pop_back();
  return digits;
}

}  // namespace

void Histogram::add(std::uint64_t microseconds) noexcept {
  const auto found = std::lower_bound(bounds.begin(), bounds.end(), microseconds);
  buckets_[static_cast<std::size_t>(found - bounds.begin())].add();
  sum_.add(microseconds);
}

void Histogram::append_text(std::string& text, const std::string& name) const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    count += buckets_[i].get();
    const std::string bound = i < bounds.size() ? seconds(bounds[i]) : "+Inf";
    append_line(text, name + "_bucket{le=\"" + bound + "\"}", count);
  }
  text.append(name).append("_sum ").append(seconds(sum_.get())).append("\n");
  append_line(text, name + "_count", count);
}

std::vector<std::shared_ptr<RouteCounts>> Counters::counts_for(
    const std::vector<Route>& routes) const {
  std::vector<std::string> names;
  for (const Route& route : routes) names.push_back(route.name);
  names.emplace_back("default");
  std::vector<std::shared_ptr<RouteCounts>> found;
  const base::MutexLock lock{mutex_};
  for (const std::string& name : names) {
    const auto shown = std::find_if(routes_.begin(), routes_.end(),
                                    [&](const auto& each) { return each->name == name; });
    found.push_back(shown != routes_.end() ? *shown : std::make_shared<RouteCounts>(name));
  }
  return found;
}

void Counters::show(std::vector<std::shared_ptr<RouteCounts>> routes) {
  const base::MutexLock lock{mutex_};
  routes_ = std::move(routes);
}

void Counters::count_request(RouteCounts& route, Outcome outcome, unsigned status,
                             std::uint64_t microseconds) noexcept {
  route.outcomes[static_cast<std::size_t>(outcome)].add();
  constexpr unsigned per_class = 100;
  status_classes_[std::min<std::size_t>(status / per_class, status_classes_.size() - 1)].add();
  durations_.add(microseconds);
}

std::string Counters::text(const MemoryBudget& memory) const {
  std::string text;
  const std::string requests = "semel_gateway_requests_total";
  append_head(text, requests, "counter", "Requests by route and outcome.");
  std::vector<std::shared_ptr<RouteCounts>> routes;
  {
    const base::MutexLock lock{mutex_};
    routes = routes_;
  }
  for (const auto& route : routes) {
    for (std::size_t i = 0; i < outcome_count; ++i) {
      const std::uint64_t value = route->outcomes[i].get();
      if (value == 0) continue;
      append_line(text,
                  requests + "{route=\"" + route->name + "\",outcome=\"" +
                      std::string{name_of(static_cast<Outcome>(i))} + "\"}",
                  value);
    }
  }
  const std::string replies = "semel_gateway_replies_total";
  append_head(text, replies, "counter", "Replies to clients by class of status.");
  for (std::size_t i = 1; i < status_classes_.size(); ++i) {
    append_line(text, replies + "{status=\"" + std::to_string(i) + "xx\"}",
                status_classes_[i].get());
  }
  const std::string durations = "semel_gateway_request_seconds";
  append_head(text, durations, "histogram", "From the head of a request to the end of its reply.");
  durations_.append_text(text, durations);
  const std::pair<const char*, std::pair<const Counter*, const char*>> gauges[] = {
      {"semel_gateway_connections", {&connections, "Connections of clients."}},
      {"semel_gateway_requests_open", {&requests_open, "Requests that are not answered yet."}},
      {"semel_gateway_store_connections",
       {&store_connections, "Connections to nodes of the store."}}};
  for (const auto& [name, rest] : gauges) {
    append_head(text, name, "gauge", rest.second);
    append_line(text, name, rest.first->get());
  }
  const std::string held = "semel_gateway_memory_held_bytes";
  append_head(text, held, "gauge", "Of body-memory: bodies, replies and large heads.");
  append_line(text, held, memory.held());
  const std::pair<const char*, std::pair<const Counter*, const char*>> counters[] = {
      {"semel_gateway_connections_refused_total",
       {&connections_refused, "Connections beyond the limit."}},
      {"semel_gateway_clients_dropped_total",
       {&clients_dropped, "Slow clients whose place another one needed."}},
      {"semel_gateway_upstream_connections_opened_total",
       {&upstream_opened, "Connections to the upstream that were opened."}},
      {"semel_gateway_upstream_connections_reused_total",
       {&upstream_reused, "Requests that were sent on a connection of the pool."}},
      {"semel_gateway_upstream_connections_failed_total",
       {&upstream_failed, "Connections to the upstream that could not be opened."}},
      {"semel_gateway_replies_unrecorded_total",
       {&replies_unrecorded, "Replies that were passed on and that the store did not take."}},
      {"semel_gateway_leases_superseded_total",
       {&leases_superseded, "Replies that came after their lease was lost."}},
      {"semel_gateway_access_log_lines_lost_total",
       {&log_lines_lost, "Lines of the access log that found its queue full."}},
      {"semel_gateway_store_connections_failed_total",
       {&store_connects_failed, "Connections to nodes that could not be opened."}},
      {"semel_gateway_store_commands_repeated_total",
       {&store_repeated, "Commands that were sent to a node again."}},
      {"semel_gateway_store_commands_unanswered_total",
       {&store_unanswered, "Calls of the store that ended without an answer."}}};
  for (const auto& [name, rest] : counters) {
    append_head(text, name, "counter", rest.second);
    append_line(text, name, rest.first->get());
  }
  return text;
}

}  // namespace semel::gateway
