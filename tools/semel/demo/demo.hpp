// `semel demo`: a story in five chapters, played by the real engine while it is told. Each figure
// is computed on the way and checked; one that is wrong makes the program exit with 1.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "semel/engine.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

/// Prints the story and remembers whether all of it was true.
class Story {
 public:
  explicit Story(bool use_colour) : use_colour_(use_colour) {}

  void chapter(const std::string& title);
  void say(const std::string& text);
  /// Says `text` and whether it holds.
  void expect(bool holds, const std::string& text);
  [[nodiscard]] bool is_true() const noexcept { return wrong_ == 0; }
  [[nodiscard]] unsigned checks() const noexcept { return checks_; }
  [[nodiscard]] unsigned wrong() const noexcept { return wrong_; }

 private:
  bool use_colour_;
  unsigned chapters_ = 0;
  unsigned checks_ = 0;
  unsigned wrong_ = 0;
};

struct ConsumeFigures {
  std::uint64_t claims = 0;
  double seconds = 0;
};

// The chapters. Each says on `story` what it does and finds.
[[nodiscard]] ConsumeFigures tell_consume_once(Story& story, Engine& engine, std::uint64_t seed);
void tell_owners(Story& story, Engine& engine, ManualClock& clock);
void tell_store(Story& story, Engine& engine, ManualClock& clock);

class DemoCommand {
 public:
  explicit DemoCommand(CLI::App& program);
  [[nodiscard]] bool is_chosen() const { return app_->parsed(); }
  [[nodiscard]] Exit run() const;

 private:
  CLI::App* app_;
  std::string seed_;
};

}  // namespace semel::tool
