// Formats one event as one line, in one of three forms.
//
//   ts=2026-01-02T03:04:05.678Z level=info event=started port=6379
//   {"ts":"2026-01-02T03:04:05.678Z","level":"info","event":"started","port":6379}
//   4711:M 02 Jan 2026 03:04:05.678 * started port=6379
//
// The third is that of redis-server, with the local time; programs that start one wait for a line
// of it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "net/resp/log_level.hpp"

namespace semel::net {

inline constexpr std::size_t log_value_bytes_max = 1024;  ///< a longer value is cut, with "..."
inline constexpr std::size_t log_fields_max = 32;         ///< further fields are omitted

enum class LogForm : std::uint8_t {
  logfmt,
  json,
  redis
};  ///< the values of log-format, in its order

/// "info" for notice, which readers of logs know; else the name of the level.
[[nodiscard]] std::string_view written_name(LogLevel level) noexcept;

/// A name of [a-z0-9_] (other characters become '_') and a value. A text that is not owned must
/// live until the call that logs it returns.
class LogField {
 public:
  using Value =
      std::variant<std::string_view, std::string, std::int64_t, std::uint64_t, double, bool>;

  LogField(std::string_view name, std::string_view text) : name_(name), value_(text) {}
  LogField(std::string_view name, const char* text) : LogField(name, std::string_view{text}) {}
  LogField(std::string_view name, double number) : name_(name), value_(number) {}
  template <std::integral Number>
  LogField(std::string_view name, Number number) : name_(name) {
    if constexpr (std::is_same_v<Number, bool>) {
      value_ = number;
    } else if constexpr (std::is_signed_v<Number>) {
      value_ = static_cast<std::int64_t>(number);
    } else {
      value_ = static_cast<std::uint64_t>(number);
    }
  }
  [[nodiscard]] static LogField owning(std::string_view name, std::string text) {
    LogField field{name, false};
    field.value_ = std::move(text);
    return field;
  }

  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] const Value& value() const noexcept { return value_; }

 private:
  std::string_view name_;
  Value value_;
};

/// The line without its time.
[[nodiscard]] std::string log_body(LogForm form, LogLevel level, std::string_view event,
                                   std::span<const LogField> fields);

/// `body` with its time, and with the count if it stands for several lines.
[[nodiscard]] std::string log_line(LogForm form, std::int64_t unix_ms, std::string_view body,
                                   std::uint64_t repeated = 1);

/// "2026-01-02T03:04:05.678Z". The time is clamped to the years 0..9999.
[[nodiscard]] std::string log_time(std::int64_t unix_ms);

}  // namespace semel::net
