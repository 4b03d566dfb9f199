#include "net/stats/process_facts.hpp"

#include <fstream>
#include <sstream>
#include <tuple>
#include <utility>

namespace semel::net {
namespace {

std::string line_of(const char* path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line;
}

/// The figure of a line "Name:   123 kB", in bytes.
std::uint64_t kilobytes_of(const char* path, const std::string& name) {
  std::ifstream file{path};
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(name + ":")) continue;
    std::istringstream rest{line.substr(name.size() + 1)};
    std::uint64_t kilobytes = 0;
    rest >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

constexpr const char* architecture() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

/// User and system seconds in the line of a stat file. It is "id (name) state ...": the name may
/// have blanks; behind it, user time is the 12th field.
std::pair<double, double> times_in(const std::string& stat) {
  const std::size_t behind_name = stat.rfind(')');
  if (behind_name == std::string::npos) return {};
  std::istringstream rest{stat.substr(behind_name + 1)};
  constexpr int fields_before = 11;
  constexpr double ticks_per_second = 100;  // fixed by the kernel's interface
  std::string skipped;
  for (int i = 0; i < fields_before; ++i) rest >> skipped;
  double user = 0;
  double system = 0;
  rest >> user >> system;
  return {user / ticks_per_second, system / ticks_per_second};
}

}  // namespace

ProcessFacts process_facts() {
  ProcessFacts facts;
  facts.system = line_of("/proc/sys/kernel/ostype") + " " + line_of("/proc/sys/kernel/osrelease") +
                 " " + architecture();
  facts.resident_bytes = kilobytes_of("/proc/self/status", "VmRSS");
  facts.resident_bytes_peak = kilobytes_of("/proc/self/status", "VmHWM");
  facts.system_memory_bytes = kilobytes_of("/proc/meminfo", "MemTotal");
  facts.private_bytes = kilobytes_of("/proc/self/status", "RssAnon");
  const std::string stat = line_of("/proc/self/stat");
  std::istringstream{stat} >> facts.id;
  std::tie(facts.user_seconds, facts.system_seconds) = times_in(stat);
  const std::string main = "/proc/self/task/" + std::to_string(facts.id) + "/stat";
  std::tie(facts.main_user_seconds, facts.main_system_seconds) = times_in(line_of(main.c_str()));
  return facts;
}

}  // namespace semel::net
