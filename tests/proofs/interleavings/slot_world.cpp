#include "tests/proofs/interleavings/slot_world.hpp"

#include <bit>
#include <cstdio>
#include <cstdlib>

namespace semel::proofs {

using engine::SlotWord;
namespace slot = engine::slot;

namespace {

constexpr Version block = 8;  // versions taken at once, as the engine's threads do

/// Calls of one fiber happen just before `Start::ending` ends, those of the others just after.
constexpr std::int64_t now_of(unsigned fiber) noexcept {
  return fiber == 0 ? 99 : 100;
}

bool is_in(const void* address, const void* begin, std::size_t bytes) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto from = reinterpret_cast<std::uintptr_t>(begin);
  return at >= from && at - from < bytes;
}

}  // namespace

// --- the engine's loops ------------------------------------------------------------------------

void SlotWorld::run(unsigned fiber) {
  if (fiber == fiber_count()) {
    grow(0);
    return;
  }
  Version own_epoch = 0;
  for (const Step& step : scenario_.fibers[fiber]) perform(fiber, step, own_epoch);
}

void SlotWorld::perform(unsigned fiber, const Step& step, Version& own_epoch) {
  Explorer& explorer = *Explorer::running();
  if (step.call == Call::expire) return expire(step.key, now_of(fiber));
  CallRecord call;
  call.call = step.call;
  call.key = step.key;
  call.now = now_of(fiber);
  if (step.call == Call::complete || step.call == Call::release) {
    call.epoch = step.own_epoch && own_epoch != 0 ? own_epoch : known_epoch_[step.key];
  }
  call.invoked = explorer.event();
  if (step.call == Call::grow) {
    grow(step.key);
  } else {
    update(fiber, call);
  }
  if (call.answer == Answer::granted) own_epoch = call.version;
  call.returned = explorer.event();
  state_.calls[state_.call_count++] = call;
}

void SlotWorld::update(unsigned fiber, CallRecord& call) {
  using Action = SlotDecision::Action;
  const engine::HashBits hash = hashes_[call.key];
  Version& version_next = state_.versions[fiber].next;
  std::optional<SlotDecision> first;
  for (;;) {
    const SlotTable::Probe probe = find(call.key);
    const SlotRecord* const old =
        probe.state == SlotTable::Probe::State::found ? &record(slot::handle(probe.seen)) : nullptr;
    const bool live = old != nullptr && old->due > call.now;
    const Version floor = bug_ == Bug::floor_ignored ? 0 : probe.floor;
    const Version next = candidate(fiber, old != nullptr ? old->version : floor);
    const Version epoch =
        bug_ == Bug::stale_epoch_accepted && live && !old->is_done ? old->epoch : call.epoch;
    SlotDecision decision =
        decide(call.call, live ? old : nullptr, call.key, epoch, next, call.now);
    if (bug_ == Bug::decides_once && call.call == Call::claim) {
      if (!first) first = decision;
      decision = *first;
    }
    call.answer = decision.answer;
    if (decision.action == Action::keep) {
      call.version = live ? old->version : 0;
      return;
    }
    if (decision.action == Action::erase) {
      if (!table_->bury(probe, next)) {
        after_lost_race(call.key, probe);
        continue;
      }
      call.version = version_next++;
      return;
    }
    if (probe.state == SlotTable::Probe::State::full) {
      if (!table_->grow(hash, probe.segment)) {
        call.answer = Answer::busy;
        return;
      }
      continue;
    }
    const unsigned handle = new_record(fiber, decision.fresh);
    if (!table_->publish(probe, handle)) {
      --state_.record_counts[fiber];  // no fiber has seen it
      after_lost_race(call.key, probe);
      continue;
    }
    call.version = version_next++;
    return;
  }
}

void SlotWorld::expire(std::uint8_t timed, std::int64_t now) {
  Explorer& explorer = *Explorer::running();
  const unsigned invoked = explorer.event();
  std::array<Version, 2> buried{};
  for (engine::Handle stuck = 1; stuck != 0;) {
    stuck = 0;
    table_->for_each_candidate(hashes_[timed], [&](Word& word, SlotWord seen) {
      const SlotRecord& old = record(slot::handle(seen));
      if (old.due > now) return true;
      if (SlotTable::bury(word, seen, old.version)) {
        buried[old.key] = old.version;
      } else {
        stuck = slot::handle(seen);
      }
      return false;
    });
    if (stuck != 0) help_growth(timed, stuck);
  }
  const unsigned returned = explorer.event();
  // A timer names hash bits, not keys. It ends one record; when it finds none to end, that holds
  // for all keys that share them.
  const bool ended = buried[0] != 0 || buried[1] != 0;
  for (std::uint8_t key = 0; key < keys_; ++key) {
    if (hashes_[key].bits != hashes_[timed].bits || (ended && buried[key] == 0)) continue;
    state_.calls[state_.call_count++] = {Call::expire,
                                         key,
                                         0,
                                         now,
                                         invoked,
                                         returned,
                                         buried[key] != 0 ? Answer::ended : Answer::nothing,
                                         buried[key]};
  }
}

