#include "engine/decisions/decision_write.hpp"

#include <algorithm>

#include "engine/rules/bytes.hpp"

namespace semel::engine {

namespace {

/// Twice in add(), and seldom run.
struct FillByFacts {
  const DecisionFacts& facts;

  [[gnu::noinline]] void operator()(DecisionLog::Place& place) const noexcept {
    place.first_ms = place.last_ms = facts.at.time_since_epoch().count();
    place.epoch = facts.epoch;
    place.met_epoch = facts.met_epoch;
    place.met_lease_ms = facts.met_lease_until.time_since_epoch().count();
    place.span_ms = facts.span.count();
    place.numbers = facts.numbers;
    place.error = static_cast<std::uint16_t>(facts.error);
    place.answer = facts.answer;
    place.flags = facts.flags;
    place.met = facts.met;
    char* to = place.text;
    const auto append = [&to](Bytes text, std::size_t bytes_max) {
      const std::size_t size = std::min(text.size(), bytes_max);
      if (size != 0) copy_bytes(to, text.data(), size);
      to += size;
      return static_cast<std::uint8_t>(size);
    };
    place.owner_size = append(facts.owner, limits::owner_label_max);
    place.client_size = append(facts.client, DecisionLog::client_bytes_max);
    place.met_owner_size = append(facts.met_owner, limits::owner_label_max);
  }
};

}  // namespace

void DecisionLog::add(std::uint64_t hash, const DecisionFacts& facts) noexcept {
  add_here(bucket_of(hash), hash, facts.call, facts.changed, FillByFacts{facts});
}

}  // namespace semel::engine
