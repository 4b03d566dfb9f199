#include "engine/types/sorted_set.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/assert.hpp"

namespace semel::engine {

std::string scored_key(double score, Bytes member) {
  SEMEL_ASSERT(!std::isnan(score));
  const auto prefix = encode_score(score);
  std::string key;
  key.reserve(prefix.size() + member.size());
  key.append(prefix.data(), prefix.size()).append(member);
  return key;
}

// --- members ------------------------------------------------------------------------------------

namespace {

/// The same; a short one takes no memory beside it.
class ScoredKey {
 public:
  // The array is not initialized: most keys fill little of it.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  ScoredKey(double score, Bytes member) {
    if (member.size() > small_.size() - score_bytes) {
      long_ = scored_key(score, member);
      bytes_ = long_;
      return;
    }
    SEMEL_ASSERT(!std::isnan(score));
    const auto prefix = encode_score(score);
    std::memcpy(small_.data(), prefix.data(), prefix.size());
    if (!member.empty()) std::memcpy(small_.data() + prefix.size(), member.data(), member.size());
    bytes_ = {small_.data(), prefix.size() + member.size()};
  }
  ScoredKey(const ScoredKey&) = delete;
  ScoredKey& operator=(const ScoredKey&) = delete;

  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }

 private:
  std::array<char, 128> small_;
  std::string long_;
  Bytes bytes_;
};

}  // namespace

AddOutcome add_member(ObjectEdit& set, double score, Bytes member, const AddRule& rule) {
  const std::optional<Bytes> there = set.find_prefix(score_bytes, member);
  if (!there) {
    if (rule.only_present) return {};
    set.put(ScoredKey{score, member}.bytes());
    return {Added::inserted, score};
  }
  if (rule.only_new) return {};
  const double before = score_of(*there);
  if (rule.adds) score += before;
  if (std::isnan(score)) return {.what = Added::not_score};
  if ((rule.only_greater && score <= before) || (rule.only_less && score >= before)) return {};
  if (score == before) return {Added::same, score};
  set.move(ScoredKey{before, member}.bytes(), ScoredKey{score, member}.bytes());
  return {Added::moved, score};
}

bool remove_member(ObjectEdit& set, Bytes member) {
  const std::optional<Element> there = set.find_suffix(score_bytes, member);
  return there && set.erase(there->key);
}

std::optional<double> score_in(const ObjectReader& set, Bytes member) noexcept {
  const std::optional<Bytes> there = set.find_prefix(score_bytes, member);
  if (!there) return std::nullopt;
  return score_of(*there);
}

std::optional<std::size_t> rank_in(const ObjectReader& set, Bytes member) noexcept {
  const std::optional<Element> there = set.find_suffix(score_bytes, member);
  if (!there) return std::nullopt;
  return set.rank(there->key);
}

// --- ranges -------------------------------------------------------------------------------------

RankRange ranks_between(std::size_t size, std::int64_t start, std::int64_t stop,
                        Direction direction) noexcept {
  const auto count = static_cast<std::int64_t>(size);
  if (start < 0) start = std::max<std::int64_t>(start + count, 0);
  if (stop < 0) stop += count;
  if (start > stop || start >= count) return {};
  const auto from = static_cast<std::size_t>(start);
  const auto to = static_cast<std::size_t>(std::min(stop, count - 1)) + 1;
  if (direction == Direction::up) return {from, to};
  return {size - to, size - from};
}

