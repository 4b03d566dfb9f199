// From a line to its key and its time.
//
// Keys are unambiguous: fields split by white space hold no blank and are joined by one; fields
// split by a delimiter are joined by it; a whole record of CSV has one form (csv.hpp); JSON values
// carry type and length (json_key.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "semel/limits.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"
#include "tools/semel/records/json_key.hpp"
#include "tools/semel/records/timestamp.hpp"

namespace semel::tool {

inline constexpr unsigned field_max = 10'000;
inline constexpr std::size_t key_parts_max = 256;
inline constexpr std::size_t line_max_default = std::size_t{1} << 20;
inline constexpr std::size_t line_max_least = std::size_t{1} << 10;
inline constexpr std::size_t line_max_most = std::size_t{64} << 20;

/// The parts of a line that are compared.
struct LineRule {
  std::vector<unsigned> key_fields;       ///< 1-based
  std::vector<std::string> key_pointers;  ///< JSON; with key_fields empty too: the whole line
  std::optional<char> delimiter;          ///< none: blanks and tabs, runs of them count once
  bool is_table = false;  ///< records of fields: an empty line is none, a '\r' ends the last one
  bool is_csv = false;    ///< records with quotes (csv.hpp); the delimiter is then one byte
  bool takes_quotes = false;  ///< split at a delimiter: quotes are bytes like others
  bool has_header = false;    ///< fields: the first record of each input names them
  bool folds_case = false;    ///< A to Z are a to z in keys; other bytes stay as they are
  char terminator = '\n';     ///< of a line: a newline or a NUL byte
  /// Fields by the names that the first record gives them, from resolve() on numbers.
  std::vector<std::string> key_names;
  std::string time_name;
  std::optional<TimeFormat> time_format;  ///< none: no time is read
  unsigned time_field = 0;                ///< 0: time_pointer
  std::optional<std::string> time_pointer;
  bool missing_is_key = false;  ///< a missing part of a key is empty, a missing time is "now"
  std::size_t key_bytes_max = limits::key_bytes_max;
  const char* key_limit_name = "";  ///< where that comes from, for the text of errors
};

/// The size of the record at the beginning of `text`; 0: it does not end in it.
[[nodiscard]] std::size_t record_size(const LineRule& rule, Bytes text) noexcept;
/// The same for an input's first record, which a byte order mark may precede.
[[nodiscard]] std::size_t first_record_size(const LineRule& rule, Bytes text) noexcept;

/// "1,7": 1-based field numbers. Errors: bad_option.
[[nodiscard]] Result<std::vector<unsigned>> parse_fields(Bytes text);

/// Why a line has no key or no time. An enum and not a Result: every line returns one, and under
/// --missing pass an error is an expected answer, and its text is not used.
enum class LineError : std::uint8_t {
  none,
  missing_key,
  missing_time,
  bad_time,
  bad_json,
  key_too_long,
  key_inexact,
  bad_csv,
  quoted_field,
  blank,  ///< an empty line in a table: passed on and not remembered, whatever --missing says
};

struct ParsedLine {
  Bytes key;  ///< in the line, in the buffer, or static; 1..LineRule::key_bytes_max bytes
  std::optional<std::int64_t> unix_ms;
};

class LineParser {
 public:
  explicit LineParser(LineRule rule);

  /// Reads `line` (without newline). Keys that are put together are written to `buffer`, which
  /// has LineRule::key_bytes_max bytes; the caller moves on by `parsed.key.size()` if the key
  /// begins there.
  LineError parse(Bytes line, char* buffer, ParsedLine& parsed) {
    if (whole_line_) {
      parsed.key = line.empty() ? empty_key() : line;
      return line.size() <= rule_.key_bytes_max ? LineError::none
                                                : too_long("the line", line.size());
    }
    return parse_parts(line, buffer, parsed);
  }

  /// Whether `--missing pass` writes a line with this error. A quoted field is not a missing key:
  /// the options do not fit the input.
  [[nodiscard]] static bool can_pass(LineError error) noexcept {
    return error != LineError::quoted_field;
  }
  [[nodiscard]] const LineRule& rule() const noexcept { return rule_; }
  /// Finds the named fields in the first record of an input. The detail of an error is its whole
  /// text.
  [[nodiscard]] Status resolve(Bytes header);
  /// The text of the error of the last line; names the value and the limit.
  [[nodiscard]] const std::string& explanation() const noexcept { return explanation_; }

 private:
  // No line contains its terminator, so it can stand for the empty line, which has no bytes to be a
  // key.
  [[nodiscard]] Bytes empty_key() const noexcept { return {&rule_.terminator, 1}; }

  LineError parse_parts(Bytes line, char* buffer, ParsedLine& parsed);
  [[nodiscard]] LineError split(Bytes line);
  void prepare();
  LineError bad_csv();
  LineError read_key_fields(char* buffer, ParsedLine& parsed);
  LineError read_key_json(char* buffer, ParsedLine& parsed);
  LineError read_record(Bytes line, char* buffer, ParsedLine& parsed);
  LineError read_time_field(Bytes line, ParsedLine& parsed);
  LineError read_time_json(ParsedLine& parsed);
  LineError too_long(const char* what, std::size_t size);
  LineError missing_field(LineError error, unsigned field);
  [[nodiscard]] std::string separator_hint() const;
  LineError finish_key(const KeyBuffer& key, ParsedLine& parsed);
  LineError use_alone(const char* what, Bytes text, char* buffer, ParsedLine& parsed);

  LineRule rule_;
  bool whole_line_;
  std::vector<Bytes> fields_;  ///< of the current line, as far as they are needed
  std::size_t fields_needed_ = 0;
  std::deque<std::string> unquoted_;
  std::string field_;
  std::unique_ptr<JsonLine> json_;
  std::string explanation_;
};

}  // namespace semel::tool
