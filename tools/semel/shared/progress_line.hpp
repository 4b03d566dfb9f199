// One line on the terminal that is drawn again and again while a command works.
#pragma once

#include <string>

#include "semel/clock.hpp"

namespace semel::tool {

/// Draws on standard error. For one thread at a time.
class ProgressLine {
 public:
  /// Where standard output goes. Lines of data on the same terminal would tear the progress line.
  enum class Output { data, report };

  /// Is shown if standard error is a terminal and `output` does not put data on a terminal.
  /// `quiet`: never.
  explicit ProgressLine(Output output, bool quiet = false);
  /// Takes the line off the terminal.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Draws `text()` if enough time has passed.
  template <class Text>
  void show(const Text& text) {
    if (is_due()) draw(text());
  }
  /// Takes the line off the terminal, before anything else is written there.
  void clear();
  /// The same, and writes the last line, if the line is shown at all.
  void finish(const std::string& text);

  /// Since construction.
  [[nodiscard]] Millis elapsed() const { return clock_.now() - start_; }
  [[nodiscard]] double seconds() const;
  /// Whether anything was drawn: the command took longer than an instant.
  [[nodiscard]] bool was_drawn() const noexcept { return was_drawn_; }

 private:
  [[nodiscard]] bool is_due() const { return is_shown_ && clock_.now() >= next_; }
  void draw(const std::string& text);

  SystemClock clock_;
  Timestamp start_;
  Timestamp next_;
  bool is_shown_;
  bool is_drawn_ = false;
  bool was_drawn_ = false;
};

}  // namespace semel::tool
