// Unions, intersections and differences of sorted sets and sets, as redis-server computes their
// scores: inputs are taken one after the other into a table of the result so far. The table needs
// memory for the first input or the result, whichever is larger, and not for all inputs.
//
// A member of a plain set has the score 1. Sums of infinity and its opposite are 0, as is the
// product of infinity and a weight of 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/types/sorted_set.hpp"

namespace semel::engine {

enum class Aggregate : std::uint8_t { sum, min, max };

/// An input: the elements of a sorted set or a set, and their weight.
struct WeightedSet {
  const ObjectReader& set;
  Kind kind;
  double weight = 1;
};

/// A number for each input: its place in the order in which redis-server takes them, from the
/// smallest on, equal ones as they were named. Sums of fractions depend on it.
[[nodiscard]] std::vector<std::size_t> by_size(std::span<const std::size_t> sizes);

/// Of one thread. std::bad_alloc.
class ScoreTable {
 public:
  /// It takes about `bytes_max` bytes at most.
  explicit ScoreTable(std::size_t bytes_max);

  /// Adds members, and joins the scores of those that are there. False: there was no room for all;
  /// the table is of no use then.
  [[nodiscard]] bool unite(const WeightedSet& input, Aggregate aggregate);
  /// Removes the members that `input` lacks, and joins the scores of the rest.
  void intersect(const WeightedSet& input, Aggregate aggregate);
  /// Removes the members of `input`.
  void subtract(const WeightedSet& input);

  [[nodiscard]] std::size_t size() const noexcept { return scores_.size(); }
  [[nodiscard]] bool empty() const noexcept { return scores_.empty(); }
  /// In the order of a sorted set. Members are valid until the table changes.
  [[nodiscard]] std::vector<Scored> sorted() const;

 private:
  /// Seeded: whoever names members must not be able to choose ones that collide.
  struct Hash {
    using is_transparent = void;
    std::uint64_t seed;
    [[nodiscard]] std::size_t operator()(Bytes bytes) const noexcept;
  };
  using Table = std::unordered_map<std::string, double, Hash, std::equal_to<>>;

  template <class Visit>
  void each_common(const WeightedSet& input, const Visit& visit);

  std::size_t bytes_left_;
  Table scores_;
};

}  // namespace semel::engine
