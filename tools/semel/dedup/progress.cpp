#include "tools/semel/dedup/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

constexpr Millis redraw_every{200};

std::string format_clock(std::int64_t seconds) {
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace

// The first drawing comes at once after one interval: a run that is over by then needs none.
Progress::Progress(bool enabled, std::uint64_t bytes_total)
    : start_(clock_.now()),
      next_(start_ + redraw_every),
      bytes_total_(bytes_total),
      enabled_(enabled) {}

bool Progress::is_wanted() {
  return isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 0;
}

void Progress::draw(const Counts& counts) {
  const Timestamp now = clock_.now();
  if (now < next_) return;
  next_ = now + redraw_every;
  const auto seconds = static_cast<double>((now - start_).count()) / 1000;
  const auto lines = static_cast<double>(counts.lines);
  std::string text = fmt::format("{} lines", format_count(counts.lines));
  if (counts.lines > 0) {
    text +=
        fmt::format(", {:.1f} % duplicates", 100 * static_cast<double>(counts.duplicates) / lines);
  }
  text += fmt::format(", {} lines/s", format_rate(lines / seconds));
  if (bytes_total_ > 0 && counts.bytes > 0) {
    const double part =
        std::min(1.0, static_cast<double>(counts.bytes) / static_cast<double>(bytes_total_));
    text = fmt::format("{:3.0f} %  {}, ETA {}", 100 * part, text,
                       format_clock(static_cast<std::int64_t>(seconds / part - seconds + 0.5)));
  }
  // Return, text, erase to the end: no colour, so NO_COLOR has nothing to switch off here.
  std::fputs(("\r" + text + "\x1b[K").c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace semel::tool
