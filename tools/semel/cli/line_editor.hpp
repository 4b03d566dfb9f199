// Lines that somebody types: with a history and completion if it is a terminal and libedit is
// installed, plain otherwise.
#pragma once

#include <optional>
#include <string>

namespace semel::tool {

/// Of one thread; one object at a time.
class LineEditor {
 public:
  /// `complete_with`: the words that the first word of a line is completed to, small letters, in
  /// their order, separated by blanks.
  explicit LineEditor(std::string complete_with);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// The next line, without its end. None: the input has ended. The prompt is printed at a
  /// terminal. Blocks.
  [[nodiscard]] std::optional<std::string> read(const std::string& prompt);
  /// Lines are kept in the history until the program ends; no file has them.
  void remember(const std::string& line);
  [[nodiscard]] bool is_interactive() const noexcept { return is_interactive_; }

 private:
  struct Library;
  const bool is_interactive_;
  const Library* library_ = nullptr;
};

}  // namespace semel::tool
