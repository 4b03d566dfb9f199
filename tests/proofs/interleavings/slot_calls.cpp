#include "tests/proofs/interleavings/slot_calls.hpp"

#include <algorithm>

namespace semel::proofs {

namespace {

constexpr std::int64_t lease = 50;
constexpr std::int64_t retention = 100;
constexpr std::int64_t memory = 1'000;  // how long a completed record stays

bool search(const KeyState& state, std::span<const CallRecord> calls, unsigned made,
            const KeyFound& found) {
  if (made == (1U << calls.size()) - 1) {
    if (state.record != found.record) return false;
    return found.record ? true : found.floor >= state.last;
  }
  unsigned first_return = ~0U;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if ((made >> i & 1) == 0) first_return = std::min(first_return, calls[i].returned);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if ((made >> i & 1) != 0 || calls[i].invoked > first_return) continue;
    KeyState next = state;
    if (next.apply(calls[i]) && search(next, calls, made | 1U << i, found)) return true;
  }
  return false;
}

}  // namespace

const char* name_of(Call call) noexcept {
  static constexpr const char* names[] = {"claim",  "complete", "release",
                                          "expire", "grow",     "lookup"};
  return names[static_cast<std::size_t>(call)];
}

const char* name_of(Answer answer) noexcept {
  static constexpr const char* names[] = {
      "granted",     "in flight", "replay",   "completed", "completed before",
      "stale owner", "unknown",   "released", "not owner", "ended",
      "nothing",     "held",      "done",     "busy"};
  return names[static_cast<std::size_t>(answer)];
}

std::string text_of(const CallRecord& call) {
  std::string text = name_of(call.call);
  text += " of key " + std::to_string(call.key);
  if (call.epoch != 0) text += " epoch " + std::to_string(call.epoch);
  text += std::string{": "} + name_of(call.answer) + ", version " + std::to_string(call.version);
  return text + " [" + std::to_string(call.invoked) + ".." + std::to_string(call.returned) + "]";
}

SlotDecision decide(Call call, const SlotRecord* live, std::uint8_t key, Version epoch,
                    Version next, std::int64_t now) noexcept {
  using Action = SlotDecision::Action;
  SlotDecision decision;
  if (call == Call::claim) {
    if (live != nullptr && live->is_done) {
      decision.answer = Answer::replay;
    } else if (live != nullptr && live->lease_until > now) {
      decision.answer = Answer::in_flight;
    } else {
      decision = {
          Action::store, Answer::granted, {key, false, next, next, now + lease, now + retention}};
    }
    return decision;
  }
  if (call == Call::lookup) {
    decision.answer =
        live == nullptr ? Answer::nothing : (live->is_done ? Answer::done : Answer::held);
    return decision;
  }
  if (live == nullptr) return decision;
  const bool is_owner = live->epoch == epoch;
  if (call == Call::complete) {
    if (!is_owner) {
      decision.answer = Answer::stale_owner;
    } else if (live->is_done) {
      decision.answer = Answer::completed_before;
    } else {
      decision = {Action::store, Answer::completed, {key, true, epoch, next, 0, now + memory}};
    }
    return decision;
  }
  decision.answer = is_owner && !live->is_done ? Answer::released : Answer::not_owner;
  if (decision.answer == Answer::released) decision.action = Action::erase;
  return decision;
}

bool KeyState::apply(const CallRecord& call) noexcept {
  if (call.call == Call::grow) return true;
  const bool is_live = record && record->due > call.now;
  if (call.call == Call::expire) {
    const bool buries = record && !is_live;
    if (call.answer != (buries ? Answer::ended : Answer::nothing)) return false;
    if (!buries) return true;
    if (call.version != record->version) return false;
    record.reset();
    return true;
  }
  const SlotDecision decision =
      decide(call.call, is_live ? &*record : nullptr, call.key, call.epoch, call.version, call.now);
  if (decision.answer != call.answer) return false;
  if (decision.action == SlotDecision::Action::keep) {
    return call.version == (is_live ? record->version : 0);
  }
  if (call.version <= last) return false;
  last = call.version;
  record.reset();
  if (decision.action == SlotDecision::Action::store) record = decision.fresh;
  return true;
}

bool is_explained(KeyState start, std::span<const CallRecord> calls, const KeyFound& found) {
  return search(start, calls, 0, found);
}

}  // namespace semel::proofs
