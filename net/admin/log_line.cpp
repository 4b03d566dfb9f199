#include "net/admin/log_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>

#include "base/ascii.hpp"
#include "net/admin/escape.hpp"

namespace semel::net {
namespace {

bool is_plain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
  });
}

/// Appends a text, with quotes if the form needs them.
void append_text(std::string& out, LogForm form, std::string_view text) {
  const std::string_view shown = cut_at_character(text, log_value_bytes_max);
  if (form != LogForm::json && shown.size() == text.size() && is_plain(text)) {
    out += text;
    return;
  }
  out += '"';
  append_escaped(out, shown);
  if (shown.size() < text.size()) out += "...";
  out += '"';
}

/// A field with the name of a fixed field gets another name.
void append_name(std::string& out, LogForm form, std::string_view name) {
  if (form == LogForm::json) out += '"';
  if (name.empty()) out += '_';
  for (const char c : name) {
    const bool is_fit = base::is_lower(c) || base::is_digit(c) || c == '_';
    out += is_fit ? c : '_';
  }
  const bool is_taken = name == "ts" || name == "level" || name == "event" || name == "repeated";
  if (is_taken) out += '_';
  out += form == LogForm::json ? "\":" : "=";
}

void append_value(std::string& out, LogForm form, const LogField::Value& value) {
  std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) {
          out += held ? "true" : "false";
        } else if constexpr (std::is_convertible_v<Held, std::string_view>) {
          append_text(out, form, held);
        } else if constexpr (std::is_same_v<Held, double>) {
          // JSON has no number for infinities and NaN.
          const std::string text = fmt::format("{}", held);
          std::isfinite(held) ? void(out += text) : append_text(out, form, text);
        } else {
          fmt::format_to(std::back_inserter(out), "{}", held);
        }
      },
      value);
}

char mark_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return '.';
    case LogLevel::verbose:
      return '-';
    case LogLevel::notice:
      return '*';
    case LogLevel::warning:
    case LogLevel::error:
      break;
  }
  return '#';
}

/// "4711:M 02 Jan 2026 03:04:05.678 ", in local time.
std::string redis_head(std::int64_t unix_ms) {
  constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  constexpr std::int64_t second_ms = 1'000;
  const std::time_t seconds = unix_ms / second_ms;
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{}:M {:02} {} {} {:02}:{:02}:{:02}.{:03} ", getpid(), local.tm_mday,
                     months[static_cast<std::size_t>(local.tm_mon) % months.size()],
                     local.tm_year + 1900, local.tm_hour, local.tm_min, local.tm_sec,
                     unix_ms % second_ms);
}

}  // namespace

std::string_view written_name(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::verbose:
      return "verbose";
    case LogLevel::notice:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

std::string log_body(LogForm form, LogLevel level, std::string_view event,
                     std::span<const LogField> fields) {
  const bool is_json = form == LogForm::json;
  std::string out;
  if (form == LogForm::redis) {
    out = {mark_of(level), ' '};
    append_escaped(out, cut_at_character(event, log_value_bytes_max));
  } else {
    out = is_json ? "\"level\":\"" : "level=";
    out += written_name(level);
    out += is_json ? "\",\"event\":" : " event=";
    append_text(out, form, event);
  }
  for (const LogField& field : fields.first(std::min(fields.size(), log_fields_max))) {
    out += is_json ? ',' : ' ';
    append_name(out, form, field.name());
    append_value(out, form, field.value());
  }
  return out;
}

std::string log_line(LogForm form, std::int64_t unix_ms, std::string_view body,
                     std::uint64_t repeated) {
  if (form == LogForm::redis) {
    std::string line = redis_head(unix_ms).append(body);
    return repeated > 1 ? fmt::format("{} repeated={}", line, repeated) : line;
  }
  const std::string time = log_time(unix_ms);
  if (form == LogForm::logfmt) {
    return repeated > 1 ? fmt::format("ts={} {} repeated={}", time, body, repeated)
                        : fmt::format("ts={} {}", time, body);
  }
  return repeated > 1 ? fmt::format(R"({{"ts":"{}",{},"repeated":{}}})", time, body, repeated)
                      : fmt::format(R"({{"ts":"{}",{}}})", time, body);
}

std::string log_time(std::int64_t unix_ms) {
  using std::chrono::days;
  using std::chrono::milliseconds;
  constexpr std::int64_t first = -62'167'219'200'000;  // 0000-01-01
  constexpr std::int64_t last = 253'402'300'799'999;   // 9999-12-31T23:59:59.999
  const milliseconds since{std::clamp(unix_ms, first, last)};
  const auto whole_days = std::chrono::floor<days>(since);
  const std::chrono::year_month_day date{std::chrono::sys_days{whole_days}};
  const auto ms = (since - milliseconds{whole_days}).count();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     ms / 3'600'000, ms / 60'000 % 60, ms / 1'000 % 60, ms % 1'000);
}

}  // namespace semel::net
