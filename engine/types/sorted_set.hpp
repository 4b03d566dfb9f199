// Sorted sets: members, each once, in the order of their scores and, where scores are equal, of
// their bytes. Pure rules on the elements of an object; NaN is never a score, and -0 is stored as
// 0.
//
//   key of an element   encode_score(score) | member
//
// Ranks count from the lowest score. A RankRange may be empty. Nothing here blocks or throws but
// std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/kinds/element_keys.hpp"
#include "engine/objects/object_edit.hpp"

namespace semel::engine {

struct Scored {
  double score = 0;
  Bytes member{};
};
/// One that outlives the object.
struct ScoredText {
  double score = 0;
  std::string member{};
};

[[nodiscard]] inline Scored scored_of(const Element& element) noexcept {
  return {score_of(element.key), element.key.substr(score_bytes)};
}
[[nodiscard]] std::string scored_key(double score, Bytes member);

// --- members ------------------------------------------------------------------------------------

/// The options of ZADD. That some exclude others is the caller's to check.
struct AddRule {
  bool only_new = false;      ///< NX
  bool only_present = false;  ///< XX
  bool only_greater = false;  ///< GT: a member that is there gets a greater score only
  bool only_less = false;     ///< LT
  bool adds = false;          ///< INCR: the score is added to that of the member
};

enum class Added : std::uint8_t {
  refused,    ///< by the rule
  not_score,  ///< infinity and its opposite were added: nothing was changed
  same,       ///< it had this score
  moved,
  inserted
};

struct AddOutcome {
  Added what = Added::refused;
  double score = 0;  ///< that the member has now; of a refusal, unset
};

/// `score` is not NaN.
AddOutcome add_member(ObjectEdit& set, double score, Bytes member, const AddRule& rule);
/// False: it was not there.
bool remove_member(ObjectEdit& set, Bytes member);

[[nodiscard]] std::optional<double> score_in(const ObjectReader& set, Bytes member) noexcept;
[[nodiscard]] std::optional<std::size_t> rank_in(const ObjectReader& set, Bytes member) noexcept;

// --- ranges -------------------------------------------------------------------------------------

/// Ranks `from` .. `to` - 1.
struct RankRange {
  std::size_t from = 0;
  std::size_t to = 0;

  [[nodiscard]] std::size_t size() const noexcept { return to - from; }
  [[nodiscard]] bool empty() const noexcept { return from == to; }
};

enum class Direction : std::uint8_t { up, down };

/// Both bounds are part of it; negative ones count from the end, -1 being the last. Going down,
/// they count from the highest rank.
[[nodiscard]] RankRange ranks_between(std::size_t size, std::int64_t start, std::int64_t stop,
                                      Direction direction) noexcept;

/// Bounds are not NaN.
struct ScoreRange {
  double min = 0;
  double max = 0;
  bool excludes_min = false;
  bool excludes_max = false;
};
[[nodiscard]] RankRange ranks_of(const ObjectReader& set, const ScoreRange& range) noexcept;

/// One end of a range of members.
struct LexBound {
  enum class Place : std::uint8_t { lowest, member, highest };

  Place place = Place::lowest;
  bool excludes = false;  ///< the member itself
  Bytes member{};
};
struct LexRange {
  LexBound min{};
  LexBound max{};
};
/// Of a set whose scores are all equal, the members in the range but for the first `offset` ones in
/// `direction`. Of another set redis-server promises nothing; a small one is answered as it does:
/// it goes `offset` members on from the first one that is not before the range, and takes members
/// up to the next one that is behind it.
[[nodiscard]] RankRange ranks_of(const ObjectReader& set, const LexRange& range,
                                 Direction direction, std::int64_t offset = 0);

/// LIMIT: `count` elements from the one `offset` on, in `direction`. A negative offset: none; a
/// negative count: all.
[[nodiscard]] RankRange limited(RankRange range, std::int64_t offset, std::int64_t count,
                                Direction direction) noexcept;

/// Visits `visit(Scored)` in `direction`, until it returns false.
template <class Visit>
void each_scored(const ObjectReader& set, RankRange range, Direction direction, Visit&& visit) {
  const auto visit_element = [&](const Element& element) { return visit(scored_of(element)); };
  if (direction == Direction::up) {
    set.each(range.from, range.to, visit_element);
  } else {
    set.each_back(range.from, range.to, visit_element);
  }
}

/// Whether there are at most so many members, and none is longer than that.
[[nodiscard]] bool is_small(const ObjectReader& set, std::size_t members_max,
                            std::size_t member_bytes_max) noexcept;

// --- pops ---------------------------------------------------------------------------------------

/// Removes up to `count` members from the end with the lowest scores (up) or the highest (down),
/// and puts them into `popped`, which is cleared first, in that order.
void pop_members(ObjectEdit& set, Direction from, std::size_t count,
                 std::vector<ScoredText>& popped);

}  // namespace semel::engine
