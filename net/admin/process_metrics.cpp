#include "net/admin/process_metrics.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/file_text.hpp"

namespace semel::net {
namespace {

// Indexes of the fields behind the name of the program, which is in brackets; the state is 0.
constexpr std::size_t user_ticks = 11;
constexpr std::size_t system_ticks = 12;
constexpr std::size_t virtual_size = 20;
constexpr std::size_t resident_pages = 21;

std::optional<std::uint64_t> field_of(std::string_view fields, std::size_t place) {
  for (std::size_t i = 0; i < place; ++i) {
    const std::size_t blank = fields.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    fields.remove_prefix(blank + 1);
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(fields.data(), fields.data() + fields.size(), number);
  if (error != std::errc{} || end == fields.data()) return std::nullopt;
  return number;
}

std::uint64_t count_open_files() {
  std::error_code error;
  std::filesystem::directory_iterator files{"/proc/self/fd", error};
  std::uint64_t count = 0;
  while (!error && files != std::filesystem::directory_iterator{}) {
    ++count;
    files.increment(error);
  }
  return count > 0 ? count - 1 : 0;  // the iterator itself has one open
}

}  // namespace

std::optional<ProcessMetrics> parse_process_stat(std::string_view text,
                                                 std::uint64_t ticks_per_second,
                                                 std::uint64_t page_bytes) {
  // The name may contain any bytes, also brackets and blanks, so search for the last bracket.
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string_view::npos || ticks_per_second == 0) return std::nullopt;
  const std::string_view fields = text.substr(name_end + 2);
  const auto user = field_of(fields, user_ticks);
  const auto system = field_of(fields, system_ticks);
  const auto size = field_of(fields, virtual_size);
  const auto pages = field_of(fields, resident_pages);
  if (!user || !system || !size || !pages) return std::nullopt;
  return ProcessMetrics{
      .cpu_seconds = static_cast<double>(*user + *system) / static_cast<double>(ticks_per_second),
      .resident_bytes = *pages * page_bytes,
      .virtual_bytes = *size};
}

std::optional<ProcessMetrics> read_process_metrics() {
  const std::string text = base::read_file("/proc/self/stat").value_or("");
  auto values = parse_process_stat(text, static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)),
                                   static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  if (!values) return std::nullopt;
  values->open_files = count_open_files();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    values->open_files_max = limit.rlim_cur;
  }
  return values;
}

}  // namespace semel::net
