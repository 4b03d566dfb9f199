// semel_bench: runs a suite of benchmarks, prints a row for each goal and leaves files if asked.
//
// Exit code: 0 the results were right, whatever the figures; 1 a result was wrong, a measurement
// did not end or a file could not be written; other values: the command line was not understood, or
// it cannot be measured there.
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/stopwatch.hpp"
#include "bench/engine/suite_engine.hpp"
#include "bench/harness/report.hpp"
#ifdef SEMEL_BENCH_STORAGE
#include "bench/engine/suite_patterns.hpp"
#include "bench/storage/suite_storage.hpp"
#include "bench/storage/suite_tiered.hpp"
#endif

namespace semel::bench {

namespace {

struct CommandLine {
  std::string suite = "engine";
  bool quick = false;
  std::uint64_t records = 0;
  unsigned rounds = 0;
  std::string only;
  std::string directory;
  std::string json;
  std::string svg;
  std::string markdown;
};

/// A suite, by the name that it has on the command line.
struct Suite {
  const char* name;
  unsigned rounds;  ///< unless --rounds or --quick is given
  std::vector<std::string> (*groups)();
  bool (*run)(const SuiteOptions&, Report&);
};
const std::vector<Suite>& suites() {
  static const std::vector<Suite> all{
      {"engine", 3, engine_groups,
       [](const SuiteOptions& options, Report& report) {
         run_engine_suite(options, report);
         return true;
       }},
#ifdef SEMEL_BENCH_STORAGE
      {"storage", 5, storage_groups, run_storage_suite},
      {"patterns", 5, pattern_groups, run_pattern_suite},
      {"tiered", 1, [] { return std::vector<std::string>{}; },
       [](const SuiteOptions& options, Report& report) {
         run_tiered_suite(options, report);
         return true;
       }},
#endif
  };
  return all;
}
const Suite& suite_of(const CommandLine& line) {
  const auto found = std::find_if(suites().begin(), suites().end(),
                                  [&](const Suite& suite) { return line.suite == suite.name; });
  return found == suites().end() ? suites().front() : *found;
}

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const Suite& suite : suites()) names.emplace_back(suite.name);
  return names;
}

/// What the parts of the command line do not say about each other. Empty: nothing is wrong.
std::string why_not(const CommandLine& line) {
  const std::vector<std::string> groups = suite_of(line).groups();
  if (!line.only.empty() && std::find(groups.begin(), groups.end(), line.only) == groups.end()) {
    std::string why = "--only: " + line.only + " is no group of " + line.suite + ", which has";
    for (const std::string& group : groups) why += ' ' + group;
    return why;
  }
  if (line.suite != "engine" && !line.svg.empty()) return "--svg: there is a plot of engine only";
  if (line.suite != "storage" && !line.directory.empty()) return "--dir: of storage only";
  return {};
}

/// Huge pages for the peers' allocators too. They read these once, before main: start again.
void ask_for_huge_pages(char** argv) {
  constexpr const char* wanted = "glibc.malloc.hugetlb=1";
  const char* const old = getenv("GLIBC_TUNABLES");
  const bool has_glibc = old != nullptr && std::strstr(old, "glibc.malloc.hugetlb=") != nullptr;
  const bool has_tbb = getenv("TBB_MALLOC_USE_HUGE_PAGES") != nullptr;
  if (has_glibc && has_tbb) return;
  if (!has_glibc) {
    const std::string value = old == nullptr ? wanted : std::string{old} + ':' + wanted;
    setenv("GLIBC_TUNABLES", value.c_str(), 1);
  }
  setenv("TBB_MALLOC_USE_HUGE_PAGES", "1", 1);
  execv("/proc/self/exe", argv);
  std::fprintf(stderr, "semel_bench: cannot start again with huge pages: %s\n",
               std::strerror(errno));
}

/// The words after the program's name, behind the door's. Files without their folders: where
/// they are kept does not affect a result.
std::string command_of(int argc, char** argv) {
  std::string command = "tools/bench";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_path = !word.empty() && word.front() == '/';
    command += ' ' + (is_path ? word.substr(word.rfind('/') + 1) : word);
  }
  return command;
}

bool write_files(const CommandLine& line, const Report& report) {
  bool written = true;
  if (!line.json.empty()) written = write_file(line.json, to_json(report)) && written;
  if (!line.svg.empty()) written = write_file(line.svg, to_svg(report)) && written;
  if (!line.markdown.empty()) {
    // The first suite has the page to itself, and marks without a name.
    const std::string marks = report.suite == "engine" ? "" : report.suite + ' ';
    written = write_between_marks(line.markdown, marks, to_markdown(report)) && written;
  }
  return written;
}

std::string directory_of(const CommandLine& line) {
  const char* const temporary = getenv("TMPDIR");
  if (!line.directory.empty()) return line.directory;
  return temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
}

int run(const CommandLine& line, const std::string& command) {
  const SuiteOptions options{.records = line.records != 0 ? line.records
                                        : line.quick      ? 1'000'000u
                                                          : 10'000'000u,
                             .rounds = line.rounds != 0 ? line.rounds
                                       : line.quick     ? 1u
                                                        : suite_of(line).rounds,
                             .only = line.only,
                             .quick = line.quick,
                             .directory = directory_of(line)};
  Report report;
  report.suite = line.suite;
  report.records = options.records;
  report.rounds = options.rounds;
  report.command = command;
  report.machine = machine_line();
  report.date = date_line();
  const CpuTicks before = cpu_ticks();
  const base::Stopwatch stopwatch;
  if (!suite_of(line).run(options, report)) return 2;
  report.seconds = stopwatch.seconds();
  const CpuTicks after = cpu_ticks();
  if (after.all > before.all) {
    report.steal_percent = 100 * (after.stolen - before.stolen) / (after.all - before.all);
  }
  print(report);
  const bool written = write_files(line, report);
  if (report.wrong) std::printf("A measurement found a wrong result or did not end.\n");
  return written && !report.wrong ? 0 : 1;
}

}  // namespace

}  // namespace semel::bench

int main(int argc, char** argv) {
  using namespace semel::bench;
  CommandLine line;
  CLI::App app{"Benchmarks of Semel beside what packages give", "semel_bench"};
  app.add_option("suite", line.suite, "What to run (default engine)")
      ->check(CLI::IsMember(suite_names()));
  app.add_flag("--quick", line.quick, "1 million records, one round: results, not figures");
  app.add_option("--records", line.records, "Records of W1, or to recover (default 10,000,000)")
      ->check(CLI::Range(1'000, 200'000'000));
  app.add_option("--rounds", line.rounds, "Rounds, medians are shown (default engine 3, storage 5)")
      ->check(CLI::Range(1, 100));
  app.add_option("--only", line.only, "One group of rows");
  app.add_option("--dir", line.directory, "Where storage works, on a disk (default TMPDIR, /tmp)");
  app.add_option("--json", line.json, "Write the rows to FILE as JSON");
  app.add_option("--svg", line.svg, "Write a plot to FILE");
  app.add_option("--markdown", line.markdown, "Write the figures into FILE, between its marks");
  CLI11_PARSE(app, argc, argv);
  if (const std::string why = why_not(line); !why.empty()) {
    std::fprintf(stderr, "semel_bench: %s\n", why.c_str());
    return 2;
  }
  ask_for_huge_pages(argv);
  return run(line, command_of(argc, argv));
}
