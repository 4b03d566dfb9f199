// A cold store in a directory of its own.
//
//   auto cold = open_cold_directory({.directory = dir}, clock);
//   auto engine = Engine::open({.clock = &clock, .cold = cold->get(), .background = 10ms});
//
// It makes the window larger than memory; it makes nothing durable: records that are still in the
// table when the process ends are gone, unless a journal has them.
//
// With a Storage, the directory "cold" in that of the storage is where the tools look for it, and
// where a restored backup has it. Storage::recover() binds the two to each other.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "semel/clock.hpp"
#include "semel/cold.hpp"
#include "semel/result.hpp"

namespace semel {

namespace storage {
class Disk;
}  // namespace storage

struct ColdOptions {
  std::string directory{};  ///< made if it is not there; one process at a time
  /// Of a filter, for each record; 8..32. 15: about one of 800 new keys asks a generation in vain.
  unsigned filter_bits = 15;
  /// Blocks of the disk that are kept in memory, charged to the engine's limit. 1 MiB..1 GiB.
  std::size_t cache_bytes = std::size_t{8} << 20;
  Millis clock_ahead_max{std::int64_t{366} * 24 * 3600 * 1000};  ///< as in StorageOptions
  storage::Disk* disk = nullptr;  ///< tests only; none: the machine's
};

/// Errors: bad_option, storage_in_use, storage_damaged, storage_newer, storage_failed (also: it is
/// part of a backup, or belongs to something else).
[[nodiscard]] Result<std::unique_ptr<ColdStore>> open_cold_directory(const ColdOptions& options,
                                                                     const Clock& clock);

}  // namespace semel
