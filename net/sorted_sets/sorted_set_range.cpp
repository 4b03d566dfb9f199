#include "net/sorted_sets/sorted_set_range.hpp"

#include "net/objects/score_text.hpp"
#include "net/resp/text.hpp"

namespace semel::net {

using engine::Direction;

engine::RankRange RangeQuery::ranks(const engine::ObjectReader& set) const {
  if (by == RangeBy::rank) return engine::ranks_between(set.size(), start, stop, direction);
  if (by == RangeBy::score) {
    return engine::limited(engine::ranks_of(set, scores), offset, count, direction);
  }
  return engine::limited(engine::ranks_of(set, members, direction, offset), 0, count, direction);
}

bool read_bounds(Call& call, std::string_view first, std::string_view second, RangeQuery& query) {
  if (query.by == RangeBy::rank) {
    const auto start = integer_of(first);
    const auto stop = integer_of(second);
    if (!start || !stop) return call.fail_number(), false;
    query.start = *start;
    query.stop = *stop;
    return true;
  }
  if (query.direction == Direction::down) std::swap(first, second);
  if (query.by == RangeBy::score) {
    const auto scores = score_range_of(first, second);
    if (!scores) return call.fail("ERR min or max is not a float"), false;
    query.scores = *scores;
    return true;
  }
  const auto members = lex_range_of(first, second);
  if (!members) return call.fail("ERR min or max not valid string range item"), false;
  query.members = *members;
  return true;
}

namespace {

/// The words behind the bounds. False: an error has been written.
bool read_options(Call& call, const RangeForm& form, RangeQuery& query) {
  std::optional<RangeBy> by = form.by;
  std::optional<Direction> direction = form.direction;
  for (std::size_t i = form.at + 2; i < call.args.size(); ++i) {
    const std::string_view word = call.args[i];
    if (!form.stores && is_word(word, "withscores")) {
      query.with_scores = true;
    } else if (is_word(word, "limit") && i + 2 < call.args.size()) {
      const auto offset = integer_of(call.args[i + 1]);
      const auto count = integer_of(call.args[i + 2]);
      if (!offset || !count) return call.fail_number(), false;
      query.offset = *offset;
      query.count = *count;
      i += 2;
    } else if (!direction && is_word(word, "rev")) {
      direction = Direction::down;
    } else if (!by && is_word(word, "bylex")) {
      by = RangeBy::member;
    } else if (!by && is_word(word, "byscore")) {
      by = RangeBy::score;
    } else {
      return call.fail_syntax(), false;
    }
  }
  query.by = by.value_or(RangeBy::rank);
  query.direction = direction.value_or(Direction::up);
  return true;
}

}  // namespace

std::optional<RangeQuery> read_range(Call& call, const RangeForm& form) {
  RangeQuery query;
  if (!read_options(call, form, query)) return std::nullopt;
  if (query.count != -1 && query.by == RangeBy::rank) {
    call.fail(
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
    return std::nullopt;
  }
  if (query.with_scores && query.by == RangeBy::member) {
    call.fail("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    return std::nullopt;
  }
  if (!read_bounds(call, call.args[form.at], call.args[form.at + 1], query)) return std::nullopt;
  return query;
}

}  // namespace semel::net