void SlotWorld::grow(std::uint8_t key) {
  const engine::HashBits hash = hashes_[key];
  if (!table_->grow(hash, table_->locate(hash))) fail("growth found no room");
}

void SlotWorld::after_lost_race(std::uint8_t key, const SlotTable::Probe& probe) {
  if (!SlotTable::is_frozen(probe)) return;
  if (!table_->grow(hashes_[key], probe.segment)) fail("growth found no room");
}

/// The record that could not be buried may be frozen while others with these hash bits are not yet.
void SlotWorld::help_growth(std::uint8_t key, engine::Handle stuck) {
  const SlotTable::Probe probe = table_->find(hashes_[key], [&](engine::Handle handle) {
    return handle == stuck || bug_ == Bug::helps_first_candidate;
  });
  if (!SlotTable::is_frozen(probe)) return;
  if (!table_->grow(hashes_[key], probe.segment)) fail("growth found no room");
}

SlotWorld::SlotTable::Probe SlotWorld::find(std::uint8_t key) const {
  return table_->find(hashes_[key],
                      [this, key](engine::Handle handle) { return record(handle).key == key; });
}

Version SlotWorld::candidate(unsigned fiber, Version floor) {
  Versions& own = state_.versions[fiber];
  if (own.next > floor && own.next < own.end) return own.next;
  own.next = state_.versions_end.take(block);
  own.end = own.next + block;
  return own.next;
}

// --- memory --------------------------------------------------------------------------------

unsigned SlotWorld::owner() const {
  const Explorer* const explorer = Explorer::running();
  return explorer == nullptr || explorer->current() == Explorer::no_fiber ? owners - 1
                                                                          : explorer->current();
}

unsigned SlotWorld::new_record(unsigned record_owner, const SlotRecord& record) {
  unsigned& count = state_.record_counts[record_owner];
  if (count == records_per_owner) fail("a fiber tries without end");
  const unsigned number = record_owner * records_per_owner + count++;
  state_.records[number] = record;
  return number + 1;
}

const SlotRecord& SlotWorld::record(engine::Handle handle) const {
  static constexpr SlotRecord nothing{.key = 255};
  return handle - 1 < state_.records.size() ? state_.records[handle - 1] : nothing;
}

void* SlotWorld::allocate_segment(std::size_t) {
  if (std::popcount(state_.published) >= published_max) return nullptr;
  const unsigned first = owner() * segments_per_owner;
  for (unsigned number = first; number < first + segments_per_owner; ++number) {
    if ((state_.taken >> number & 1) != 0) continue;
    state_.taken |= 1U << number;
    SegmentMemory& segment = state_.segments[number];
    segment = {};
    if (Explorer* const explorer = Explorer::running()) {
      explorer->set_private(&segment, sizeof segment, owner());
    }
    return &segment;
  }
  return nullptr;
}

void SlotWorld::release_segment(void* segment) {
  const unsigned number = segment_of(segment);
  if ((state_.published >> number & 1) != 0) fail("a segment is given back that others can reach");
  if ((state_.taken >> number & 1) == 0) fail("a segment is given back twice");
  state_.taken &= ~(1U << number);
}

void SlotWorld::retire_segment(void* segment) {
  const unsigned number = segment_of(segment);
  if ((state_.published >> number & 1) == 0) fail("a segment is retired that was never there");
  if ((state_.retired >> number & 1) != 0) fail("a segment is retired twice");
  state_.retired |= 1U << number;
  if (bug_ == Bug::freeze_without_bit) return;  // or this would find it at once
  for (unsigned i = 0; i < line_count_ * engine::slots_per_line; ++i) {
    if (!slot::is_frozen(state_.segments[number].words[i].peek())) {
      fail("a segment is retired that was not frozen");
    }
  }
  if (bug_ == Bug::segment_reused_at_once) {
    state_.segments[number].words = {};
    Explorer::running()->set_private(segment, sizeof(SegmentMemory), owner());
  }
}

