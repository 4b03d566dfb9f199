// The decision log, the answers counted by namespace, and the sinks that receive each record that
// ended by its ttl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/core/callbacks.hpp"
#include "engine/decisions/claim_counts.hpp"
#include "engine/decisions/decision_log.hpp"
#include "engine/keys/key_space.hpp"
#include "engine/memory/region.hpp"
#include "engine/memory/threads.hpp"
#include "engine/table/entry.hpp"
#include "semel/engine.hpp"

namespace semel::engine {

class Insight {
 public:
  explicit Insight(CallbackWatch& callbacks) noexcept : callbacks_(callbacks) {}

  /// Makes log and counters if `options` ask for them, in memory of `region`. Errors: bad_option
  /// (there is no room).
  [[nodiscard]] Status start(const Options& options, Region& region);

  /// Null: decisions are not kept.
  [[nodiscard]] DecisionLog* decisions() const noexcept { return decisions_.get(); }
  /// Null: claims are not counted by namespace.
  [[nodiscard]] ClaimCounts* claim_counts() const noexcept { return claim_counts_.get(); }

  /// Whether note_expired() does nothing but count records of this kind. Inside an operation that a
  /// shard has admitted it stays so.
  [[nodiscard]] bool only_counts_ends_of(Kind kind) const noexcept {
    return sinks_.empty() && (kind != Kind::claim || decisions_ == nullptr);
  }
  /// A record ended by its ttl and was taken out.
  void note_expired(ThreadContext& context, const Entry& old, KeySpace& keys) noexcept;
  /// Fields of a hash ended and were taken out. `db`: as shown. Inside an operation.
  void note_fields_ended(std::uint8_t db, Bytes key) noexcept;
  /// An operator removed a claim with these bytes as a key is removed. `hash`: of its key.
  void note_forgotten(ThreadContext& context, std::uint64_t hash, Bytes claim,
                      Timestamp now) noexcept;

  // Only inside a section over everything, in which no sink is called.
  /// Returns a handle for remove_sink().
  [[nodiscard]] std::uint64_t add_sink(ExpiredSink sink);
  void remove_sink(std::uint64_t handle);

 private:
  void report(const ExpiredEvent& event) noexcept;

  CallbackWatch& callbacks_;
  std::unique_ptr<DecisionLog> decisions_;
  std::unique_ptr<ClaimCounts> claim_counts_;
  std::vector<std::pair<std::uint64_t, ExpiredSink>> sinks_;  // handles ascend
};

}  // namespace semel::engine
