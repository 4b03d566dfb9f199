#include "engine/core/insight.hpp"

#include <string>

#include "engine/rules/claim_codec.hpp"
#include "engine/rules/hash_value.hpp"

namespace semel::engine {

Status Insight::start(const Options& options, Region& region) {
  const Error no_room{ErrorCode::bad_option,
                      "memory_bytes = " + std::to_string(options.memory_bytes) +
                          ": holds no decision log of " +
                          std::to_string(options.decision_log_bytes) + " bytes"};
  if (options.decision_log_bytes != 0) {
    auto log = std::make_unique<DecisionLog>();
    if (!log->start(options.decision_log_bytes)) return no_room;
    if (!region.try_charge(log->bytes())) return no_room;
    decisions_ = std::move(log);
  }
  if (options.counts_by_namespace) {
    auto counts = std::make_unique<ClaimCounts>();
    if (!counts->start() || !region.try_charge(ClaimCounts::bytes())) return no_room;
    claim_counts_ = std::move(counts);
  }
  return Done{};
}

void Insight::note_expired(ThreadContext& context, const Entry& old, KeySpace& keys) noexcept {
  context.bump(Count::expired);
  ClaimRecord record;
  if (decisions_ != nullptr && old.kind() == Kind::claim && decode(old.value(), record)) {
    decisions_->add(keys.hash64_of(0, old.key()), {.call = DecisionCall::ended,
                                                   .changed = true,
                                                   .numbers = numbers_of(record),
                                                   .at = old.due(),
                                                   .met = record.state,
                                                   .met_epoch = record.epoch,
                                                   .met_lease_until = record.lease_until,
                                                   .met_owner = record.owner});
  }
  if (sinks_.empty()) return;
  const bool has_ended_by_fields = old.due() < key_end_of(old.kind(), old.value(), old.due());
  report({old.kind(), keys.databases().shown(old.db()), old.key(),
          has_ended_by_fields ? ExpiredEvent::What::last_fields : ExpiredEvent::What::record});
}

void Insight::note_fields_ended(std::uint8_t db, Bytes key) noexcept {
  report({Kind::hash, db, key, ExpiredEvent::What::fields});
}

void Insight::report(const ExpiredEvent& event) noexcept {
  for (const auto& subscribed : sinks_) {
    callbacks_.run(Callback::expired_sink, [&] { subscribed.second(event); });
  }
}

void Insight::note_forgotten(ThreadContext& context, std::uint64_t hash, Bytes claim,
                             Timestamp now) noexcept {
  context.bump(Count::claims_forgotten);
  ClaimRecord record;
  if (decisions_ == nullptr || !decode(claim, record)) return;
  decisions_->add(hash, {.call = DecisionCall::forget,
                         .answer = 1,
                         .changed = true,
                         .numbers = numbers_of(record),
                         .at = now,
                         .met = record.state,
                         .met_epoch = record.epoch,
                         .met_lease_until = record.lease_until,
                         .client = {context.client.data(), context.client_size},
                         .met_owner = record.owner});
}

std::uint64_t Insight::add_sink(ExpiredSink sink) {
  const std::uint64_t handle = sinks_.empty() ? 1 : sinks_.back().first + 1;
  sinks_.emplace_back(handle, std::move(sink));
  return handle;
}

void Insight::remove_sink(std::uint64_t handle) {
  std::erase_if(sinks_, [handle](const auto& sink) { return sink.first == handle; });
}

}  // namespace semel::engine
