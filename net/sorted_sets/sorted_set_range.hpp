// Ranges of sorted sets as requests name them: by rank, by score or by member.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/types/sorted_set.hpp"
#include "net/commands/command.hpp"

namespace semel::net {

enum class RangeBy : std::uint8_t { rank, score, member };

struct RangeQuery {
  RangeBy by = RangeBy::rank;
  engine::Direction direction = engine::Direction::up;
  std::int64_t start = 0;  ///< by rank
  std::int64_t stop = 0;
  engine::ScoreRange scores{};
  engine::LexRange members{};
  std::int64_t offset = 0;  ///< LIMIT
  std::int64_t count = -1;
  bool with_scores = false;

  [[nodiscard]] engine::RankRange ranks(const engine::ObjectReader& set) const;
};

/// Reads the two bounds into `query`, by query.by; `first` and `second` are in the order of the
/// request, so that going down the second is the lower one. False: an error has been written.
[[nodiscard]] bool read_bounds(Call& call, std::string_view first, std::string_view second,
                               RangeQuery& query);

/// What a command leaves to the words of its request.
struct RangeForm {
  std::optional<RangeBy> by{};
  std::optional<engine::Direction> direction{};
  bool stores = false;  ///< no WITHSCORES
  std::size_t at = 2;   ///< of the first bound
};
/// None: an error has been written.
[[nodiscard]] std::optional<RangeQuery> read_range(Call& call, const RangeForm& form);

}  // namespace semel::net
