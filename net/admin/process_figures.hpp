// What the kernel says about this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace semel::net {

struct ProcessFigures {
  double cpu_seconds = 0;            ///< of all its threads, in user and system mode
  std::uint64_t resident_bytes = 0;  ///< of memory
  std::uint64_t virtual_bytes = 0;   ///< of address space
  std::uint64_t open_files = 0;
  std::uint64_t open_files_max = 0;  ///< the limit; 0: there is none
};

/// The first three of them out of the text of /proc/self/stat. None: it is not such a text.
/// Source: man 5 proc
[[nodiscard]] std::optional<ProcessFigures> parse_process_stat(std::string_view text,
                                                               std::uint64_t ticks_per_second,
                                                               std::uint64_t page_bytes);

/// Of this process; costs a look at each open file. None: /proc cannot be read.
[[nodiscard]] std::optional<ProcessFigures> read_process_figures();

}  // namespace semel::net
