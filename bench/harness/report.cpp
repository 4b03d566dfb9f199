#include "bench/harness/report.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace semel::bench {

namespace {

constexpr std::array<const char*, workload_count> workload_names{"W1", "W2", "W3", "W4", "W5"};

std::string json_text(const std::string& plain) {
  std::string out = "\"";
  for (const char c : plain) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string json_number(std::optional<double> value) {
  return value ? text("%.6g", *value) : "null";
}

std::string rates_line(const MapLine& map, const char* separator, std::size_t count) {
  if (!map.figures) return map.name + separator + "not available";
  std::string line = map.name;
  for (std::size_t i = 0; i < count; ++i) {
    const double rate = map.figures->rate[i];
    line += separator + (rate > 0 ? figure(rate / 1e6) : "-");
  }
  return line + separator +
         text("%.0f (%.0f)", map.figures->bytes_per_record, map.figures->bytes_per_record_peak);
}

void markdown_maps(std::string& page, const std::vector<MapLine>& maps, std::size_t count) {
  page += "| map |";
  for (std::size_t i = 0; i < count; ++i) page += text(" %s |", workload_names[i]);
  page += " bytes a record (peak) |\n|---|";
  for (std::size_t i = 0; i < count; ++i) page += "---|";
  page += "---|\n";
  for (const MapLine& map : maps) page += "| " + rates_line(map, " | ", count) + " |\n";
}

std::string markdown_lost(const Report& report) {
  std::string page;
  for (const Row& row : report.rows) {
    if (row.met()) continue;
    const bool by_ratio = row.goal.judged == Judged::ratio;
    page += "- " + row.name + ": " + figure(by_ratio ? row.ratio : row.ours) +
            (by_ratio ? "x" : " " + row.goal.unit) + ", goal " + row.goal_text() + "\n";
  }
  return page.empty() ? "None.\n" : page;
}

}  // namespace

std::string text(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char buffer[512];
  const int length = std::vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  return {buffer, static_cast<std::size_t>(std::clamp(length, 0, int{sizeof(buffer)} - 1))};
}

std::string figure(std::optional<double> value) {
  if (!value) return "-";
  const double size = std::abs(*value);
  return text(size >= 100 ? "%.0f" : size >= 10 ? "%.1f" : size >= 0.1 ? "%.2f" : "%.4f", *value);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Row row_of(std::string name, const Rounds& rounds, std::string peer_name, Goal goal) {
  Row row{.name = std::move(name),
          .ours = std::nullopt,
          .peer = std::nullopt,
          .peer_name = std::move(peer_name),
          .ratio = std::nullopt,
          .goal = std::move(goal)};
  if (!rounds.ours.empty()) row.ours = median(rounds.ours);
  if (!rounds.peer.empty()) row.peer = median(rounds.peer);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(rounds.ours.size(), rounds.peer.size()); ++i) {
    if (rounds.peer[i] > 0) ratios.push_back(rounds.ours[i] / rounds.peer[i]);
  }
  if (!ratios.empty()) row.ratio = median(ratios);
  return row;
}

bool Row::met() const noexcept {
  const std::optional<double>& value = goal.judged == Judged::ratio ? ratio : ours;
  if (!value) return false;
  return goal.bound == Bound::at_least ? *value >= goal.limit : *value <= goal.limit;
}

std::string Row::goal_text() const {
  return std::string{goal.bound == Bound::at_least ? ">= " : "<= "} + text("%g", goal.limit) +
         (goal.unit == "x" ? "" : " ") + goal.unit;
}

void print(const Report& report) {
  std::printf("\n%-64s %9s %9s  %-28s %7s  %-12s %s\n", "name", "ours", "peer", "peer_name",
              "ratio", "goal", "met");
  for (const Row& row : report.rows) {
    std::printf("%-64s %9s %9s  %-28s %7s  %-12s %s\n", row.name.c_str(), figure(row.ours).c_str(),
                figure(row.peer).c_str(), row.peer_name.c_str(), figure(row.ratio).c_str(),
                row.goal_text().c_str(), row.met() ? "met" : "NOT met");
  }
  const auto print_maps = [](const char* title, const std::vector<MapLine>& maps,
                             std::size_t count) {
    if (maps.empty()) return;
    std::printf("\n%s\n", title);
    for (const MapLine& map : maps) std::printf("  %s\n", rates_line(map, "  ", count).c_str());
  };
  print_maps("M/s of W1 W2 W3 W4 W5, 2 threads, 32-byte keys in place; bytes a record (peak)",
             report.maps, workload_count);
  print_maps("M/s of W1 W2, 2 threads, keys of any length; bytes a record (peak)",
             report.maps_strings, 2);
  if (!report.tails.empty()) std::printf("\nns of one claim: p50 p99 p99.9 worst\n");
  for (const TailLine& line : report.tails) {
    std::printf("  %-46s %8.0f %8.0f %9.0f %12.0f\n", line.name.c_str(), line.tail.p50,
                line.tail.p99, line.tail.p999, line.tail.max);
  }
  if (!report.notes.empty()) std::printf("\n");
  for (const Note& note : report.notes) {
    std::printf("  %-56s %s\n", note.label.c_str(), note.figure.c_str());
  }
  std::printf("\n%s\n%llu records, %u round%s, %.0f s, %.1f %% of the processors stolen\n",
              report.machine.c_str(), static_cast<unsigned long long>(report.records),
              report.rounds, report.rounds == 1 ? "" : "s", report.seconds, report.steal_percent);
}

std::string to_json(const Report& report) {
  std::string out = "[\n";
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const Row& row = report.rows[i];
    out += "  {\"name\": " + json_text(row.name) + ", \"ours\": " + json_number(row.ours) +
           ", \"peer\": " + json_number(row.peer) + ", \"peer_name\": " + json_text(row.peer_name) +
           ", \"ratio\": " + json_number(row.ratio) + ", \"goal\": " + json_text(row.goal_text()) +
           ", \"met\": " + (row.met() ? "true" : "false") + "}" +
           (i + 1 < report.rows.size() ? ",\n" : "\n");
  }
  return out + "]\n";
}

