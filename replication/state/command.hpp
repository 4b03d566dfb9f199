// Commands as bytes (engine/logged/command.hpp has what they are).
#pragma once

#include <cstddef>
#include <string>

#include "engine/logged/command.hpp"
#include "replication/state/feature_level.hpp"
#include "semel/result.hpp"

namespace semel::replication {

/// How many versions a command may take, at most.
[[nodiscard]] std::size_t versions_of(const Command& command) noexcept;

/// The first level of features whose releases know it.
[[nodiscard]] FeatureLevel level_of(const Command& command) noexcept;

/// Appends the command's bytes. False: decode() would refuse them, as a value is out of its range.
[[nodiscard]] bool encode(const Command& command, std::string& to);
/// Reads a command from the front of `from`, and takes it off. It points into it. Errors:
/// bad_encoding: an unknown command, a value out of its range, or bytes that end too soon; says
/// which.
[[nodiscard]] Result<Command> decode(Bytes& from);

}  // namespace semel::replication
