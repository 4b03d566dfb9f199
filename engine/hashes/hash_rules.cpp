#include "engine/hashes/hash_rules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory_resource>
#include <unordered_set>
#include <vector>

#include "base/checked.hpp"
#include "base/random.hpp"
#include "engine/hashes/hash_field_rules.hpp"
#include "engine/hashes/hash_ground.hpp"
#include "engine/rules/hash_value.hpp"
#include "engine/rules/numbers.hpp"
#include "semel/limits.hpp"
#include "semel/store.hpp"

namespace semel::engine {

namespace {

constexpr Decision keep{};

Decision fail(HashOutcome& outcome, ErrorCode code) noexcept {
  outcome.error = code;
  return keep;
}

/// Collects fields and values that own their bytes in the end.
class ListBuilder {
 public:
  void add(Bytes field, Bytes value) {
    parts_.push_back({field, value});
    bytes_ += field.size() + value.size();
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] FieldValues take() {
    std::vector<char> bytes;
    bytes.reserve(bytes_);  // so that nothing moves any more
    const auto copy = [&bytes](Bytes part) {
      const std::size_t at = bytes.size();
      bytes.insert(bytes.end(), part.begin(), part.end());
      return Bytes{bytes.data() + at, part.size()};
    };
    for (FieldValue& part : parts_) part = {copy(part.field), copy(part.value)};
    return {std::move(bytes), std::move(parts_)};
  }

 private:
  std::vector<FieldValue> parts_;
  std::uint64_t bytes_ = 0;
};

// --- reads ----------------------------------------------------------------------------------

Decision decide_get(const HashGround& hash, const HashOp& op, HashOutcome& outcome) {
  if (const auto found = hash.find(op.field)) {
    outcome.found_field = true;
    outcome.number = static_cast<std::int64_t>(found->value.size());
    if (op.verb == HashVerb::get) outcome.value.assign(found->value);
  }
  return keep;
}

Decision decide_get_many(const HashGround& hash, const HashOp& op, HashOutcome& outcome) {
  outcome.values.reserve(op.fields.size());
  for (const Bytes field : op.fields) {
    auto& value = outcome.values.emplace_back();
    if (const auto found = hash.find(field)) value.emplace(found->value);
  }
  return keep;
}

Decision decide_all(const HashGround& hash, HashOutcome& outcome) {
  ListBuilder list;
  hash.each([&](const HashView::Found& pair) { list.add(pair.field, pair.value); });
  outcome.list = list.take();
  return keep;
}

/// A sequence of numbers that one number leads to.
class Sequence {
 public:
  explicit Sequence(std::uint64_t first) noexcept : state_(first) {}
  /// 0..bound - 1, of which there are not many.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept {
    return (base::next_random(state_) >> 32) * bound >> 32;
  }

 private:
  std::uint64_t state_;
};

/// Picks `wanted` fields, none twice, of a hash of which they are a small part.
void pick_ranks(const HashGround& hash, std::size_t size, std::uint64_t wanted, Sequence& sequence,
                ListBuilder& list) {
  std::unordered_set<std::size_t> taken;
  while (taken.size() < wanted) {
    const std::size_t rank = sequence.below(size);
    if (!taken.insert(rank).second) continue;
    if (const auto pair = hash.at_rank(rank)) list.add(pair->field, pair->value);
  }
}

/// Fields that may repeat. False: they would be too long together.
bool pick_again(const HashGround& hash, std::size_t size, std::uint64_t wanted, Sequence& sequence,
                ListBuilder& list) {
  std::vector<HashView::Found> pairs;
  if (!hash.has_ranks()) {
    pairs.reserve(size);
    hash.each([&](const HashView::Found& pair) { pairs.push_back(pair); });
    size = pairs.size();
  }
  for (std::uint64_t i = 0; i < wanted && size != 0; ++i) {
    const std::size_t rank = sequence.below(size);
    const auto pair = pairs.empty() ? hash.at_rank(rank) : std::optional{pairs[rank]};
    if (pair) list.add(pair->field, pair->value);
    if (list.bytes() > limits::hash_picks_bytes_max) return false;
  }
  return true;
}

Decision decide_random(const HashGround& hash, const HashOp& op, HashOutcome& outcome) {
  const std::size_t size = hash.size();
  if (size == 0 || op.amount == 0) return keep;
  Sequence sequence{op.random};
  ListBuilder list;
  if (op.amount > 0) {
    auto wanted = std::min<std::uint64_t>(static_cast<std::uint64_t>(op.amount), size);
    constexpr std::uint64_t few_of = 8;
    if (hash.has_ranks() && (wanted == 1 || wanted <= size / few_of)) {
      pick_ranks(hash, size, wanted, sequence, list);
    } else {
      // One after the other, each taken with the chance that makes every choice as likely.
      std::size_t left = size;
      hash.each([&](const HashView::Found& pair) {
        if (sequence.below(left--) >= wanted) return;
        --wanted;
        list.add(pair.field, pair.value);
      });
    }
  } else {
    const std::uint64_t wanted = -static_cast<std::uint64_t>(op.amount);
    if (wanted > limits::hash_picks_max) return fail(outcome, ErrorCode::bad_option);
    if (!pick_again(hash, size, wanted, sequence, list)) {
      return fail(outcome, ErrorCode::bad_option);
    }
  }
  outcome.list = list.take();
  return keep;
}

static_assert(limits::hash_scan_whole_max >= plain_fields_max, "larger ones have an index");

/// In the order of the index, which is that of the hashes: a cursor is the hash to go on from, so
/// those of one hash are returned together.
Decision decide_scan(const HashGround& hash, const HashOp& op, HashOutcome& outcome) {
  if (op.count == 0) return fail(outcome, ErrorCode::bad_option);
  ListBuilder list;
  const auto take = [&](const HashView::Found& pair) {
    if (!op.pattern.empty() && !glob_match(op.pattern, pair.field)) return;
    list.add(pair.field, pair.value);
  };
  if (hash.all_size() <= limits::hash_scan_whole_max) {
    hash.each(take);
  } else if (op.cursor <= std::numeric_limits<std::uint32_t>::max()) {
    std::size_t looked = 0;
    std::uint32_t last = 0;
    hash.each_from(static_cast<std::uint32_t>(op.cursor),
                   [&](std::uint32_t place, const HashView::Found& pair) {
                     if (looked >= op.count && place != last) {
                       outcome.next = place;
                       return false;
                     }
                     ++looked;
                     last = place;
                     if (pair.due > hash.now()) take(pair);
                     return true;
                   });
  }
  outcome.list = list.take();
  return keep;
}

// --- writes ---------------------------------------------------------------------------------

/// The changes of one call: few of them take no memory of the heap.
class ChangeList {
 public:
  explicit ChangeList(std::size_t count) { all_.reserve(count); }
  ChangeList(const ChangeList&) = delete;
  ChangeList& operator=(const ChangeList&) = delete;

