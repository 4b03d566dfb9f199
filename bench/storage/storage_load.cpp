// Question: what do `logged` and a storage cost a writer of new records?
// Method:   two threads make new keys, SET NX or claim + complete, single or in batches of 16, for
//           a number of records or a time, whichever ends first; every answer is checked.
// Compare:  the same without a storage, in the same round.
// Report:   operations a second, CPU time of the process with all its threads, bytes.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "bench/storage/storage_ours.hpp"
#include "bench/storage/storage_place.hpp"
#include "semel/claims.hpp"
#include "semel/engine_host.hpp"

namespace semel::bench {

namespace {

constexpr std::size_t batch_most = 16;
constexpr unsigned thread_count = 2;
constexpr std::uint64_t sample_step = 997;

/// Makes operations for adjacent indices, at most batch_most in a call. One per thread.
class Maker {
 public:
  virtual ~Maker() = default;
  virtual void make(std::uint64_t first, std::size_t count) = 0;
  std::uint64_t refusals = 0;
};

class SingleSets final : public Maker {
 public:
  explicit SingleSets(Engine& engine) : store_(engine.store()) {}
  void make(std::uint64_t first, std::size_t count) override {
    for (std::uint64_t i = first; i < first + count; ++i) {
      refusals += until_taken([&] { return set_new(store_, i); });
    }
  }

 private:
  Store store_;
};

class BatchSets final : public Maker {
 public:
  explicit BatchSets(Engine& engine) : engine_(engine) {
    for (std::size_t i = 0; i < batch_most; ++i) {
      ops_[i] = {.verb = Verb::set,
                 .condition = Condition::if_absent,
                 .get = true,
                 .expiry = Expiry::in(long_ttl),
                 .key = bytes_of(keys_[i]),
                 .value = bytes_of(values_[i])};
    }
  }
  void make(std::uint64_t first, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) {
      keys_[i] = key_of(first + i);
      values_[i] = value_of(first + i);
    }
    engine_.host().apply(std::span{ops_}.first(count), std::span{outcomes_}.first(count));
    for (std::size_t i = 0; i < count; ++i) {
      if (outcomes_[i].error == ErrorCode::refused) {
        refusals += until_taken([&] {
          engine_.host().apply(ops_[i], outcomes_[i]);
          return outcomes_[i].error != ErrorCode::refused;
        });
      }
      require(outcomes_[i].error == ErrorCode::ok, "a batch of SETs: an error");
      require(outcomes_[i].applied && !outcomes_[i].has_value, "a new key was not granted");
    }
  }