std::span<const std::byte> SlotWorld::memory() const {
  return {reinterpret_cast<const std::byte*>(this), sizeof *this};
}

unsigned SlotWorld::segment_of(const void* address) const {
  const auto offset = static_cast<const std::byte*>(address) -
                      reinterpret_cast<const std::byte*>(state_.segments.data());
  return static_cast<unsigned>(static_cast<std::size_t>(offset) / sizeof(SegmentMemory));
}

bool SlotWorld::is_slot(const void* address) const {
  return is_in(address, state_.segments.data(), sizeof state_.segments);
}

bool SlotWorld::is_directory(const void* address) const {
  return is_in(address, state_.directory.data(), sizeof state_.directory);
}

void SlotWorld::fail(const char* what) {
  Explorer* const explorer = Explorer::running();
  if (explorer != nullptr) explorer->fail(what);
  std::fprintf(stderr, "interleavings: set-up: %s\n", what);
  std::abort();
}

const char* SlotWorld::wrote(const void* address, std::uint64_t old, std::uint64_t fresh) {
  if (is_slot(address)) {
    const unsigned number = segment_of(address);
    if ((state_.taken >> number & 1) == 0) return "memory changes that was given back";
    if (slot::is_frozen(old) && old != fresh) return "a frozen word changes";
    return nullptr;
  }
  if (!is_directory(address)) return nullptr;
  const std::uint64_t place = fresh & ~std::uint64_t{63};
  const auto* const segment = reinterpret_cast<const void*>(place);
  if (!is_slot(segment)) return "the directory does not lead to a segment";
  const unsigned number = segment_of(segment);
  if ((state_.taken >> number & 1) == 0) return "the directory leads to memory given back";
  state_.published |= 1U << number;
  Explorer::running()->set_private(segment, sizeof(SegmentMemory), Explorer::no_fiber);
  if (old != 0 && (old & 63) > (fresh & 63)) return "the directory goes back to a shorter prefix";
  return nullptr;
}

bool SlotWorld::ghost_stops(const void* address, Access kind) {
  if (kind == Access::set_bits) {
    const unsigned frozen = ghost_count_++;
    switch (scenario_.stalled) {
      case Stalled::before_key:
        return frozen == fillers_;
      case Stalled::after_key:
        return frozen == fillers_ + 1;
      case Stalled::first_line:
        return frozen == engine::slots_per_line;
      default:
        return false;
    }
  }
  if (kind == Access::write && is_directory(address)) {
    const bool is_first = ghost_count_++ == line_count_ * engine::slots_per_line;
    return scenario_.stalled == (is_first ? Stalled::all_frozen : Stalled::half_public);
  }
  return false;
}

// --- lies ------------------------------------------------------------------------------------

bool SlotWorld::exchange(const void* address, std::uint64_t& value, std::uint64_t& expected,
                         std::uint64_t desired, bool& done) {
  Explorer* const explorer = Explorer::running();
  if (explorer == nullptr || explorer->current() == Explorer::no_fiber) return false;
  const auto put = [explorer](std::uint64_t& to, std::uint64_t fresh) {
    const std::uint64_t old = to;
    to = fresh;
    explorer->wrote(&to, old, fresh);
  };
  done = true;
  if (bug_ == Bug::lost_exchange_succeeds) return is_slot(address) && value != expected;
  if (bug_ == Bug::bury_without_looking && is_slot(address) && slot::is_tombstone(desired)) {
    put(value, desired);
    return true;
  }
  if (bug_ != Bug::lower_half_first || !is_directory(address)) return false;
  auto& [withheld, word] = withheld_[explorer->current()];
  if (expected == 0) {
    withheld = &value;
    word = desired;
    return true;
  }
  done = value == expected;
  if (done) put(value, desired);
  if (withheld != nullptr) {
    explorer->step(withheld, Access::write);
    if (*withheld == 0) put(*withheld, word);
    withheld = nullptr;
  }
  return true;
}

bool SlotWorld::set_bits(const void* address, std::uint64_t& value, std::uint64_t bits,
                         std::uint64_t& before) {
  Explorer* const explorer = Explorer::running();
  if (explorer == nullptr || explorer->current() == Explorer::no_fiber) return false;
  before = value;
  if (bug_ == Bug::freeze_without_bit) return true;
  if (bug_ != Bug::freeze_in_two_steps) return false;
  explorer->step(address, Access::write);
  const std::uint64_t old = value;
  value = before | bits;
  explorer->wrote(address, old, value);
  return true;
}

}  // namespace semel::proofs