  void add(const HashChange& change) { all_.push_back(change); }
  [[nodiscard]] std::span<const HashChange> all() const noexcept { return all_; }

 private:
  alignas(HashChange) std::array<std::byte, 4 * sizeof(HashChange)> own_;
  std::pmr::monotonic_buffer_resource memory_{own_.data(), own_.size()};
  std::pmr::vector<HashChange> all_{&memory_};
};

Decision decide_set(const HashGround& hash, const HashOp& op, const HashFacts& facts,
                    HashOutcome& outcome, HashScratch& scratch) {
  ChangeList changes{op.pairs.size()};
  for (const FieldValue& pair : op.pairs) changes.add({pair.field, pair.value});
  return hash.write(changes.all(), facts, outcome, scratch);
}

Decision decide_del(const HashGround& hash, const HashOp& op, const HashFacts& facts,
                    HashOutcome& outcome, HashScratch& scratch) {
  if (hash.is_empty()) return keep;
  ChangeList changes{op.fields.size()};
  for (const Bytes field : op.fields) changes.add({field, std::nullopt});
  return hash.write(changes.all(), facts, outcome, scratch);
}

Decision decide_incr_by(const HashGround& hash, const HashOp& op, const HashFacts& facts,
                        HashOutcome& outcome, HashScratch& scratch) {
  std::int64_t number = 0;
  const auto found = hash.find(op.field);
  if (found && !parse_integer(found->value, number)) {
    return fail(outcome, ErrorCode::not_an_integer);
  }
  const auto sum = base::checked_add(number, op.amount);
  if (!sum) return fail(outcome, ErrorCode::increment_overflow);
  format_integer(*sum, outcome.value);
  const std::array change{HashChange{op.field, outcome.value, found ? found->due : no_end}};
  const Decision decision = hash.write(change, facts, outcome, scratch);
  outcome.number = *sum;
  return decision;
}

Decision decide_incr_by_float(const HashGround& hash, const HashOp& op, const HashFacts& facts,
                              HashOutcome& outcome, HashScratch& scratch) {
  long double number = 0;
  const auto found = hash.find(op.field);
  if (found && !parse_float(found->value, number)) return fail(outcome, ErrorCode::not_a_float);
  number += op.by_float;
  if (!std::isfinite(number)) return fail(outcome, ErrorCode::nan_or_infinity);
  append_float(number, outcome.value);
  const std::array change{HashChange{op.field, outcome.value, found ? found->due : no_end}};
  return hash.write(change, facts, outcome, scratch);
}

}  // namespace

Decision decide_hash(const RecordView* live, const HashOp& op, const HashFacts& facts,
                     HashOutcome& outcome, HashScratch& scratch) {
  outcome = {};
  if (live != nullptr && live->kind != Kind::hash) return fail(outcome, ErrorCode::wrong_type);
  outcome.found = live != nullptr;
  const HashGround hash{live, facts.now};
  if (!hash.is_good()) return fail(outcome, ErrorCode::storage_damaged);
  switch (op.verb) {
    case HashVerb::get:
    case HashVerb::strlen:
      return decide_get(hash, op, outcome);
    case HashVerb::get_many:
      return decide_get_many(hash, op, outcome);
    case HashVerb::len:
      outcome.number = static_cast<std::int64_t>(hash.size());
      return keep;
    case HashVerb::all:
      return decide_all(hash, outcome);
    case HashVerb::random:
      return decide_random(hash, op, outcome);
    case HashVerb::scan:
      return decide_scan(hash, op, outcome);
    case HashVerb::set_if_absent:
      outcome.found_field = !op.pairs.empty() && hash.find(op.pairs.front().field).has_value();
      if (outcome.found_field) return keep;
      [[fallthrough]];
    case HashVerb::set:
      return decide_set(hash, op, facts, outcome, scratch);
    case HashVerb::del:
      return decide_del(hash, op, facts, outcome, scratch);
    case HashVerb::incr_by:
      return decide_incr_by(hash, op, facts, outcome, scratch);
    case HashVerb::incr_by_float:
      return decide_incr_by_float(hash, op, facts, outcome, scratch);
    case HashVerb::ends:
    case HashVerb::expire:
    case HashVerb::persist:
    case HashVerb::get_del:
    case HashVerb::get_ex:
    case HashVerb::set_ex:
      return decide_hash_fields(hash, op, facts, outcome, scratch);
  }
  return keep;
}

}  // namespace semel::engine