 private:
  Engine& engine_;
  std::array<Key, batch_most> keys_{};
  std::array<std::uint64_t, batch_most> values_{};
  std::array<StoreOp, batch_most> ops_{};
  std::array<StoreOutcome, batch_most> outcomes_{};
};

Claims claims_of(Engine& engine) {
  auto claims = engine.claims("work", {.lease = Millis{60'000}, .result_ttl = long_ttl});
  require(claims.has_value(), "claims: an error");
  return *claims;
}

class Cycles final : public Maker {
 public:
  Cycles(Engine& engine, bool in_batches) : claims_(claims_of(engine)), in_batches_(in_batches) {
    for (std::size_t i = 0; i < batch_most; ++i) {
      requests_[i].key = bytes_of(keys_[i]);
      calls_[i] = {.key = bytes_of(keys_[i]), .payload = bytes_of(values_[i])};
    }
  }
  void make(std::uint64_t first, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) {
      keys_[i] = key_of(first + i);
      values_[i] = value_of(first + i);
    }
    if (in_batches_) {
      claims_.claim(std::span{requests_}.first(count), std::span{granted_}.first(count));
      for (std::size_t i = 0; i < count; ++i) check_claim(i);
      claims_.complete(std::span{calls_}.first(count), std::span{completed_}.first(count));
      for (std::size_t i = 0; i < count; ++i) check_complete(i);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      granted_[i] = claims_.claim(requests_[i]);
      check_claim(i);
      completed_[i] = claims_.complete(calls_[i]);
      check_complete(i);
    }
  }

 private:
  void check_claim(std::size_t i) {
    if (granted_[i].error == ErrorCode::refused) {
      refusals += until_taken([&] {
        granted_[i] = claims_.claim(requests_[i]);
        return granted_[i].error != ErrorCode::refused;
      });
    }
    require(granted_[i].answer == ClaimAnswer::granted, "a new claim was not granted");
    calls_[i].epoch = granted_[i].epoch;
  }
  void check_complete(std::size_t i) {
    if (completed_[i].error == ErrorCode::refused) {
      refusals += until_taken([&] {
        completed_[i] = claims_.complete(calls_[i]);
        return completed_[i].error != ErrorCode::refused;
      });
    }
    require(completed_[i].answer == OwnerAnswer::ok, "an owner could not complete");
  }

  Claims claims_;
  bool in_batches_;
  std::array<Key, batch_most> keys_{};
  std::array<std::uint64_t, batch_most> values_{};
  std::array<ClaimRequest, batch_most> requests_{};
  std::array<ClaimOutcome, batch_most> granted_{};
  std::array<OwnerCall, batch_most> calls_{};
  std::array<OwnerOutcome, batch_most> completed_{};
};

std::unique_ptr<Maker> maker_of(Engine& engine, const Load& load) {
  if (load.claims) return std::make_unique<Cycles>(engine, load.batch > 1);
  if (load.batch > 1) return std::make_unique<BatchSets>(engine);
  return std::make_unique<SingleSets>(engine);
}

/// What a lane has made: adjacent indices.
struct Made {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
using MadeByAll = std::array<Made, thread_count>;

std::uint64_t total_of(const MadeByAll& all) {
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Made& made) { return sum + made.count; });
}

void require_made(Engine& engine, const Load& load, const MadeByAll& all, const char* wrong) {
  require(engine.size(0) == total_of(all), wrong);
  Store store = engine.store();
  Claims claims = claims_of(engine);
  for (const Made& made : all) {
    for (std::uint64_t at = 0; at < made.count; at += sample_step) {
      const Key key = key_of(made.first + at);
      const std::uint64_t value = value_of(made.first + at);
      if (load.claims) {
        const ClaimOutcome again = claims.claim({.key = bytes_of(key)});
        require(again.answer == ClaimAnswer::replay && number_of(again.result) == value, wrong);
      } else {
        const auto found = store.get(bytes_of(key));
        require(found.ok() && *found && number_of(**found) == value, wrong);
      }
    }
  }
}

void look_back(const Load& load, const MadeByAll& all, LoadFigures& figures) {
  Ground ground{load.directory, Durability::memory, load.records};
  static_cast<void>(claims_of(ground.engine()));
  static_cast<void>(ground.recover());
  require_made(ground.engine(), load, all, "recovery brought back something else than was made");
  static_cast<void>(ground.close());
  const DiskUse use = disk_use(load.directory);
  figures.disk_bytes = use.all / figures.made;
  figures.table_bytes = use.tables / figures.made;
}

}  // namespace

LoadFigures measure_load(const Load& load) {
  Ground ground{load.directory, load.durability, load.records};
  Engine& engine = ground.engine();
  MadeByAll all{};
  std::array<std::uint64_t, thread_count> refusals{};
  const double cpu_begin = process_cpu_ns();
  const double seconds = run_lanes(thread_count, [&](Lane& lane) {
    const auto maker = maker_of(engine, load);
    const auto [begin, end] = lane.share(load.records);
    const auto ticks = static_cast<std::uint64_t>(load.seconds * 1e9 * ticks_per_ns());
    std::uint64_t next = begin;
    lane.start();
    while (next < end && __rdtsc() - lane.begin() < ticks) {
      const std::size_t count = std::min<std::uint64_t>(batch_most, end - next);
      maker->make(next, count);
      next += count;
    }
    lane.stop();
    all[lane.index()] = {.first = begin, .count = next - begin};
    refusals[lane.index()] = maker->refusals;
  });
  double cpu = process_cpu_ns() - cpu_begin;
  LoadFigures figures;
  figures.made = static_cast<double>(total_of(all));
  figures.rate = figures.made / seconds;
  for (const std::uint64_t own : refusals) figures.refusals += static_cast<double>(own);
  require_made(engine, load, all, "the engine holds something else than was made");
  if (!load.directory.empty()) {
    require(bool{engine.confirm(Durability::logged)}, "the storage could not log what was made");
    const StorageStats stats = ground.storage().stats();
    const double mutations = figures.made * (load.claims ? 2 : 1);
    // A mutation takes more than its key.
    require(static_cast<double>(stats.bytes) >= mutations * 32,
            "the storage has seen fewer mutations than were made");
    figures.log_bytes = static_cast<double>(stats.bytes) / mutations;
  }
  cpu += ground.close();
  figures.cpu_ns = cpu / figures.made;
  if (load.look_back) look_back(load, all, figures);
  return figures;
}

}  // namespace semel::bench
