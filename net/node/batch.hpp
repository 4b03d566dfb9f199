// Requests of a pipeline that are one operation on one key each, or a known script. A batch plans
// them one by one and applies them together, so that their cache misses overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/commands/command.hpp"
#include "net/node/node.hpp"
#include "net/scripts/native_scripts.hpp"

namespace semel::net {

/// The operations of one batch, and the counters of its thread. All connections of a thread share
/// one, are made and served on that thread only, and leave it empty between their turns.
///
/// Invariant: count <= count_max.
class Batch {
 public:
  static constexpr std::size_t count_max = 64;
  Batch();
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// The counters and the script host of the thread's connections.
  [[nodiscard]] StatsLane& lane(Node& node) { return node.stats.lane(lane_.lane); }
  [[nodiscard]] const std::shared_ptr<ScriptHost>& scripts(Node& node);

  /// Whether commands of `row` can be in a batch at all.
  [[nodiscard]] static bool takes(const CommandRow& row) noexcept {
    return row.single != nullptr ||
           ((row.has(fact_script_digest) || row.has(fact_script_text)) && !row.is(flag_readonly));
  }
  [[nodiscard]] bool is_empty() const noexcept { return count_ == 0; }
  [[nodiscard]] bool is_full() const noexcept { return count_ == count_max; }
  /// Adds the request of `call`, which begins at `start`. False: the caller runs it by itself. The
  /// words of the request must stay until apply().
  [[nodiscard]] bool add(const Call& call, const char* start);

  /// Requests at the end of a batch that have not run.
  struct Rest {
    std::size_t count = 0;
    const char* start = nullptr;  ///< of the first; null: there is none
  };
  /// Runs the added requests for `client` and appends their replies to `out`, until these have
  /// about `bytes_max`; at least one request runs. Empties the batch.
  [[nodiscard]] Rest apply(Node& node, ClientState& client, std::string& out,
                           std::size_t bytes_max);

 private:
  [[nodiscard]] bool plan_script(const Call& call);
  void answer(Node& node, ClientState& client, std::size_t count, std::string& out);
  void count_calls(Node& node, ClientState& client, std::size_t count);
  void count_scripts(ClientState& client, std::size_t count, std::int64_t ns_each);

  HeldLane lane_;
  std::shared_ptr<ScriptHost> scripts_;
  std::vector<StoreOp> ops_;
  std::vector<StoreOutcome> outcomes_;
  std::vector<const CommandRow*> rows_;
  std::vector<NativePlan> natives_;  // without a shape: it is not a script
  std::vector<const char*> starts_;  // where their requests begin
  std::size_t count_ = 0;
};

}  // namespace semel::net
