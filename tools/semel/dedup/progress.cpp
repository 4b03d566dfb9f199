#include "tools/semel/dedup/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

std::string format_clock(std::int64_t seconds) {
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace

std::string Progress::text_of(const Counts& counts) const {
  const double seconds = line_.seconds();
  const auto lines = static_cast<double>(counts.lines);
  std::string text = fmt::format("{} lines", format_count(counts.lines));
  if (counts.lines > 0) {
    text +=
        fmt::format(", {:.1f} % duplicates", 100 * static_cast<double>(counts.duplicates) / lines);
  }
  text += fmt::format(", {} lines/s", format_rate(lines / seconds));
  if (bytes_total_ == 0 || counts.bytes == 0) return text;
  const double part =
      std::min(1.0, static_cast<double>(counts.bytes) / static_cast<double>(bytes_total_));
  return fmt::format("{:3.0f} %  {}, ETA {}", 100 * part, text,
                     format_clock(static_cast<std::int64_t>(seconds / part - seconds + 0.5)));
}

}  // namespace semel::tool
