#include "tools/semel/shared/progress_line.hpp"

#include <unistd.h>

#include "tools/semel/shared/output.hpp"

namespace semel::tool {
namespace {

constexpr Millis redraw_every{200};

bool is_shown_beside(ProgressLine::Output output) {
  if (isatty(STDERR_FILENO) != 1) return false;
  return output == ProgressLine::Output::report || isatty(STDOUT_FILENO) == 0;
}

}  // namespace

// The first drawing comes after one interval: a command that is over by then needs none.
ProgressLine::ProgressLine(Output output, bool quiet)
    : start_(clock_.now()),
      next_(start_ + redraw_every),
      is_shown_(!quiet && is_shown_beside(output)) {}

ProgressLine::~ProgressLine() {
  clear();
}

double ProgressLine::seconds() const {
  return static_cast<double>(elapsed().count()) / 1000;
}

void ProgressLine::draw(const std::string& text) {
  next_ = clock_.now() + redraw_every;
  // Return, text, erase to the end: no colour, so NO_COLOR has nothing to switch off here.
  write_error("\r" + text + "\x1b[K");
  is_drawn_ = was_drawn_ = true;
}

void ProgressLine::clear() {
  if (!is_drawn_) return;
  write_error("\r\x1b[K");
  is_drawn_ = false;
}

void ProgressLine::finish(const std::string& text) {
  clear();
  if (is_shown_) write_error(text + "\n");
}

}  // namespace semel::tool
