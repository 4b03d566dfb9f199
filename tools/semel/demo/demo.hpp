// `semel demo`: five chapters that run on the real engine. Each figure is computed and checked; a
// wrong one makes the program exit with 1.
#pragma once

#include <cstdint>
#include <string>

#include "semel/engine.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace CLI {
class App;
}

namespace semel::tool {

/// Prints the story and remembers whether all of it was true.
class Story {
 public:
  explicit Story(bool use_colour) : use_colour_(use_colour) {}

  void chapter(const std::string& title);
  void print_line(const std::string& text);
  /// Says `text` and whether it holds.
  void expect(bool holds, const std::string& text);
  [[nodiscard]] bool is_true() const noexcept { return failed_ == 0; }
  [[nodiscard]] unsigned checks() const noexcept { return checks_; }
  [[nodiscard]] unsigned failed() const noexcept { return failed_; }

 private:
  bool use_colour_;
  unsigned chapters_ = 0;
  unsigned checks_ = 0;
  unsigned failed_ = 0;
};

struct ConsumeResult {
  std::uint64_t claims = 0;
  double seconds = 0;
};

// The chapters. Each writes what it does and finds to `story`.
[[nodiscard]] ConsumeResult show_consume_once(Story& story, Engine& engine, std::uint64_t seed);
void show_owners(Story& story, Engine& engine, ManualClock& clock);
void show_store(Story& story, Engine& engine, ManualClock& clock);

class DemoCommand {
 public:
  explicit DemoCommand(CLI::App& program);
  [[nodiscard]] bool is_chosen() const;
  [[nodiscard]] Exit run() const;

 private:
  CLI::App* app_;
  std::string seed_;
};

}  // namespace semel::tool