std::string to_markdown(const Report& report) {
  // A suite beside the first has a section of the page, not the page.
  const std::string heading = report.suite == "engine" ? "## " : "### ";
  std::string page = heading + "Run\n\n";
  page += "- Machine: " + report.machine + "\n- Command: `" + report.command +
          "`\n- Date: " + report.date + "\n";
  page += text(
      "- Size: %llu records, medians of %u round%s, %.0f s; %.1f %% of the processors' time "
      "was stolen by the machine below\n\n",
      static_cast<unsigned long long>(report.records), report.rounds, report.rounds == 1 ? "" : "s",
      report.seconds, report.steal_percent);
  if (report.wrong) page += "**A measurement found a wrong result: the run does not count.**\n\n";
  page += heading + "Goals\n\n| name | ours | peer | peer's name | ratio | goal | met |\n";
  page += "|---|---|---|---|---|---|---|\n";
  for (const Row& row : report.rows) {
    page += "| " + row.name + " | " + figure(row.ours) + " | " + figure(row.peer) + " | " +
            row.peer_name + " | " + figure(row.ratio) + " | " + row.goal_text() + " | " +
            (row.met() ? "met" : "**NOT met**") + " |\n";
  }
  page += "\n" + heading + "Lost\n\n" + markdown_lost(report);
  if (!report.maps.empty()) {
    page += "\n" + heading + "Every map, 32-byte keys in place\n\nM/s, 2 threads.\n\n";
    markdown_maps(page, report.maps, workload_count);
  }
  if (!report.maps_strings.empty()) {
    page += "\n" + heading +
            "Keys of any length\n\nM/s, 2 threads; `std::string` keys in the peers.\n\n";
    markdown_maps(page, report.maps_strings, 2);
  }
  if (!report.tails.empty()) {
    page += "\n" + heading + "Tails\n\nNanoseconds of one claim.\n\n";
    page += "| what | p50 | p99 | p99.9 | worst |\n";
    page += "|---|---|---|---|---|\n";
  }
  for (const TailLine& line : report.tails) {
    page += "| " + line.name +
            text(" | %.0f | %.0f | %.0f | %.0f |\n", line.tail.p50, line.tail.p99, line.tail.p999,
                 line.tail.max);
  }
  if (!report.notes.empty()) {
    page += "\n" + heading + "Beside the goals\n\n| what | figure |\n|---|---|\n";
  }
  for (const Note& note : report.notes) page += "| " + note.label + " | " + note.figure + " |\n";
  return page;
}

}  // namespace semel::bench
