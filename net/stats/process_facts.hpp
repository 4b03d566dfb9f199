// What the system knows of this process. Linux: read from /proc, each time it is asked.
#pragma once

#include <cstdint>
#include <string>

namespace semel::net {

struct ProcessFacts {
  std::uint64_t id = 0;
  std::string system{};  ///< "Linux 6.1.0 x86_64"
  std::uint64_t resident_bytes = 0;
  std::uint64_t resident_bytes_peak = 0;
  std::uint64_t system_memory_bytes = 0;
  std::uint64_t private_bytes = 0;  ///< resident, and of no file: what allocators took
  double user_seconds = 0;
  double system_seconds = 0;
  double main_user_seconds = 0;  ///< of the first thread
  double main_system_seconds = 0;
};

/// A fact that cannot be read stays at 0.
[[nodiscard]] ProcessFacts process_facts();

}  // namespace semel::net
