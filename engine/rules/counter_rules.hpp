// The rows of the store's truth table for numbers that are kept in strings. What holds for all rows
// is in string_rules.hpp, whose decide() is the only caller. How numbers are read and written is in
// numbers.hpp.
//
//   no record                           -> counts from 0
//   the text is not a number            -> not_an_integer, not_a_float
//   incr_by decr_by incr_by_float       -> the record keeps its end; a sum that does not fit is
//                                          increment_overflow, nan_or_infinity
//   increx                              -> a sum outside the bounds is refused without an error, or
//                                          becomes the bound
#pragma once

#include <cstddef>
#include <string>

#include "engine/rules/record.hpp"
#include "semel/op.hpp"

namespace semel::engine {

/// INCRBY and DECRBY.
[[nodiscard]] Decision decide_incr_by(const RecordView* live, const StoreOp& op,
                                      std::size_t value_bytes_max, StoreOutcome& outcome,
                                      std::string& scratch);

/// INCRBYFLOAT.
[[nodiscard]] Decision decide_incr_by_float(const RecordView* live, const StoreOp& op,
                                            std::size_t value_bytes_max, StoreOutcome& outcome,
                                            std::string& scratch);

/// INCREX: a counter with bounds and an end.
[[nodiscard]] Decision decide_increx(const RecordView* live, const StoreOp& op, Timestamp now,
                                     std::size_t value_bytes_max, StoreOutcome& outcome,
                                     std::string& scratch);

}  // namespace semel::engine
