// What a run has found: a row for each goal, tables beside them; as text, JSON, Markdown and SVG.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/contestant.hpp"

namespace semel::bench {

enum class Bound : std::uint8_t { at_least, at_most };
enum class Judged : std::uint8_t { ratio, figure };

struct Goal {
  Judged judged;  ///< the ratio ours / peer, or our figure by itself
  Bound bound;
  double limit;
  std::string unit;  ///< of the limit: "x" for a ratio
};

struct Row {
  std::string name;            ///< with the unit of both figures
  std::optional<double> ours;  ///< medians over the rounds
  std::optional<double> peer;
  std::string peer_name;
  std::optional<double> ratio;  ///< median of the ratios within each round
  Goal goal;

  [[nodiscard]] bool met() const noexcept;
  [[nodiscard]] std::string goal_text() const;
};

/// Figures of a row, one of each a round. An empty list: not measured, or not available.
struct Rounds {
  std::vector<double> ours;
  std::vector<double> peer;
};
[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] Row row_of(std::string name, const Rounds& rounds, std::string peer_name, Goal goal);

struct MapLine {
  std::string name;
  std::optional<Throughput> figures;  ///< none: not available
};
struct TailLine {
  std::string name;
  Tail tail;
};
struct Note {
  std::string label;
  std::string figure;
};

struct Report {
  std::string suite = "engine";
  std::uint64_t records = 0;
  unsigned rounds = 0;
  std::string command;
  std::string machine;
  std::string date;
  double seconds = 0;
  double steal_percent = 0;  ///< of both cores, taken away by the machine below
  bool wrong = false;        ///< a measurement found a wrong result or did not end
  std::vector<Row> rows;
  std::vector<MapLine> maps;
  std::vector<MapLine> maps_strings;
  std::vector<TailLine> tails;
  std::vector<Note> notes;
};

/// printf into a string.
[[nodiscard]] [[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);
/// Three digits or so.
[[nodiscard]] std::string figure(std::optional<double> value);

void print(const Report& report);
[[nodiscard]] std::string to_json(const Report& report);
[[nodiscard]] std::string to_markdown(const Report& report);
[[nodiscard]] std::string to_svg(const Report& report);

/// Writes `content`. False: it could not, and said so.
[[nodiscard]] bool write_file(const std::string& path, const std::string& content);
/// Puts `content` between the marks of an existing page, or writes a page of its own. `marks` is
/// what stands in them before "figures".
[[nodiscard]] bool write_between_marks(const std::string& path, const std::string& marks,
                                       const std::string& content);

/// One line: processor, cores, memory, kernel.
[[nodiscard]] std::string machine_line();
[[nodiscard]] std::string date_line();

/// Time stolen from this machine and all of its time, in ticks since boot.
struct CpuTicks {
  double stolen = 0;
  double all = 0;
};
[[nodiscard]] CpuTicks cpu_ticks();

}  // namespace semel::bench
