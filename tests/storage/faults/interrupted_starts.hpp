// Starts of a storage that are interrupted at each of their steps, several in a row.
//
// A storage is left behind with claims that remote owners hold. For each durable step of an open: a
// copy of it is opened after longer than any lease, and the process is killed, or loses power, at
// that step. More such starts follow, each interrupted at some step, or closed before it has
// recovered, with more time, boots and steps of the wall clock in between. The last one is left
// alone: no hold may have ended, because no process ran that its owner could have renewed it with.
// This is no fault of lives.cpp: a life draws one step of a start and goes on. Of the first start
// in a directory of an earlier release, which happens once, it would meet few steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "semel/cold_directory.hpp"
#include "semel/semel.hpp"
#include "semel/storage.hpp"

namespace semel::faults {

/// One process: members end in the opposite order.
struct StartedProcess {
  std::unique_ptr<Storage> storage{};
  std::unique_ptr<ColdStore> cold{};
  std::unique_ptr<Engine> engine{};
};

struct StartSubject {
  std::string name{};
  std::string directory{};  ///< as the process before left it; it is copied
  /// Of each start, longer than the leases.
  Millis downtime{0};
  Timestamp now{};  ///< of the clocks when that process ended
  std::int64_t unix_ms = 0;
  /// Opens; recovers as well if `recovers`. `disk` is where the directory is.
  std::function<Result<StartedProcess>(const std::string& directory, const Clock& clock,
                                       storage::Disk& disk, bool recovers)>
      open{};
  /// What is not as it must be after all of that.
  std::function<std::vector<std::string>(StartedProcess& process)> wrong{};
};

struct StartsWanted {
  std::uint64_t seed = 1;
  std::uint64_t first = 1;   ///< step of an open
  std::uint64_t stride = 1;  ///< and so many steps on
};

struct StartsFound {
  std::uint64_t starts = 0;
  std::uint64_t interrupted = 0;
  std::uint64_t chains = 0;
  std::vector<std::string> wrong{};
};

/// A storage with holds, some of them drained, and with what was held once; `cold`: it has spilled.
/// `directory` must not be there.
[[nodiscard]] Result<StartSubject> new_subject(const std::string& directory, bool has_cold);
/// A storage with a cold store whose log and files hold more than its memory limit, left behind by
/// a kill; it is opened with that limit.
[[nodiscard]] Result<StartSubject> full_subject(const std::string& directory);
/// A golden directory (tests/storage/golden).
[[nodiscard]] StartSubject golden_subject(const std::string& directory);

/// Runs one chain for each of the wanted steps.
[[nodiscard]] StartsFound interrupt_starts(const StartSubject& subject, const StartsWanted& wanted);

}  // namespace semel::faults
