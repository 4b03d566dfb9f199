#include "replication/state/answer_table.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "replication/state/answer.hpp"
#include "replication/state/fields.hpp"

namespace semel::replication {
namespace {

using Why = NotApplied::Why;

/// A ring of so many slots is kept when it is empty.
constexpr std::size_t ring_least = 64;
constexpr std::size_t ring_kept = 4'096;
/// Memory of an answer that is kept for the next one in its slot.
constexpr std::size_t capacity_kept = 128;

static_assert((answers_window & (answers_window - 1)) == 0);

/// Whether an answer is so long that it is not worth to be written down first.
[[nodiscard]] bool is_long(const Answer& answer) noexcept {
  if (const auto* plain = std::get_if<PlainAnswer>(&answer.what)) {
    return plain->text.size() > kept_answer_bytes_max;
  }
  if (const auto* outcome = std::get_if<StoreOutcome>(&answer.what)) {
    return outcome->value.size() > kept_answer_bytes_max;
  }
  return false;
}

}  // namespace

AnswerTable::Life* AnswerTable::life_of(std::uint64_t node) noexcept {
  if (last_ < lives_.size() && lives_[last_].node == node) return &lives_[last_];
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    if (lives_[i].node != node) continue;
    last_ = i;
    return &lives_[i];
  }
  return nullptr;
}

std::uint64_t AnswerTable::open(std::uint64_t node, std::uint64_t life, LogIndex index) {
  SEMEL_ASSERT(node != 0);
  if (Life* const found = life_of(node)) {
    if (found->life == life) return found->number;  // its node asks again
    const std::uint64_t number = std::max(index, found->number + 1);
    *found = Life{.node = node, .life = life, .number = number};
    return number;
  }
  if (lives_.size() == lives_max) {  // of nodes that are no members: keep() has not seen them
    const auto by_number = [](const Life& one, const Life& other) {
      return one.number < other.number;
    };
    lives_.erase(std::min_element(lives_.begin(), lives_.end(), by_number));
  }
  const auto behind = std::find_if(lives_.begin(), lives_.end(),
                                   [node](const Life& each) { return each.node > node; });
  lives_.insert(behind, Life{.node = node, .life = life, .number = index});
  return index;
}

void AnswerTable::keep(std::span<const std::uint64_t> nodes) {
  std::erase_if(lives_, [&](const Life& each) {
    return std::find(nodes.begin(), nodes.end(), each.node) == nodes.end();
  });
}

void AnswerTable::clear(Life& life, Slot& slot) {
  life.bytes -= slot.answer.size();
  slot.state = State::undecided;
  if (slot.answer.capacity() > capacity_kept) {
    slot.answer = {};
  } else {
    slot.answer.clear();
  }
}

void AnswerTable::forget_below(Life& life, std::uint64_t lowest) {
  if (lowest <= life.base) return;
  const std::uint64_t until = std::min(lowest, life.end);
  for (std::uint64_t each = life.base; each < until; ++each) clear(life, slot_of(life, each));
  life.base = lowest;
  life.end = std::max(life.end, lowest);
  if (life.base == life.end && life.ring.size() > ring_kept) life.ring = {};
}

/// `sequence` is ahead of the decided ones, and within the window.
void AnswerTable::make_room(Life& life, std::uint64_t sequence) {
  const std::uint64_t wanted = sequence - life.base + 1;
  if (wanted <= life.ring.size()) return;
  std::size_t size = std::max(life.ring.size(), ring_least);
  while (size < wanted) size *= 2;
  std::vector<Slot> ring(size);
  for (std::uint64_t each = life.base; each < life.end; ++each) {
    ring[each & (size - 1)] = std::move(slot_of(life, each));
  }
  life.ring = std::move(ring);
}

