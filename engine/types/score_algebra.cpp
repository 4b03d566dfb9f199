#include "engine/types/score_algebra.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace semel::engine {

namespace {

double joined(double one, double other, Aggregate aggregate) noexcept {
  switch (aggregate) {
    case Aggregate::min:
      return other < one ? other : one;
    case Aggregate::max:
      return other > one ? other : one;
    case Aggregate::sum:
      break;
  }
  const double sum = one + other;
  return std::isnan(sum) ? 0 : sum;
}

double without_nan(double score) noexcept {
  return std::isnan(score) ? 0 : score;
}

/// Visits `visit(Bytes member, double score)`, not weighted, until it returns false.
template <class Visit>
void each_member(const WeightedSet& input, const Visit& visit) {
  const ObjectReader& set = input.set;
  set.each(0, set.size(), [&](const Element& element) {
    if (input.kind == Kind::sorted_set) {
      const Scored scored = scored_of(element);
      return visit(scored.member, scored.score);
    }
    MemberText text;
    return visit(member_of(element.key, text), 1.0);
  });
}

std::optional<double> score_of(const WeightedSet& input, Bytes member) {
  if (input.kind == Kind::sorted_set) return score_in(input.set, member);
  if (!input.set.find(member_key(member))) return std::nullopt;
  return 1.0;
}

/// Whether it is cheaper to look for each of `members` than to walk over the input. Members of a
/// sorted set are found by walking while its record is packed.
bool is_found_sooner(const WeightedSet& input, std::size_t members) {
  constexpr std::size_t found_one_by_one = 4;
  constexpr std::size_t steps = 32;
  if (input.kind == Kind::sorted_set && !input.set.has_index()) return members <= found_one_by_one;
  return members < input.set.size() / steps;
}

}  // namespace

std::vector<std::size_t> by_size(std::span<const std::size_t> sizes) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] < sizes[b]; });
  return order;
}

std::size_t ScoreTable::Hash::operator()(Bytes bytes) const noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

ScoreTable::ScoreTable(std::size_t bytes_max)
    : bytes_left_(bytes_max), scores_(0, Hash{reinterpret_cast<std::uintptr_t>(this)}) {}

bool ScoreTable::unite(const WeightedSet& input, Aggregate aggregate) {
  bool has_room = true;
  each_member(input, [&](Bytes member, double unweighted) {
    const double score = without_nan(unweighted * input.weight);
    if (const auto there = scores_.find(member); there != scores_.end()) {
      there->second = joined(there->second, score, aggregate);
      return true;
    }
    constexpr std::size_t node_bytes = 128;  // with its bucket and its place in the sorted list
    const std::size_t bytes = node_bytes + member.size();
    has_room = bytes <= bytes_left_;
    if (!has_room) return false;
    bytes_left_ -= bytes;
    scores_.emplace(member, score);
    return true;
  });
  return has_room;
}

/// Visits `visit(entry of the table, score in the input)` for the members that both have.
template <class Visit>
void ScoreTable::each_common(const WeightedSet& input, const Visit& visit) {
  if (is_found_sooner(input, scores_.size())) {
    for (auto each = scores_.begin(); each != scores_.end();) {
      const auto next = std::next(each);
      if (const auto score = score_of(input, each->first)) visit(each, *score);
      each = next;
    }
    return;
  }
  each_member(input, [&](Bytes member, double score) {
    if (const auto there = scores_.find(member); there != scores_.end()) visit(there, score);
    return !scores_.empty();
  });
}

void ScoreTable::intersect(const WeightedSet& input, Aggregate aggregate) {
  Table both{0, scores_.hash_function()};
  each_common(input, [&](Table::iterator there, double score) {
    // NaN becomes 0 only in a sum here: redis-server compares NaN as it is.
    there->second = joined(there->second, score * input.weight, aggregate);
    both.insert(scores_.extract(there));
  });
  scores_ = std::move(both);
}

void ScoreTable::subtract(const WeightedSet& input) {
  each_common(input, [&](Table::iterator there, double) { scores_.erase(there); });
}

std::vector<Scored> ScoreTable::sorted() const {
  std::vector<Scored> all;
  all.reserve(scores_.size());
  for (const auto& [member, score] : scores_) all.push_back({score, member});
  std::sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score < b.score : a.member < b.member;
  });
  return all;
}

}  // namespace semel::engine
