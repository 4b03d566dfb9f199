// The engine as a map of the comparison, and what only the engine is asked for.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/harness/contestant.hpp"
#include "bench/harness/workloads.hpp"
#include "semel/engine.hpp"
#include "semel/store.hpp"

namespace semel::bench {

inline constexpr Millis long_ttl{3'600'000};

/// An engine with room for `records` and what the workloads add. `background`: with its own thread
/// that turns the wheel, every millisecond.
[[nodiscard]] std::unique_ptr<Engine> open_engine(std::uint64_t records,
                                                  const Clock* clock = nullptr,
                                                  bool background = true);

/// One call of the Store for each question, as a user would write it.
class OurMap {
 public:
  using Scope = struct NoScope {
    explicit NoScope(OurMap&) noexcept {}
  };

  explicit OurMap(std::uint64_t records, const Clock* clock = nullptr,
                  Expiry expiry = Expiry::in(long_ttl), bool background = true)
      : engine_(open_engine(records, clock, background)),
        store_(engine_->store()),
        expiry_(expiry) {}

  Claimed claim(const Key& key, std::uint64_t value) {
    const auto result =
        store_.set(bytes_of(key), bytes_of(value),
                   {.condition = Condition::if_absent, .expiry = expiry_, .get = true});
    require(result.has_value(), "set if_absent: an error");
    if (result->stored) return {.granted = true};
    return {.granted = false, .previous = result->previous ? number_of(*result->previous) : 0};
  }
  bool overwrite(const Key& key, std::uint64_t value) {
    const auto result = store_.set(bytes_of(key), bytes_of(value),
                                   {.condition = Condition::if_present, .expiry = expiry_});
    require(result.has_value(), "set if_present: an error");
    return result->stored;
  }
  bool erase(const Key& key) {
    const auto result = store_.del(bytes_of(key));
    require(result.has_value(), "del: an error");
    return *result;
  }
  /// 0 if it is not there.
  std::uint64_t get(const Key& key) {
    const auto result = store_.get(bytes_of(key));
    require(result.has_value(), "get: an error");
    return *result ? number_of(**result) : 0;
  }
  std::uint64_t size() const { return engine_->size(0); }

  [[nodiscard]] Engine& engine() noexcept { return *engine_; }
  [[nodiscard]] Expiry expiry() const noexcept { return expiry_; }

 private:
  std::unique_ptr<Engine> engine_;
  Store store_;
  Expiry expiry_;
};

/// Operations a second in batches of 16 through EngineHost::apply, beside single calls on the same
/// table where it is full.
struct Batches {
  double claim_new = 0;
  double claim_repeat = 0;
  double claim_repeat_single = 0;
  double complete = 0;
  double complete_single = 0;
  double get = 0;
  double get_single = 0;
  double claim_zipf = 0;
  double claim_new_32 = 0;  ///< batches of 32: deeper prefetch
};
[[nodiscard]] Batches measure_batches(const Setup& setup);

/// W1 timed claim by claim: into an empty table, and into one that had grown before.
struct GrowthTails {
  Tail growing;
  Tail grown;
  double slots_first = 0;   ///< of the table after the first fill
  double slots_before = 0;  ///< and when the second began
  double growth_steps = 0;  ///< during the second fill
};
[[nodiscard]] GrowthTails measure_growth_tails(const Setup& setup);

/// All records of W1 end, spread evenly over `setup.records` / 10^6 seconds.
struct ExpiryCost {
  double cpu_ns_per_record = 0;
  Tail quiet;         ///< claims while nothing ends, the wheel advancing all the same
  Tail expiring;      ///< the same claims while all of it ends
  double lag_ms = 0;  ///< from the last end to the last record removed
};
[[nodiscard]] ExpiryCost measure_expiry(const Setup& setup);

/// W1 with a ttl on every record or on none. Claims a second.
[[nodiscard]] double measure_new_keys(const Setup& setup, bool with_ttl);

/// Nanoseconds of one thread for claim + complete of a new key (namespace), or SET NX + SET.
[[nodiscard]] double measure_claim_cycles(const Setup& setup);
[[nodiscard]] double measure_store_cycles(const Setup& setup);

/// Claims a second of one key by all threads; exactly one is granted.
struct HotKey {
  double store = 0;
  double claims = 0;
};
[[nodiscard]] HotKey measure_hot_key(const Setup& setup);

/// Reading a whole table, and sections.
struct Insight {
  double scan = 0;                  ///< records a second
  double snapshot = 0;              ///< records a second, no writers
  double snapshot_with_writer = 0;  ///< records a second while one thread overwrites
  double writer_alone = 0;          ///< overwrites a second of one thread
  double writer_beside = 0;         ///< the same during the snapshot
  double sections = 0;              ///< sections of two keys a second, one thread
  double bytes_records = 0;         ///< a record, by the engine's own count
  double bytes_table = 0;
  double bytes_wheel = 0;
  double load = 0;  ///< records / slots
};
[[nodiscard]] Insight measure_insight(const Setup& setup);

}  // namespace semel::bench