std::optional<Answer> AnswerTable::find(const Origin& origin) {
  Life* const life = life_of(origin.node);
  if (life == nullptr) return Answer{NotApplied{Why::no_life}};
  if (life->number != origin.life) return Answer{NotApplied{Why::other_life}};
  forget_below(*life, origin.lowest);
  if (origin.sequence < life->base) return Answer{NotApplied{Why::forgotten}};
  if (origin.sequence - life->base >= answers_window) return Answer{NotApplied{Why::too_far}};
  if (origin.sequence >= life->end) return std::nullopt;
  const Slot& slot = slot_of(*life, origin.sequence);
  switch (slot.state) {
    case State::undecided:
      return std::nullopt;
    case State::not_kept:
      return Answer{NotApplied{Why::not_kept}};
    case State::kept:
      break;
  }
  Result<Answer> answer = decode_answer(slot.answer);
  SEMEL_ASSERT(answer.ok());  // remember() has written it, or restore() read it
  return *std::move(answer);
}

void AnswerTable::remember(const Origin& origin, const Answer& answer) {
  Life& life = *life_of(origin.node);
  make_room(life, origin.sequence);
  Slot& slot = slot_of(life, origin.sequence);
  SEMEL_ASSERT(slot.state == State::undecided && slot.answer.empty());
  slot.state = State::not_kept;
  if (!is_long(answer)) replication::encode(answer, slot.answer);
  if (slot.answer.size() <= kept_answer_bytes_max &&
      life.bytes + slot.answer.size() <= kept_bytes_max && !slot.answer.empty()) {
    slot.state = State::kept;
    life.bytes += slot.answer.size();
  } else {
    slot.answer = {};
  }
  life.end = std::max(life.end, origin.sequence + 1);
}

void AnswerTable::encode(std::string& to) const {
  FieldWriter fields{to};
  fields.number(std::uint64_t{lives_.size()});
  for (const Life& life : lives_) {
    fields.number(life.node);
    fields.number(life.life);
    fields.number(life.number);
    fields.number(life.base);
    fields.number(life.end - life.base);
    for (std::uint64_t each = life.base; each < life.end; ++each) {
      const Slot& slot = life.ring[each & (life.ring.size() - 1)];
      fields.small(static_cast<std::uint8_t>(slot.state), 2);
      if (slot.state == State::kept) fields.bytes(slot.answer);
    }
  }
}

bool AnswerTable::restore(FieldReader& fields, Life& life) {
  std::uint64_t count = 0;
  fields.number(life.node);
  fields.number(life.life);
  fields.number(life.number);
  fields.number(life.base);
  fields.number(count);
  if (!fields.is_good() || life.node == 0 || life.base == 0 || count > answers_window ||
      count > fields.rest().size() || life.base + count < life.base) {
    return false;
  }
  life.end = life.base;
  if (count != 0) make_room(life, life.base + count - 1);
  for (; count > 0; --count) {
    Slot& slot = slot_of(life, life.end++);
    choice(fields, slot.state, State::not_kept);
    if (slot.state != State::kept) continue;
    Bytes answer;
    fields.bytes(answer);
    if (!fields.is_good() || answer.size() > kept_answer_bytes_max || !decode_answer(answer).ok()) {
      return false;
    }
    slot.answer = answer;
    life.bytes += answer.size();
  }
  return fields.is_good() && life.bytes <= kept_bytes_max;
}

bool AnswerTable::restore(Bytes from) {
  SEMEL_ASSERT(lives_.empty());
  FieldReader fields{from};
  std::uint64_t count = 0;
  fields.number(count);
  bool is_good = fields.is_good() && count <= lives_max;
  for (std::uint64_t i = 0; is_good && i < count; ++i) {
    Life life;
    is_good = restore(fields, life) && (lives_.empty() || lives_.back().node < life.node);
    lives_.push_back(std::move(life));
  }
  is_good = is_good && fields.rest().empty();
  if (!is_good) lives_.clear();
  return is_good;
}

std::size_t AnswerTable::bytes() const noexcept {
  std::size_t all = 0;
  for (const Life& each : lives_) all += each.ring.size() * sizeof(Slot) + each.bytes;
  return all;
}

}  // namespace semel::replication
