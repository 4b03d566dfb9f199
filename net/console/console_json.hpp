// The answers to the console's calls, as JSON. Pure.
//
// Bytes that clients chose (keys, owners, results) are texts of key_text(). Epochs are texts, too:
// numbers of JavaScript have 53 bits.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "net/admin/metrics.hpp"
#include "net/console/history.hpp"
#include "semel/claim.hpp"
#include "semel/local_redis.hpp"

namespace semel::net {

[[nodiscard]] inline boost::json::string_view json_text(std::string_view text) noexcept {
  return {text.data(), text.size()};
}

struct ConsoleState {
  std::string not_ready{};  ///< the reason; empty: the node is ready
  std::int64_t unix_ms = 0;
  bool has_actions = false;
  std::size_t sessions = 0;
};

[[nodiscard]] boost::json::object status_json(const MetricValues& values,
                                              const ConsoleHistory& history,
                                              const ConsoleState& state);
/// The samples after the one with this number.
[[nodiscard]] boost::json::object history_json(const ConsoleHistory& history, std::uint64_t after);

/// Claims by namespace over the last hour: {"minutes": [..], "namespaces": [{"name", "granted",
/// "duplicates", "refused"}]}, each a list of counts between two of the minutes. A takeover is
/// granted, a replay and an answer "in flight" are duplicates.
[[nodiscard]] boost::json::object courses_json(const ConsoleHistory& history);

/// A reply of SEMEL.GETCLAIM, or an element of SEMEL.EXPLAIN. Long payloads are cut; the object has
/// their length.
[[nodiscard]] boost::json::value reply_json(const Reply& reply);
[[nodiscard]] boost::json::object policy_json(const Policy& policy);

/// The first text of a map's pair; empty: there is no such pair.
[[nodiscard]] const Reply* field_of(const Reply& map, std::string_view name) noexcept;

[[nodiscard]] std::string_view name_of(ClaimCount count) noexcept;

}  // namespace semel::net
