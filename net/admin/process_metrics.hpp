// Reads the resource usage of this process from the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace semel::net {

struct ProcessMetrics {
  double cpu_seconds = 0;            ///< of all its threads, in user and system mode
  std::uint64_t resident_bytes = 0;  ///< of memory
  std::uint64_t virtual_bytes = 0;   ///< of address space
  std::uint64_t open_files = 0;
  std::uint64_t open_files_max = 0;  ///< the limit; 0: no limit
};

/// Parses the first three fields from the text of /proc/self/stat. None: it has another form.
/// Source: man 5 proc
[[nodiscard]] std::optional<ProcessMetrics> parse_process_stat(std::string_view text,
                                                               std::uint64_t ticks_per_second,
                                                               std::uint64_t page_bytes);

/// Reads all fields for this process, in time linear to its open files. None: /proc cannot be read.
[[nodiscard]] std::optional<ProcessMetrics> read_process_metrics();

}  // namespace semel::net
