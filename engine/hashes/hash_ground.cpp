#include "engine/hashes/hash_ground.hpp"

#include <algorithm>
#include <vector>

#include "semel/limits.hpp"

namespace semel::engine {

namespace {

/// Of a hash that has been written with ends: it keeps them only if a field has one. Returns when
/// the record ends.
Timestamp end_of_written(std::uint64_t seed, std::string& bytes) {
  const HashEnds ends = HashView{bytes}.ends();
  if (ends.first == no_end) bytes = without_ends(HashView{bytes}, seed);
  return ends.due();
}

}  // namespace

std::size_t HashGround::size() const noexcept {
  if (!some_ended()) return view_.size();
  std::size_t size = 0;
  each([&size](const HashView::Found&) { ++size; });
  return size;
}

Timestamp HashGround::key_end() const noexcept {
  if (live_ == nullptr) return no_end;
  return view_.has_ends() ? view_.ends().key : live_->due;
}

bool HashGround::write_live(std::uint64_t seed, std::string& to) const {
  std::vector<HashChange> ended;
  view_.each([&](const HashView::Found& pair) {
    if (!is_live(pair)) ended.push_back({pair.field, std::nullopt});
  });
  const HashWriter writer{view_, ended, seed};
  if (writer.fields() == 0) return false;
  writer.write(to);
  return true;
}

Decision HashGround::write(std::span<const HashChange> changes, const HashFacts& facts,
                           HashOutcome& outcome, std::string& scratch) const {
  HashView ground = view_;
  std::string made;  // the bytes of ground, if they are not the record's
  const HashView none_with_ends{HashEnds{.key = key_end()}};
  if (some_ended()) [[unlikely]]
    ground = write_live(facts.seed, made) ? HashView{made} : none_with_ends;
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
  // A value that is too long already, stored under a larger limit, may become shorter. Ended fields
  // do not count: replicas take them out at different times.
  const std::size_t before = made.empty() && live_ != nullptr ? live_->value.size() : made.size();
  const bool grows = live_ == nullptr || writer.bytes() > before;
  if ((writer.added() != 0 && writer.fields() > limits::hash_fields_max) ||
      (grows && writer.bytes() > facts.value_bytes_max)) {
    outcome.fields = writer.fields();
    outcome.bytes = writer.bytes();
    outcome.error = ErrorCode::value_too_long;
    return {};
  }
  writer.write(scratch);
  const Timestamp due = ground.has_ends() ? end_of_written(facts.seed, scratch) : key_end();
  return {.action = Action::store,
          .kind = Kind::hash,
          .due = due,
          .value = scratch,
          .gives_up = writer.removed() != 0 && writer.added() == 0};
}

Decision HashGround::trim(std::string& scratch) const {
  constexpr std::uint64_t no_index_is_made = 0;
  if (!write_live(no_index_is_made, scratch)) return {};  // the record has ended as well
  const Timestamp due = end_of_written(no_index_is_made, scratch);
  return {
      .action = Action::store, .kind = Kind::hash, .due = due, .value = scratch, .gives_up = true};
}

Decision trim_hash(const RecordView& live, Timestamp now, std::string& scratch) {
  const HashView view{live.value};
  const HashGround hash{&live, view, now};
  return hash.some_ended() ? hash.trim(scratch) : Decision{};
}

}  // namespace semel::engine
