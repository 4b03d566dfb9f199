// The directory of `semel dedup --state DIR`: the keys in a storage, and beside it the options that
// choose keys (DIR/dedup.json).
//
// Time. By arrival the storage's own time line goes on from run to run, also while nothing runs. By
// the time of the lines the line stands at the newest time that was seen, `event_bias_ms` after it,
// as times before 1970 must not be negative there; so the watermark comes back with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"
#include "tools/semel/dedup/dedup_options.hpp"

namespace semel::tool {

/// 139 years, so that times from 1830 to 2248 fit; a record of the engine can end 557 years after
/// the zero of its clock, of which 100 are for the window.
inline constexpr std::int64_t event_bias_ms = std::int64_t{1} << 42;

class DedupState {
 public:
  virtual ~DedupState() = default;
  /// Sets the options that an engine on this state needs.
  virtual void prepare(Options& options) = 0;
  [[nodiscard]] virtual Status recover(Engine& engine) = 0;
  /// Returns when everything is on the disk.
  [[nodiscard]] virtual Status finish(Engine& engine) = 0;
  /// Null: by arrival.
  [[nodiscard]] virtual ManualClock* event_clock() = 0;
  /// The newest time of a line in earlier runs.
  [[nodiscard]] virtual std::optional<std::int64_t> watermark() const = 0;
};

/// False: this build has no storage.
[[nodiscard]] bool has_dedup_state();
[[nodiscard]] Result<std::unique_ptr<DedupState>> open_dedup_state(const DedupOptions& options);

}  // namespace semel::tool
