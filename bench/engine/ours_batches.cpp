// Question: what do batches of 16 gain over single calls, where a cache miss is the price?
// Method:   EngineHost::apply over spans of claims, completes and gets; every outcome is checked.
// Compare:  single calls of the Store on the same table in the same process.
// Report:   operations a second, all threads together.
#include <algorithm>
#include <array>
#include <span>

#include "bench/engine/ours.hpp"
#include "semel/engine_host.hpp"

namespace semel::bench {

namespace {

constexpr std::size_t batch_most = 32;

/// Makes operations of one kind for indices and checks what came back.
class Batch {
 public:
  Batch(Verb verb, Condition condition, Expiry expiry, bool get) {
    for (std::size_t i = 0; i < batch_most; ++i) {
      ops_[i] = {.verb = verb,
                 .condition = condition,
                 .get = get,
                 .expiry = expiry,
                 .key = bytes_of(keys_[i]),
                 .value = bytes_of(values_[i])};
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void put(std::size_t at, std::uint64_t index, std::uint64_t value) noexcept {
    keys_[at] = key_of(index);
    values_[at] = value;
    indices_[at] = index;
  }
  void apply(Engine& engine, std::size_t count) {
    engine.host().apply(std::span{ops_}.first(count), std::span{outcomes_}.first(count));
  }
  [[nodiscard]] const StoreOutcome& outcome(std::size_t at) const noexcept { return outcomes_[at]; }
  [[nodiscard]] std::uint64_t index(std::size_t at) const noexcept { return indices_[at]; }

 private:
  std::array<Key, batch_most> keys_{};
  std::array<std::uint64_t, batch_most> values_{};
  std::array<std::uint64_t, batch_most> indices_{};
  std::array<StoreOp, batch_most> ops_{};
  std::array<StoreOutcome, batch_most> outcomes_{};
};

struct Kind {
  Verb verb;
  Condition condition = Condition::always;
  bool get = false;
  std::size_t batch = 16;
};
constexpr Kind claims{.verb = Verb::set, .condition = Condition::if_absent, .get = true};
constexpr Kind completes{.verb = Verb::set, .condition = Condition::if_present};
constexpr Kind gets{.verb = Verb::get};

/// Rate of `total` operations on `index_of(i, lane)`, in batches; `right` judges each outcome.
template <class IndexOf, class Right>
double batched(OurMap& map, unsigned threads, std::uint64_t total, Kind kind, IndexOf&& index_of,
               Right&& right) {
  const double seconds = run_lanes(threads, [&](Lane& lane) {
    const auto batch = std::make_unique<Batch>(kind.verb, kind.condition, map.expiry(), kind.get);
    const auto [begin, end] = lane.share(total);
    lane.start();
    for (std::uint64_t i = begin; i < end;) {
      const std::size_t count = std::min<std::uint64_t>(kind.batch, end - i);
      for (std::size_t at = 0; at < count; ++at, ++i) {
        const std::uint64_t index = index_of(i, lane);
        batch->put(at, index, value_of(index));
      }
      batch->apply(map.engine(), count);
      for (std::size_t at = 0; at < count; ++at) {
        require(right(batch->outcome(at), batch->index(at)), "a batch: an outcome is not right");
      }
    }
    lane.stop();
  });
  return static_cast<double>(total) / seconds;
}

template <class Once>
double single(unsigned threads, std::uint64_t total, Once&& once) {
  const double seconds = run_lanes(threads, [&](Lane& lane) {
    const auto [begin, end] = lane.share(total);
    lane.start();
    for (std::uint64_t i = begin; i < end; ++i) once(i, lane);
    lane.stop();
  });
  return static_cast<double>(total) / seconds;
}

bool was_granted(const StoreOutcome& outcome, std::uint64_t) {
  return outcome.error == ErrorCode::ok && outcome.applied && !outcome.has_value;
}
bool was_repeat(const StoreOutcome& outcome, std::uint64_t index) {
  return outcome.error == ErrorCode::ok && !outcome.applied && outcome.has_value &&
         number_of(outcome.value) == value_of(index);
}
bool was_completed(const StoreOutcome& outcome, std::uint64_t) {
  return outcome.error == ErrorCode::ok && outcome.applied;
}
bool was_read(const StoreOutcome& outcome, std::uint64_t index) {
  return outcome.error == ErrorCode::ok && outcome.found && outcome.has_value &&
         number_of(outcome.value) == value_of(index);
}

double batched_new_keys(OurMap& map, const Setup& setup, std::size_t batch) {
  Kind kind = claims;
  kind.batch = batch;
  const double rate = batched(
      map, setup.threads, setup.records, kind, [](std::uint64_t i, Lane&) { return i; },
      was_granted);
  require(map.size() == setup.records, "batches left another number of records than they made");
  return rate;
}

}  // namespace

Batches measure_batches(const Setup& setup) {
  Batches figures;
  OurMap map{setup.records};
  const std::uint64_t total = setup.operations;
  const unsigned threads = setup.threads;
  const auto any = [&](std::uint64_t i, Lane& lane) {
    return uniform(i, lane.index(), setup.records);
  };

  figures.claim_new = batched_new_keys(map, setup, 16);
  figures.claim_repeat = batched(map, threads, total, claims, any, was_repeat);
  figures.claim_repeat_single =
      single(threads, total, [&](std::uint64_t i, Lane& lane) { claim_again(map, any(i, lane)); });
  figures.get = batched(map, threads, total, gets, any, was_read);
  figures.get_single = single(threads, total, [&](std::uint64_t i, Lane& lane) {
    const std::uint64_t index = any(i, lane);
    require(map.get(key_of(index)) == value_of(index), "get returned another value");
  });
  figures.claim_zipf = batched(
      map, threads, total, claims, [&](std::uint64_t i, Lane&) { return setup.zipf[i]; },
      was_repeat);
  figures.complete = batched(map, threads, total, completes, any, was_completed);
  figures.complete_single = single(threads, total, [&](std::uint64_t i, Lane& lane) {
    const std::uint64_t index = any(i, lane);
    require(map.overwrite(key_of(index), value_of(index)), "a record was not there to complete");
  });
  OurMap other{setup.records};
  figures.claim_new_32 = batched_new_keys(other, setup, 32);
  return figures;
}

}  // namespace semel::bench
