#include "engine/hashes/hash_ground.hpp"

#include <algorithm>
#include <vector>

#include "engine/hashes/hash_tree_edit.hpp"
#include "engine/hashes/hash_trim.hpp"

namespace semel::engine {

namespace {

void note(std::span<const HashChange> changes, EditTrail& trail) {
  std::string value;
  for (const HashChange& change : changes) {
    if (!trail.is_open()) return;
    if (!change.value) {
      trail.erase(change.field);
      continue;
    }
    value.clear();
    base::put_varint(value, number_of_end(change.due));
    trail.put(change.field, value.append(*change.value));
  }
}

std::size_t large_bytes_max(const HashFacts& facts) noexcept {
  return std::max(facts.value_bytes_max, facts.large_bytes_max);
}

/// Whether a hash of these fields and bytes is too long for a record. One that is too long already,
/// stored under a larger limit, may become shorter.
bool is_too_long(std::size_t fields, std::size_t bytes, std::size_t bytes_before,
                 std::size_t bytes_max, HashOutcome& outcome) {
  if (bytes <= bytes_before || bytes <= bytes_max) return false;
  outcome.fields = fields;
  outcome.bytes = bytes;
  outcome.bytes_max = bytes_max;
  outcome.error = ErrorCode::value_too_long;
  return true;
}

}  // namespace

bool HashGround::some_ended() const noexcept {
  if (object_ == nullptr) return view_.has_ends() && view_.ends().first <= now_;
  return ended_by(object_->index_tree(), now_) != 0;
}

bool HashGround::has_live_ends() const noexcept {
  if (object_ != nullptr) {
    const Tree ends = object_->index_tree();
    return ended_by(ends, now_) != ends.size().elements;
  }
  bool has_one = false;
  if (view_.has_ends()) {
    each([&has_one](const HashView::Found& pair) { has_one = has_one || pair.due != no_end; });
  }
  return has_one;
}

std::size_t HashGround::size() const noexcept {
  if (object_ != nullptr) return all_size() - ended_by(object_->index_tree(), now_);
  if (!some_ended()) return view_.size();
  std::size_t size = 0;
  each([&size](const HashView::Found&) { ++size; });
  return size;
}

std::optional<HashView::Found> HashGround::find_in_tree(Bytes field) const {
  const FieldKey key{field, object_->seed};
  const std::optional<Bytes> value = object_->tree().find(key.bytes());
  if (!value) return std::nullopt;
  HashView::Found found = field_at({key.bytes(), *value});
  found.field = field;
  return found;
}

std::optional<HashView::Found> HashGround::at_rank(std::size_t rank) const noexcept {
  if (object_ != nullptr) return field_at(object_->tree().at(rank).element());
  return view_.pair_at(static_cast<std::uint32_t>(view_.index_word(rank)));
}

Timestamp HashGround::key_end() const noexcept {
  return live_ == nullptr ? no_end : key_end_of_hash(live_->value, live_->due);
}

Decision HashGround::with_trail(Decision decision, const HashScratch& scratch) const noexcept {
  if (live_ != nullptr && decision.due == live_->due) decision.trail = scratch.trail->bytes();
  return decision;
}

Decision HashGround::write(std::span<const HashChange> changes, const HashFacts& facts,
                           HashOutcome& outcome, HashScratch& scratch) const {
  if (object_ != nullptr) return write_large(changes, facts, outcome, scratch);
  HashView ground = view_;
  std::string made;  // the bytes of ground, if they are not the record's
  EditTrail& trail =
      scratch.trail.emplace(live_ != nullptr && scratch.wants_trail ? live_->value.size() : 0);
  const HashView none_with_ends{HashEnds{.key = key_end()}};
  if (some_ended()) [[unlikely]] {
    const std::vector<HashChange> ended = ended_fields(view_, now_);
    note(ended, trail);
    const HashWriter writer{view_, ended, facts.seed};
    ground = none_with_ends;
    if (writer.fields() != 0) {
      writer.write(made);
      ground = HashView{made};
    }
  }
  const bool brings_ends = std::any_of(changes.begin(), changes.end(),
                                       [](const HashChange& each) { return each.due != no_end; });
  if (brings_ends && !ground.has_ends()) {
    if (ground.size() == 0) {
      ground = none_with_ends;
    } else {
      made = with_ends(ground, key_end(), facts.seed);
      ground = HashView{made};
    }
  }
  const HashWriter writer{ground, changes, facts.seed};
  outcome.number = static_cast<std::int64_t>(writer.added() + writer.removed());
  if (writer.changes_nothing()) return {};
  if (writer.fields() == 0) {
    outcome.is_gone = true;
    return {.action = Action::erase, .kind = Kind::hash, .due = no_end, .value = {}};
  }
  // Ended fields do not count: replicas take them out at different times.
  const std::size_t before = made.empty() && live_ != nullptr ? live_->value.size() : made.size();
  const bool is_large =
      scratch.nodes != nullptr && (writer.fields() > HashTreeEdit::packed_fields_max ||
                                   writer.bytes() > HashTreeEdit::packed_bytes_max);
  const std::size_t most = is_large ? large_bytes_max(facts) : facts.value_bytes_max;
  if (is_too_long(writer.fields(), writer.bytes(), before, most, outcome)) return {};
  if (trail.is_open()) note(changes, trail);
  const bool gives_up = writer.removed() != 0 && writer.added() == 0;
  Decision decision{.action = Action::store, .kind = Kind::hash, .value = {}};
  if (is_large) [[unlikely]] {
    decision = make_large(ground, changes, facts, scratch);
  } else {
    writer.write(*scratch.bytes);
    decision.due = ground.has_ends() ? end_of_written(facts.seed, *scratch.bytes) : key_end();
    decision.value = *scratch.bytes;
  }
  decision.gives_up = gives_up;
  return with_trail(decision, scratch);
}

Decision HashGround::make_large(const HashView& ground, std::span<const HashChange> changes,
                                const HashFacts& facts, HashScratch& scratch) const {
  auto edit = std::make_unique<HashTreeEdit>(ground, facts.seed, *scratch.nodes);
  for (const HashChange& change : changes) {
    if (change.value) {
      edit->put(change.field, *change.value, change.due);
    } else {
      edit->erase(change.field);
    }
  }
  const Decision decision = edit->write(key_end(), facts.value_bytes_max, *scratch.bytes);
  scratch.held = std::move(edit);
  return decision;
}

Decision HashGround::write_large(std::span<const HashChange> changes, const HashFacts& facts,
                                 HashOutcome& outcome, HashScratch& scratch) const {
  SEMEL_ASSERT(scratch.nodes != nullptr);
  const std::size_t bytes_of_all = HashTrees{*object_}.packed_bytes().whole();
  EditTrail& trail = scratch.trail.emplace(scratch.wants_trail ? bytes_of_all : 0);
  HashTreeEdit& edit = scratch.edit.emplace(live_->value, *scratch.nodes);
  edit.erase_ended(now_, trail);
  const std::size_t before = edit.bytes();
  std::size_t added = 0;
  std::size_t removed = 0;
  std::size_t puts = 0;
  for (const HashChange& change : changes) {
    if (change.value) {
      added += edit.put(change.field, *change.value, change.due) ? 1 : 0;
      ++puts;
    } else {
      removed += edit.erase(change.field) ? 1 : 0;
    }
  }
  outcome.number = static_cast<std::int64_t>(added + removed);
  if (puts == 0 && removed == 0) return {};
  Decision decision{.action = Action::store, .kind = Kind::hash, .due = live_->due, .value = {}};
  if (edit.has_failed()) {
    decision.no_memory = true;
    return decision;
  }
  if (edit.fields() == 0) {
    outcome.is_gone = true;
    return {.action = Action::erase, .kind = Kind::hash, .due = no_end, .value = {}};
  }
  if (is_too_long(edit.fields(), edit.bytes(), before, large_bytes_max(facts), outcome)) {
    return {};
  }
  note(changes, trail);
  if (edit.is_changed()) {
    decision = edit.write(key_end(), facts.value_bytes_max, *scratch.bytes);
  } else {
    decision.value = live_->value;  // fields were set to what they are
  }
  decision.gives_up = removed != 0 && added == 0;
  return with_trail(decision, scratch);
}

}  // namespace semel::engine
