// What a golden directory holds: written by golden_maker, looked for by golden_test. A directory of
// an earlier format must be found to hold the same by every later release.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "semel/semel.hpp"
#include "semel/storage.hpp"

namespace semel::tests::golden {

// Far from any boot and any wall clock, so that opening it goes on exactly where it stopped.
inline constexpr std::int64_t unix_start_ms = 1'700'000'000'000;
inline constexpr Millis engine_start{1'000'000};
inline constexpr Millis short_ttl{60'000};
inline constexpr Millis long_ttl{3'600'000'000};  // 1,000 hours

struct Process {
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
};

/// Of the namespace "golden". Formats before 4 do not know it.
[[nodiscard]] Policy policy_of_all();

struct Opening {
  storage::Disk* disk = nullptr;  ///< none: the machine's
  bool recovers = true;           ///< false: the storage alone
};
/// Opens and recovers.
[[nodiscard]] Result<Process> open(const std::string& directory, const Clock& clock,
                                   const Opening& opening = {});
/// One of those in the repository, to FOLDER/golden. False: `tar` cannot.
[[nodiscard]] bool unpack(const std::string& archive, const std::string& folder);
/// Writes everything.
[[nodiscard]] Status fill(Engine& engine, Storage& storage);
/// What is not as it was filled; empty: all of it is there, at the time it was made.
[[nodiscard]] std::vector<std::string> compare(Engine& engine);

}  // namespace semel::tests::golden
