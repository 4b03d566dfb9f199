#include "gateway/proxy/counters.hpp"

namespace semel::gateway {
namespace {

struct Row {
  Count what;
  const char* name;
  const char* help;
};
constexpr Row rows[] = {
    {Count::connections, "connections", "Connections of clients"},
    {Count::requests, "requests", "Requests of clients"},
    {Count::passed, "passed", "Requests that passed through unguarded"},
    {Count::guarded, "guarded", "Requests with a key on a guarded route"},
    {Count::granted, "granted", "Guarded requests that were sent to the upstream"},
    {Count::replayed, "replayed", "Guarded requests that got a kept reply"},
    {Count::in_flight, "in_flight", "Guarded requests refused because theirs is being carried out"},
    {Count::mismatch, "mismatch", "Guarded requests whose key was used for another one"},
    {Count::in_doubt, "in_doubt", "Guarded requests of which it is not known whether they ran"},
    {Count::not_kept, "not_kept", "Guarded requests that ran, and whose reply is not kept"},
    {Count::busy, "busy", "Guarded requests refused for memory or disk"},
    {Count::refused, "refused", "Guarded requests that could not be guarded"},
    {Count::bad_requests, "bad_requests", "Requests that are no HTTP, or without a key"},
    {Count::upstream_failed, "upstream_failed", "Requests that the upstream did not answer"},
    {Count::unrecorded, "unrecorded", "Ends of requests that could not be written down"},
};
static_assert(std::size(rows) == static_cast<std::size_t>(Count::last));

}  // namespace

std::string Counters::text() const {
  std::string text;
  for (const Row& row : rows) {
    const std::string name = std::string{"semel_gateway_"} + row.name + "_total";
    text += "# HELP " + name + " " + row.help + ".\n# TYPE " + name + " counter\n" + name + " " +
            std::to_string(of(row.what)) + "\n";
  }
  return text;
}

}  // namespace semel::gateway
