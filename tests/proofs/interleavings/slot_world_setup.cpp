// How a SlotWorld begins, and what must be true of it at the end.
#include <algorithm>
#include <array>

#include "tests/proofs/interleavings/slot_world.hpp"

namespace semel::proofs {

using engine::SlotWord;
namespace slot = engine::slot;

namespace {

constexpr Version first_version = 101;  // of key 0's record; key 1's is two more

}  // namespace

const char* name_of(Bug bug) noexcept {
  static constexpr std::array names{"none",
                                    "lost_exchange_succeeds",
                                    "freeze_without_bit",
                                    "freeze_in_two_steps",
                                    "lower_half_first",
                                    "bury_without_looking",
                                    "segment_reused_at_once",
                                    "floor_ignored",
                                    "stale_epoch_accepted",
                                    "decides_once",
                                    "helps_first_candidate"};
  static_assert(names.size() == bug_count + 1);
  return names[static_cast<std::size_t>(bug)];
}

SlotWorld::SlotWorld(const Scenario& scenario, std::uint64_t seed, Bug bug)
    : scenario_(scenario), bug_(bug) {
  line_count_ = has_two_lines() ? 2 : 1;
  keys_ = scenario.pair == Pair::alone ? 1 : 2;
  choose_hashes(seed);
  build();
  note_published();
  // Old records are newer than what the first fiber has in store and older than the second's. The
  // third has to ask for more.
  state_.versions[0] = {8, 16};
  state_.versions[1] = {200, 208};
  state_.versions_end = 300;
  start_state_ = state_;
  start_table_.emplace(*table_);
  if (bug != Bug::none) Liar::active = this;
}

SlotWorld::~SlotWorld() {
  Liar::active = nullptr;
}

bool SlotWorld::has_two_lines() const noexcept {
  return scenario_.start == Start::far || scenario_.start == Start::wrapped;
}

unsigned SlotWorld::fiber_count() const {
  return static_cast<unsigned>(scenario_.fibers.size());
}

void SlotWorld::choose_hashes(std::uint64_t seed) {
  // Bit 0 chooses the half; the upper bits keep the fillers' tags different from the keys'.
  const auto random = static_cast<std::uint64_t>((seed ^ 0x5851'f42dU) * 6364136223846793005U +
                                                 1442695040888963407U);
  const std::uint64_t upper = random >> 48 & 0x3fe;
  // The home line: the second of two for `wrapped`, so that the probe sequence comes round.
  const std::uint64_t line =
      (random >> 20 & 0x7fff) | (scenario_.start == Start::wrapped ? 0x8000U : 0U);
  const auto hash = [&](std::uint64_t directory) {
    return engine::HashBits::of(directory | line << 16 | (random >> 40 & 0x3f) << 32);
  };
  hashes_[0] = hash(upper);
  hashes_[1] = hash(scenario_.pair == Pair::sibling ? upper ^ 1 : upper);
  for (std::uint64_t i = filler_first; i < hashes_.size(); ++i) {
    hashes_[i] = hash((upper ^ (i & 63)) | 1U << 15);
  }
}

SlotRecord SlotWorld::record_of_start(std::uint8_t key, Start start) const {
  const Version version = first_version + 2 * Version{key};
  SlotRecord record{key, false, version, version, 140, 300};
  if (start == Start::over) record.lease_until = 50;
  if (start == Start::dead) record.lease_until = 50, record.due = 60;
  if (start == Start::ending) record.lease_until = record.due = 100;
  if (start == Start::done) {
    record.is_done = true;
    record.epoch = version - 1;
    record.due = 1'000;
  }
  return record;
}

void SlotWorld::put(const SlotRecord& record) {
  const SlotTable::Probe probe = find(record.key);
  if (probe.state != SlotTable::Probe::State::vacant) fail("no slot for a key");
  if (!table_->publish(probe, new_record(owners - 1, record))) fail("a key is not published");
  start_[record.key] = {record, record.version};
}

void SlotWorld::bury(std::uint8_t key, Version version) {
  if (!table_->bury(find(key), version)) fail("a key is not buried");
  start_[key] = {std::nullopt, version};
}

void SlotWorld::fill(unsigned count, unsigned buried) {
  for (unsigned i = 0; i < count; ++i) {
    const auto key = static_cast<std::uint8_t>(filler_first + fillers_++);
    put({key, true, 31 + Version{key}, 31 + Version{key}, 0, 9'000});
    if (i < buried) bury(key, 71 + Version{key});
  }
}

void SlotWorld::build() {
  table_.emplace(*this, line_count_, state_.directory.data());
  if (!table_->start()) fail("no first segment");
  note_published();
  known_epoch_ = {first_version, first_version + 2};
  if (scenario_.start == Start::done) known_epoch_ = {first_version - 1, first_version + 1};
  switch (scenario_.start) {
    case Start::nearly_full:
      fill(7, 0);
      break;
    case Start::full:
      fill(7, 0);
      break;
    case Start::littered:
      fill(7, 4);
      break;
    case Start::far:
      fill(8, 0);
      break;
    case Start::wrapped:
      fill(7, 0);
      break;
    default:
      fill(scenario_.stalled != Stalled::nowhere ? 2 : 1, 0);
      break;
  }
  build_keys();
  if (scenario_.start == Start::halves) grow(0);
}

/// In set-up the writes are not watched.
void SlotWorld::note_published() {
  for (const Word& word : state_.directory) {
    if (word.peek() != 0) {
      state_.published |= 1U << segment_of(reinterpret_cast<void*>(word.peek() & ~63ULL));
    }
  }
}

void SlotWorld::build_keys() {
  const Start start = scenario_.start;
  if (start == Start::absent || start == Start::nearly_full) return;
  put(record_of_start(0, start));
  if (start == Start::buried) bury(0, first_version + 1);
  if (keys_ == 1) return;
  switch (start) {
    case Start::held:
    case Start::dead:
    case Start::ending:
    case Start::halves:
    case Start::far:
      put(record_of_start(1, start));
      break;
    case Start::over:
    case Start::wrapped:
      put(record_of_start(1, Start::dead));
      break;
    default:
      break;  // absent
  }
}

void SlotWorld::reset() {
  state_ = start_state_;
  table_.emplace(*start_table_);
  withheld_ = {};
  ghost_count_ = 0;
  Explorer& explorer = *Explorer::running();
  for (unsigned number = 0; number < segment_count; ++number) {
    const bool is_public = (state_.published >> number & 1) != 0;
    explorer.set_private(&state_.segments[number], sizeof(SegmentMemory),
                         is_public ? Explorer::no_fiber : number / segments_per_owner);
  }
}

// --- checks ----------------------------------------------------------------------------------

std::string SlotWorld::check(bool at_rest) {
  std::string wrong = check_segments(at_rest);
  for (std::uint8_t key = 0; key < keys_ && wrong.empty(); ++key) wrong = check_key(key);
  if (wrong.empty()) wrong = check_fillers();
  return wrong.empty() ? wrong : wrong + history();
}

std::string SlotWorld::check_key(std::uint8_t key) const {
  std::array<CallRecord, calls_max> calls;
  std::size_t count = 0;
  for (unsigned i = 0; i < state_.call_count; ++i) {
    const CallRecord& call = state_.calls[i];
    if (call.answer == Answer::busy) return "a call fails for want of memory";
    if (call.key == key && call.call != Call::grow) calls[count++] = call;
  }
  const SlotTable::Probe probe = find(key);
  KeyFound found{std::nullopt, probe.floor};
  if (probe.state == SlotTable::Probe::State::found)
    found.record = record(slot::handle(probe.seen));
  if (is_explained(start_[key], {calls.data(), count}, found)) return {};
  std::string text = "no order of the calls on key " + std::to_string(key) + " explains them; ";
  if (!found.record) return text + "at the end absent, floor " + std::to_string(found.floor);
  return text + "at the end " + (found.record->is_done ? "done" : "held") + ", version " +
         std::to_string(found.record->version);
}

std::string SlotWorld::check_fillers() const {
  for (unsigned i = 0; i < fillers_; ++i) {
    const auto key = static_cast<std::uint8_t>(filler_first + i);
    const SlotTable::Probe probe = find(key);
    const bool is_found = probe.state == SlotTable::Probe::State::found;
    const KeyState& start = start_[key];
    if (is_found != start.record.has_value() ||
        (is_found ? record(slot::handle(probe.seen)) != *start.record : probe.floor < start.last)) {
      return "another key has changed: " + std::to_string(key);
    }
  }
  return {};
}

std::string SlotWorld::check_segments(bool at_rest) const {
  std::uint64_t keys = 0;
  std::uint64_t births = 0;
  std::uint64_t count = 0;
  for (unsigned index = 0; index < directory_size; ++index) {
    const std::uint64_t word = state_.directory[index].peek();
    if (word == 0) continue;
    const unsigned number = segment_of(reinterpret_cast<void*>(word & ~63ULL));
    if (std::string wrong = check_segment(number, index, at_rest, keys); !wrong.empty()) {
      return wrong;
    }
    const auto& header =
        *reinterpret_cast<const SlotTable::Segment*>(&state_.segments[number].header);
    if (header.depth + 1 != (word & 63)) return "a directory word and its segment differ in depth";
    if ((births >> header.birth & 1) != 0) return "two segments have one name";
    births |= std::uint64_t{1} << header.birth;
    ++count;
  }
  const bool is_counted = at_rest && bug_ != Bug::lower_half_first;  // that one counts in vain
  if (is_counted && count != table_->segment_count()) return "segments are not counted right";
  return {};
}

std::string SlotWorld::check_segment(unsigned number, unsigned index, bool at_rest,
                                     std::uint64_t& keys) const {
  const SegmentMemory& segment = state_.segments[number];
  const auto& header = *reinterpret_cast<const SlotTable::Segment*>(&segment.header);
  const std::uint32_t low = (1U << header.depth) - 1;
  if (header.index != index || index > low) return "a segment is at a place that is not its own";
  if ((state_.retired >> number & 1) != 0) return "a retired segment is in the directory";
  for (unsigned i = 0; i < line_count_ * engine::slots_per_line; ++i) {
    const SlotWord word = segment.words[i].peek();
    if (at_rest && slot::is_frozen(word)) return "a segment stays frozen";
    if (!slot::is_record(word & ~slot::frozen)) continue;
    const std::uint8_t key = record(slot::handle(word)).key;
    if (key >= hashes_.size()) return "a slot leads to no record";
    // Between the two halves' publication a record lies in the upper half and in the old segment,
    // which cannot change any more.
    if ((hashes_[key].directory() & low) != index) return "a record is in the wrong segment";
    if (slot::is_frozen(word)) continue;
    if ((keys >> key & 1) != 0) return "a key is in the table twice: " + std::to_string(key);
    keys |= std::uint64_t{1} << key;
  }
  return {};
}

std::string SlotWorld::history() const {
  std::string text;
  for (unsigned i = 0; i < state_.call_count; ++i) text += "\n    " + text_of(state_.calls[i]);
  return text;
}

std::string SlotWorld::describe(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  if (is_slot(address)) {
    const unsigned number = segment_of(address);
    const auto* const words = reinterpret_cast<const std::byte*>(&state_.segments[number].words);
    return "slot " + std::to_string((at - words) / 8) + " of segment " + std::to_string(number);
  }
  if (is_directory(address)) {
    const auto* const words = reinterpret_cast<const std::byte*>(&state_.directory);
    return "directory word " + std::to_string((at - words) / 8);
  }
  if (address == &state_.versions_end) return "the versions";
  return "a counter of the table at " +
         std::to_string(at - reinterpret_cast<const std::byte*>(&table_));
}

}  // namespace semel::proofs