namespace {

/// How many elements have a score below this, or, `counts_equal`, not above it.
std::size_t count_below(const ObjectReader& set, double score, bool counts_equal) noexcept {
  auto prefix = encode_score(score);
  if (counts_equal) {
    // The next number of eight bytes; even that of infinity has one behind it.
    std::size_t i = prefix.size();
    while (static_cast<unsigned char>(prefix[--i]) == 0xff) prefix[i] = 0;
    prefix[i] = static_cast<char>(static_cast<unsigned char>(prefix[i]) + 1);
  }
  return set.rank({prefix.data(), prefix.size()});
}

bool is_at_least(Bytes member, const LexBound& min) noexcept {
  if (min.place != LexBound::Place::member) return min.place == LexBound::Place::lowest;
  return min.excludes ? member > min.member : member >= min.member;
}
bool is_at_most(Bytes member, const LexBound& max) noexcept {
  if (max.place != LexBound::Place::member) return max.place == LexBound::Place::highest;
  return max.excludes ? member < max.member : member <= max.member;
}

bool is_empty(const LexRange& range) noexcept {
  if (range.min.place != range.max.place) return range.min.place > range.max.place;
  if (range.min.place != LexBound::Place::member) return true;
  const int order = range.min.member.compare(range.max.member);
  return order > 0 || (order == 0 && (range.min.excludes || range.max.excludes));
}

/// The rank of the first member at `bound` or above it, or, `is_max`, of the first that is beyond.
std::size_t rank_of(const ObjectReader& set, double score, const LexBound& bound, bool is_max) {
  if (bound.place == LexBound::Place::lowest) return 0;
  if (bound.place == LexBound::Place::highest) return set.size();
  std::string key = scored_key(score, bound.member);
  if (bound.excludes != is_max) key.push_back('\0');  // the next key that there can be
  return set.rank(key);
}

Bytes member_at(const ObjectReader& set, std::size_t rank) noexcept {
  return set.at(rank).key.substr(score_bytes);
}

/// Of scores that differ, as a walk over a listpack finds them.
RankRange walked(const ObjectReader& set, const LexRange& range, Direction direction,
                 std::size_t offset) {
  const std::size_t size = set.size();
  const auto is_in_min = [&](std::size_t i) { return is_at_least(member_at(set, i), range.min); };
  const auto is_in_max = [&](std::size_t i) { return is_at_most(member_at(set, i), range.max); };
  if (!is_in_min(size - 1) || !is_in_max(0)) return {};
  if (direction == Direction::up) {
    std::size_t from = 0;
    while (from < size && !is_in_min(from)) ++from;
    if (from == size || !is_in_max(from) || offset >= size - from) return {};
    from += offset;
    std::size_t to = from;
    while (to < size && is_in_max(to)) ++to;
    return {from, to};
  }
  std::size_t to = size;
  while (to > 0 && !is_in_max(to - 1)) --to;
  if (to == 0 || !is_in_min(to - 1) || offset >= to) return {};
  to -= offset;
  std::size_t from = to;
  while (from > 0 && is_in_min(from - 1)) --from;
  return {from, to};
}

/// The first rank whose member `is_behind`, as if members were in order.
template <class Is>
std::size_t first_that(const ObjectReader& set, const Is& is_behind) {
  std::size_t low = 0;
  std::size_t high = set.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (is_behind(member_at(set, middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

RankRange ranks_of(const ObjectReader& set, const ScoreRange& range) noexcept {
  const std::size_t from = count_below(set, range.min, range.excludes_min);
  const std::size_t to = count_below(set, range.max, !range.excludes_max);
  return {from, std::max(from, to)};
}

RankRange ranks_of(const ObjectReader& set, const LexRange& range, Direction direction,
                   std::int64_t offset) {
  if (set.empty() || is_empty(range) || offset < 0) return {};
  const double score = score_of(set.at(0).key);
  RankRange found;
  if (score_of(set.at(set.size() - 1).key) == score) {
    found.from = rank_of(set, score, range.min, false);
    found.to = rank_of(set, score, range.max, true);
  } else if (constexpr std::size_t walk_max = 128; set.size() <= walk_max) {
    return walked(set, range, direction, static_cast<std::size_t>(offset));
  } else {
    found.from = first_that(set, [&](Bytes member) { return is_at_least(member, range.min); });
    found.to = first_that(set, [&](Bytes member) { return !is_at_most(member, range.max); });
  }
  found.to = std::max(found.from, found.to);
  return limited(found, offset, -1, direction);
}

RankRange limited(RankRange range, std::int64_t offset, std::int64_t count,
                  Direction direction) noexcept {
  if (offset < 0 || static_cast<std::uint64_t>(offset) >= range.size()) return {};
  const auto skipped = static_cast<std::size_t>(offset);
  std::size_t left = range.size() - skipped;
  if (count >= 0) left = std::min(left, static_cast<std::size_t>(count));
  if (direction == Direction::up) return {range.from + skipped, range.from + skipped + left};
  return {range.to - skipped - left, range.to - skipped};
}

bool is_small(const ObjectReader& set, std::size_t members_max,
              std::size_t member_bytes_max) noexcept {
  if (set.size() > members_max) return false;
  bool is_small = true;
  set.each(0, set.size(), [&](const Element& element) {
    is_small = element.key.size() - score_bytes <= member_bytes_max;
    return is_small;
  });
  return is_small;
}

// --- pops ---------------------------------------------------------------------------------------

void pop_members(ObjectEdit& set, Direction from, std::size_t count,
                 std::vector<ScoredText>& popped) {
  popped.clear();
  count = std::min(count, set.size());
  const RankRange range =
      from == Direction::up ? RankRange{0, count} : RankRange{set.size() - count, set.size()};
  popped.reserve(count);
  each_scored(set, range, from, [&](const Scored& each) {
    popped.push_back({each.score, std::string{each.member}});
    return true;
  });
  set.erase_range(range.from, range.to);
}

}  // namespace semel::engine
