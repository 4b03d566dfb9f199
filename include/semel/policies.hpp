// Policies by name, with the figures that are usual for each kind of work. A policy is a value:
// copy one and change the fields that differ for you.
//
//   Policy orders = policies::message;
//   orders.lease = Millis{300'000};
//   auto claims = engine->claims("orders", orders).value();
//
// On the node: SEMEL.NAMESPACE orders AS message LEASE 300000, or in its configuration
// [namespaces.orders] as = "message".
// Source: docs/patterns.md#policies
#pragma once

#include <array>
#include <optional>

#include "semel/claim.hpp"

namespace semel {

/// A namespace and what it promises.
struct NamedPolicy {
  Bytes name;
  Policy policy;
};

namespace policies {

/// A guarded call: repeats within the hour get the answer of the first.
inline constexpr Policy call{.lease = Millis{60'000}, .result_ttl = Millis{3'600'000}};

/// A message that a broker delivers at least once: 16 tries, remembered for a day.
inline constexpr Policy message{
    .lease = Millis{60'000}, .result_ttl = Millis{86'400'000}, .attempts_max = 16};

/// Money: work that went silent, threw, or does not know its outcome is not run again before an
/// operator has resolved it; an answer is kept for 30 days, and later repeats are too old.
inline constexpr Policy payment{.lease = Millis{60'000},
                                .result_ttl = Millis{30LL * 86'400'000},
                                .failure_ttl = Millis{30LL * 86'400'000},
                                .window = Millis{30LL * 86'400'000},
                                .on_lease_end = Policy::OnLeaseEnd::in_doubt,
                                .on_exception = Policy::OnFailure::in_doubt};

/// One-time tokens: good for 6 s, for 6 s again after a failed run, 3 tries; what became of it is
/// remembered for an hour.
inline constexpr Policy token{.lease = Millis{60'000},
                              .result_ttl = Millis{3'600'000},
                              .failure_ttl = Millis{3'600'000},
                              .attempts_ttl = Millis{6'000},
                              .attempts_max = 3,
                              .issued = true};

/// Locks: 30 s, to be renewed each third of it. A lock remembers nothing once it is free.
inline constexpr Policy lock{.lease = Millis{30'000}, .attempts_ttl = Millis{1}};

/// Locks that are given in the order in which they were asked for.
inline constexpr Policy fair_lock{.lease = Millis{30'000}, .attempts_ttl = Millis{1}, .fair = true};

/// A click that comes twice: 45 s, longer than clients wait.
inline constexpr Policy debounce{.lease = Millis{45'000}, .attempts_ttl = Millis{1}};

/// Nonces of requests sent within 60 s of now, before or after; remembered for as long as such a
/// request could be replayed.
inline constexpr Policy nonce{.lease = Millis{1'000},
                              .result_ttl = Millis{120'000},
                              .attempts_ttl = Millis{1},
                              .window = Millis{60'000},
                              .ahead = Millis{60'000}};

/// Rows of a table with a unique index: taken for 30 days, the answer kept for one.
inline constexpr Policy dedup{.lease = Millis{60'000},
                              .result_ttl = Millis{86'400'000},
                              .unique_ttl = Millis{30LL * 86'400'000}};

inline constexpr std::array<NamedPolicy, 9> all{{{"call", call},
                                                 {"debounce", debounce},
                                                 {"dedup", dedup},
                                                 {"fair-lock", fair_lock},
                                                 {"lock", lock},
                                                 {"message", message},
                                                 {"nonce", nonce},
                                                 {"payment", payment},
                                                 {"token", token}}};

/// The policy of that name; none: there is none.
[[nodiscard]] constexpr std::optional<Policy> named(Bytes name) noexcept {
  for (const NamedPolicy& each : all) {
    if (each.name == name) return each.policy;
  }
  return std::nullopt;
}

}  // namespace policies
}  // namespace semel
