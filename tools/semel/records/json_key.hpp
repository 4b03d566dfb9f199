// Values out of one line of newline JSON, and their form as part of a key.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "semel/result.hpp"
#include "semel/types.hpp"
#include "tools/semel/records/key_buffer.hpp"
#include "tools/semel/records/timestamp.hpp"

namespace semel::tool {

/// True for "" (the whole document) and "/a/b"; "~" must be "~0" or "~1".
[[nodiscard]] bool is_json_pointer(Bytes text);

class JsonLine {
 public:
  /// `folds_case`: A to Z are a to z in the strings of keys, not in the names of members.
  explicit JsonLine(bool folds_case);
  ~JsonLine();
  JsonLine(const JsonLine&) = delete;
  JsonLine& operator=(const JsonLine&) = delete;

  /// Error: `line` is not one JSON value; the detail is the whole text. The line must outlive the
  /// use of this object.
  [[nodiscard]] Status parse(Bytes line);

  enum class Found : std::uint8_t { ok, missing, null, inexact };
  /// Appends the value at `pointer` so that different values, also of different types, never
  /// look the same, whatever follows: tag, length where it varies, bytes. Members of an object
  /// are sorted by name, as their order means nothing. `missing`: nothing there; `null`: null.
  /// `inexact`: a number that a double cannot hold, in a line that names a member twice.
  [[nodiscard]] Found append_key(const std::string& pointer, KeyBuffer& key) const;
  /// Appends the form of a missing value, or of null.
  static void append_missing(KeyBuffer& key);
  static void append_null(KeyBuffer& key);

  struct Time {
    std::optional<std::int64_t> unix_ms;
    std::string text;  ///< the value in the wrong format, as JSON; empty: none
  };
  [[nodiscard]] Time time(const std::string& pointer, const TimeFormat& format) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::tool
