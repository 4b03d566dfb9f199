// What the groups of the suite `storage` share: a directory for each measurement, peers that may
// not be there.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/harness/harness.hpp"
#include "bench/harness/suite_context.hpp"
#include "bench/storage/storage_place.hpp"

namespace semel::bench {

struct Work {
  Context& context;
  std::string root;  ///< measurements get directories below it
  bool redis;        ///< it is installed
  double seconds_load;
  double seconds_synced;
  double seconds_tail;
  unsigned skipped = 0;  ///< measurements of Redis

  [[nodiscard]] std::uint64_t loads() const noexcept { return context.setup.operations; }
  [[nodiscard]] Report& report() const noexcept { return context.report; }
  void note(std::string label, std::string figures) const {
    context.report.notes.push_back({std::move(label), std::move(figures)});
  }

  /// `measure(directory)` in a child and a new directory.
  template <class Measure>
  auto measured(const std::string& what, Measure&& measure) {
    const ScratchDirectory place{root};
    return context.measured(what, [&] {
      require(!place.path().empty(), "there is no directory to measure in");
      return measure(place.path());
    });
  }
  /// The same for Redis, if it is there.
  template <class Measure>
  auto measured_redis(const std::string& what, Measure&& measure) {
    using Figures = std::invoke_result_t<Measure, const std::string&>;
    if (redis) return measured(what, measure);
    context.say("SKIPPED, redis-server is not installed: " + what);
    ++skipped;
    return std::optional<Figures>{};
  }
};

template <class Figures>
void keep(std::vector<Figures>& rounds, const std::optional<Figures>& figures) {
  if (figures) rounds.push_back(*figures);
}

/// The group `backup`: claims beside a backup against claims without one.
void backup_group(Work& work);
/// The group `logged`: load against memory only, and against Redis everysec.
void logged_group(Work& work);
/// The group `bytes`: what is written and kept, against RocksDB alone.
void bytes_group(Work& work);
/// The group `files`: drained records in files by span, against keys of RocksDB.
void files_group(Work& work);

}  // namespace semel::bench
