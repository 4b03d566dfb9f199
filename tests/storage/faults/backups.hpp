// Backups as a power cut leaves them: complete and sound, or known to be incomplete.
#pragma once

#include <cstdint>
#include <string>

namespace semel::faults {

struct BackupsFound {
  std::uint64_t sound = 0;
  std::uint64_t incomplete = 0;
  std::uint64_t wrong = 0;
  std::string first_wrong{};
};

/// Of all directories in `root` whose names begin with "backup".
[[nodiscard]] BackupsFound look_at_backups(const std::string& root);

}  // namespace semel::faults
