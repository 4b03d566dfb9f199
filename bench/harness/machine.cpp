// Where a run took place, and the files it leaves.
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

#include "bench/harness/report.hpp"

namespace semel::bench {

namespace {

/// What follows `name :` in a file of such lines; empty if it is not there.
std::string field_of(const char* path, const std::string& name) {
  std::ifstream file{path};
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, name.size(), name) != 0) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return {};
}

}  // namespace

std::string machine_line() {
  utsname system{};
  uname(&system);
  double memory_kib = 0;
  std::sscanf(field_of("/proc/meminfo", "MemTotal").c_str(), "%lf", &memory_kib);
  const std::string model = field_of("/proc/cpuinfo", "model name");
  return text("%s, %ld cores, %.0f GiB, %s %s, %s", model.c_str(), sysconf(_SC_NPROCESSORS_ONLN),
              memory_kib / 1024 / 1024, system.sysname, system.release,
#if defined(__clang__)
              "clang " __clang_version__
#else
              "g++ " __VERSION__
#endif
  );
}

std::string date_line() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char line[64];
  std::strftime(line, sizeof(line), "%Y-%m-%d %H:%M UTC", &utc);
  return line;
}

CpuTicks cpu_ticks() {
  std::ifstream file{"/proc/stat"};
  std::string word;
  file >> word;
  CpuTicks ticks;
  double value = 0;
  // user nice system idle iowait irq softirq steal
  for (unsigned i = 0; i < 8 && file >> value; ++i) {
    ticks.all += value;
    if (i == 7) ticks.stolen = value;
  }
  return ticks;
}

bool write_file(const std::string& path, const std::string& content) {
  std::ofstream file{path, std::ios::trunc};
  file << content;
  file.flush();
  if (file) return true;
  std::fprintf(stderr, "semel_bench: %s: %s\n", path.c_str(), std::strerror(errno));
  return false;
}

bool write_between_marks(const std::string& path, const std::string& marks,
                         const std::string& content) {
  const std::string begin_mark = "<!-- " + marks + "figures: begin -->\n";
  const std::string end_mark = "<!-- " + marks + "figures: end -->";
  std::stringstream old;
  if (std::ifstream file{path}; file) old << file.rdbuf();
  const std::string page = old.str();
  const std::size_t begin = page.find(begin_mark);
  const std::size_t end = page.find(end_mark);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return write_file(path, "# Benchmark results\n\n" + (begin_mark + content) + end_mark + "\n");
  }
  const std::size_t keep = begin + begin_mark.size();
  return write_file(path, page.substr(0, keep) + "\n" + content + "\n" + page.substr(end));
}

}  // namespace semel::bench
