// Answers as bytes, and which of them are one replica's affair (engine/logged/answer.hpp has what
// they are).
#pragma once

#include <optional>
#include <string>

#include "engine/logged/answer.hpp"
#include "semel/result.hpp"

namespace semel::replication {

/// Why this replica alone could not carry out an entry: its memory, its disk, its process. None:
/// every replica answers the same.
[[nodiscard]] std::optional<ErrorCode> local_error(const Answer& answer) noexcept;

/// Appends bytes that are equal if and only if the answers are.
void encode(const Answer& answer, std::string& to);
/// Reads what encode() wrote, all of `from`. Errors: bad_encoding.
[[nodiscard]] Result<Answer> decode_answer(Bytes from);

}  // namespace semel::replication
