// Reads a point in time out of a line. Goal: the four forms logs really have, fast and without
// allocation; anything else through a strptime pattern. Non-goal: local time zones; a time that
// names no zone is UTC, so the same input gives the same answer on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::tool {

class TimeFormat {
 public:
  /// unix, unix_ms, iso8601, apache, or a strptime pattern (has a '%'). Errors: bad_option.
  [[nodiscard]] static Result<TimeFormat> parse(Bytes name);

  struct Reading {
    std::int64_t unix_ms = 0;
    std::size_t size = 0;  ///< bytes of the text that made the time
  };
  /// Reads the time at the beginning of `text`; the caller judges the rest. None: `text` does not
  /// begin with a time of this format between the years 0 and 9999.
  [[nodiscard]] std::optional<Reading> read(Bytes text) const;

  /// A time that came as a number (JSON): seconds for unix, milliseconds for unix_ms; the other
  /// formats are texts.
  [[nodiscard]] std::optional<std::int64_t> from_integer(std::int64_t number) const;
  [[nodiscard]] std::optional<std::int64_t> from_double(double number) const;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  enum class Form : std::uint8_t { unix_seconds, unix_ms, iso8601, apache, pattern };
  TimeFormat(Form form, Bytes name) : form_(form), name_(name) {}
  [[nodiscard]] std::optional<Reading> read_pattern(Bytes text) const;

  Form form_;
  std::string name_;  ///< of a pattern: the pattern
};

}  // namespace semel::tool
