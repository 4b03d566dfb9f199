// Scores and the bounds of ranges, as clients write them and as replies show them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/types/sorted_set.hpp"
#include "net/resp/resp_writer.hpp"

namespace semel::net {

/// What strtod reads in the C locale, all of it, without a blank in front; no NaN, nothing that
/// overflows or vanishes to zero.
[[nodiscard]] std::optional<double> score_of(std::string_view text);

/// "1", "(1", "-inf". As redis-server reads bounds, up to a zero byte: nothing at all is 0, blanks
/// in front are skipped, and what overflows is infinite.
[[nodiscard]] std::optional<engine::ScoreRange> score_range_of(std::string_view min,
                                                               std::string_view max);
/// "[a", "(a", "-", "+". Points into the texts.
[[nodiscard]] std::optional<engine::LexRange> lex_range_of(std::string_view min,
                                                           std::string_view max);

/// Up to 17 digits, as printf's %.17g has them: 3, 0.10000000000000001, 1e+17, inf, -0.
[[nodiscard]] std::string text_of_score(double score);
/// As ZSCAN shows a score of a listpack, which keeps whole numbers up to 2^62 as integers.
[[nodiscard]] std::string packed_text_of_score(double score);

/// A double, or, in RESP2, a bulk.
void write_score(RespWriter& reply, double score);

}  // namespace semel::net
