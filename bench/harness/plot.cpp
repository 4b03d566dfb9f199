// The picture of a run: rates of W1..W5 for each map, and tails of one claim while growing.
#include <algorithm>
#include <array>
#include <cmath>

#include "bench/harness/report.hpp"

namespace semel::bench {

namespace {

constexpr std::array<const char*, 8> colours{"#1b6ca8", "#e07a1f", "#5b9a3c", "#b03a5b",
                                             "#7d5ba6", "#8a8a8a", "#3aa6a0", "#c2a83e"};
constexpr double panel_width = 430;
constexpr double panel_height = 300;
constexpr double panel_top = 60;

struct Canvas {
  std::string out;

  void label(double x, double y, const std::string& what, const char* anchor = "middle",
             int size = 11) {
    out += text("<text x='%.1f' y='%.1f' text-anchor='%s' font-size='%d'>", x, y, anchor, size);
    for (const char c : what) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    out += "</text>\n";
  }
  void bar(double x, double width, double height, std::size_t colour) {
    out += text("<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='%s'/>\n", x,
                panel_top + panel_height - height, width, height, colours[colour % colours.size()]);
  }
  void grid(double left, double height, const std::string& what) {
    const double y = panel_top + panel_height - height;
    out += text("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#ccc'/>\n", left, y,
                left + panel_width, y);
    label(left - 5, y + 4, what, "end", 10);
  }
};

/// A round number of M/s at or above `most`.
double scale_top(double most) {
  for (const double step : {1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0}) {
    if (most <= step) return step;
  }
  return most;
}

void draw_rates(Canvas& canvas, const Report& report, double left) {
  double most = 0;
  for (const MapLine& map : report.maps) {
    if (!map.figures) continue;
    for (const double rate : map.figures->rate) most = std::max(most, rate / 1e6);
  }
  const double top = scale_top(std::max(most, 0.001));
  for (int i = 0; i <= 5; ++i) canvas.grid(left, panel_height * i / 5, figure(top * i / 5));
  canvas.label(left + panel_width / 2, panel_top - 14, "claims, M/s, 2 threads", "middle", 13);
  constexpr std::array<const char*, workload_count> names{"W1 new, growing", "W2 repeats",
                                                          "W3 90/10", "W4 zipf 0.99", "W5 cycles"};
  const double group = panel_width / workload_count;
  const double width =
      group * 0.86 / static_cast<double>(std::max<std::size_t>(report.maps.size(), 1));
  for (std::size_t work = 0; work < workload_count; ++work) {
    const double start = left + group * static_cast<double>(work) + group * 0.07;
    for (std::size_t i = 0; i < report.maps.size(); ++i) {
      if (!report.maps[i].figures) continue;
      const double height = report.maps[i].figures->rate[work] / 1e6 / top * panel_height;
      canvas.bar(start + width * static_cast<double>(i), width * 0.92, height, i);
    }
    canvas.label(start + group * 0.43, panel_top + panel_height + 16, names[work]);
  }
}

void draw_tails(Canvas& canvas, const Report& report, double left) {
  constexpr double lowest = 10;  // ns
  constexpr double decades = 9;
  const auto height_of = [&](double ns) {
    return std::clamp(std::log10(std::max(ns, lowest) / lowest) / decades, 0.0, 1.0) * panel_height;
  };
  constexpr std::array<const char*, 10> marks{"10 ns", "100 ns", "1 us",   "10 us", "100 us",
                                              "1 ms",  "10 ms",  "100 ms", "1 s",   "10 s"};
  for (std::size_t i = 0; i < marks.size(); ++i) {
    canvas.grid(left, height_of(lowest * std::pow(10, static_cast<double>(i))), marks[i]);
  }
  canvas.label(left + panel_width / 2, panel_top - 14, "one claim while growing (log scale)",
               "middle", 13);
  const double group =
      panel_width / static_cast<double>(std::max<std::size_t>(report.tails.size(), 1));
  for (std::size_t i = 0; i < report.tails.size(); ++i) {
    const Tail& tail = report.tails[i].tail;
    const std::array values{tail.p50, tail.p99, tail.p999, tail.max};
    const double start = left + group * static_cast<double>(i);
    for (std::size_t at = 0; at < values.size(); ++at) {
      canvas.bar(start + group * (0.1 + 0.2 * static_cast<double>(at)), group * 0.17,
                 height_of(values[at]), at);
    }
    canvas.out +=
        text("<text transform='translate(%.1f,%.1f) rotate(-35)' text-anchor='end' font-size='10'>",
             start + group * 0.6, panel_top + panel_height + 14);
    canvas.out += report.tails[i].name + "</text>\n";
  }
}

void draw_legend(Canvas& canvas, double left, double y, const std::vector<std::string>& names) {
  constexpr std::size_t columns = 3;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double x = left + 150 * static_cast<double>(i % columns);
    const double line = y + 16 * static_cast<double>(i / columns);
    canvas.out += text("<rect x='%.1f' y='%.1f' width='10' height='10' fill='%s'/>\n", x, line - 9,
                       colours[i % colours.size()]);
    canvas.label(x + 14, line, names[i], "start", 10);
  }
}

}  // namespace

std::string to_svg(const Report& report) {
  Canvas canvas;
  canvas.out =
      "<svg xmlns='http://www.w3.org/2000/svg' width='1040' height='540' "
      "font-family='sans-serif'>\n<rect width='1040' height='540' fill='white'/>\n";
  canvas.label(520, 22,
               text("Semel and peers, %llu records of 32-byte keys",
                    static_cast<unsigned long long>(report.records)),
               "middle", 15);
  draw_rates(canvas, report, 50);
  draw_tails(canvas, report, 570);
  std::vector<std::string> maps;
  for (const MapLine& map : report.maps) maps.push_back(map.name);
  draw_legend(canvas, 50, panel_top + panel_height + 44, maps);
  draw_legend(canvas, 570, panel_top + panel_height + 148, {"p50", "p99", "p99.9", "worst"});
  canvas.out += "</svg>\n";
  return canvas.out;
}

}  // namespace semel::bench
