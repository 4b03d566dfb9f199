#include "tools/semel/demo/demo.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "semel/engine_host.hpp"
#include "semel/version.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

constexpr std::size_t stream_memory_bytes = std::size_t{512} << 20;
constexpr std::size_t story_memory_bytes = std::size_t{128} << 20;

bool wants_colour() {
  const char* const no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void expect_sound(Story& story, const char* name, Engine& engine) {
  engine.host().quiesce();
  const std::vector<std::string> broken = engine.host().check_invariants();
  story.expect(broken.empty(),
               fmt::format("{}: every record, slot and timer of the table is accounted for{}", name,
                           broken.empty() ? "" : "; broken: " + broken.front()));
}

}  // namespace

void Story::chapter(const std::string& title) {
  ++chapters_;
  print(fmt::format("\n{}{}. {}{}\n", use_colour_ ? "\x1b[1m" : "", chapters_, title,
                    use_colour_ ? "\x1b[0m" : ""));
}

void Story::print_line(const std::string& text) {
  print(fmt::format("   {}\n", text));
}

void Story::expect(bool holds, const std::string& text) {
  ++checks_;
  if (!holds) ++failed_;
  const char* const colour = !use_colour_ ? "" : holds ? "\x1b[32m" : "\x1b[31m";
  print(fmt::format("   {}{}{} {}\n", colour, holds ? "ok   " : "WRONG",
                    use_colour_ ? "\x1b[0m" : "", text));
}

DemoCommand::DemoCommand(CLI::App& program)
    : app_(program.add_subcommand("demo", "Play a short story that shows what Semel does")) {
  app_->add_option("--seed", seed_, "Seed of the generated messages; default: random, printed")
      ->type_name("N");
  app_->footer(
      "Five chapters on the real engine, a few seconds in all: a stream of payments with repeats\n"
      "consumed once, an owner that dies and is taken over, a stale owner that is refused, a "
      "result\n"
      "that is replayed, and SET NX GET PX with expiry. Each figure is checked as it is found.\n"
      "\n"
      "Exit codes: 0 all figures are right, 1 a wrong figure or cannot write the story, 2 usage,\n"
      "4 not enough memory.");
}

bool DemoCommand::is_chosen() const {
  return app_->parsed();
}

Exit DemoCommand::run() const {
  std::uint64_t seed = std::random_device{}();
  if (app_->count("--seed") > 0) {
    const char* const end = seed_.data() + seed_.size();
    const auto parsed = std::from_chars(seed_.data(), end, seed);
    if (parsed.ec != std::errc{} || parsed.ptr != end) {
      print_error("semel demo: --seed: '{}' is not a number from 0 to {}\n", seed_, UINT64_MAX);
      return Exit::usage;
    }
  }
  Options stream_options;
  stream_options.memory_bytes = stream_memory_bytes;
  ManualClock clock;
  Options story_options;
  story_options.memory_bytes = story_memory_bytes;
  story_options.clock = &clock;
  Result<std::unique_ptr<Engine>> stream_engine = Engine::open(stream_options);
  Result<std::unique_ptr<Engine>> story_engine = Engine::open(story_options);
  for (const auto* engine : {&stream_engine, &story_engine}) {
    if (*engine) continue;
    print_error("semel demo: {}\n", engine->error().message());
    return Exit::memory;
  }

  Story story{wants_colour()};
  print(fmt::format("Semel {}: the same work, once. Everything below happens now (seed {}).\n",
                    version, seed));
  const ConsumeResult result = show_consume_once(story, **stream_engine, seed);
  show_owners(story, **story_engine, clock);
  show_store(story, **story_engine, clock);

  story.chapter("The books");
  expect_sound(story, "stream engine", **stream_engine);
  expect_sound(story, "story engine", **story_engine);
  const Stats stats = (*stream_engine)->stats();
  story.print_line(fmt::format("{} claims/s, {} records, {} held of a limit of {}",
                               format_rate(static_cast<double>(result.claims) / result.seconds),
                               format_count(stats.records), format_bytes(stats.bytes_used),
                               format_bytes(stats.bytes_limit)));
  print(story.is_true()
            ? fmt::format("\nAll {} checks hold.\n", story.checks())
            : fmt::format("\n{} of {} checks are WRONG.\n", story.failed(), story.checks()));
  if (std::ferror(stdout) != 0) {
    print_error("semel demo: cannot write standard output\n");
    return Exit::file;
  }
  return story.is_true() ? Exit::ok : Exit::file;
}

}  // namespace semel::tool
