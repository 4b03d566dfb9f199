// Question: what does a storage that writes, flushes and compacts cost a claim that waits for none?
// Method:   one thread makes claims at memory level, each timed, 9 of 10 on records that live; the
//           other makes new records of 96 random bytes at a steady pace. A refused call is
//           repeated, and its time counts.
// Compare:  the same two threads on an engine without a storage, in the same round.
// Report:   tails of a claim; what the other thread achieved.
#include <array>
#include <thread>

#include "bench/storage/storage_ours.hpp"
#include "bench/storage/storage_place.hpp"

namespace semel::bench {

namespace {

constexpr std::uint64_t first_fresh = std::uint64_t{1} << 40;
constexpr std::uint64_t first_loaded = std::uint64_t{1} << 41;
constexpr double loads_per_second = 400'000;
constexpr std::uint64_t loads_at_once = 64;
constexpr std::size_t loaded_words = 12;  // of 8 bytes

struct Claimant {
  Histogram all;
  Histogram fresh;
  std::uint64_t granted = 0;
  std::uint64_t refusals = 0;
};

/// One claim, asked until it is taken.
void claim_timed(Store& store, std::uint64_t index, bool is_new, Claimant& seen) {
  const Key key = key_of(index);
  const std::uint64_t value = value_of(index);
  const std::uint64_t started = ticks_before();
  seen.refusals += until_taken([&] {
    const auto result =
        store.set(bytes_of(key), bytes_of(value),
                  {.condition = Condition::if_absent, .expiry = Expiry::in(long_ttl), .get = true});
    if (!result.ok() && result.error().code == ErrorCode::refused) return false;
    require(result.has_value(), "a claim beside the storage: an error");
    require(result->stored == is_new, "a claim beside the storage: not the right answer");
    require(is_new || (result->previous && number_of(*result->previous) == value),
            "a repeat returned another value");
    return true;
  });
  const std::uint64_t ticks = ticks_after() - started;
  seen.all.add(ticks);
  if (is_new) seen.fresh.add(ticks);
}

void claim_until(Engine& engine, std::uint64_t living, const std::atomic<bool>& stop,
                 Claimant& seen) {
  Store store = engine.store();
  // mo: relaxed: when it stops is not exact.
  for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
    const bool is_new = base::mix_bits(i) % 10 == 0;
    const std::uint64_t index = is_new ? first_fresh + seen.granted++ : uniform(i, 3, living);
    claim_timed(store, index, is_new, seen);
  }
}

/// New records at loads_per_second, or as many as there is time for. Returns how many.
std::uint64_t load_until(Engine& engine, std::uint64_t ticks) {
  Store store = engine.store();
  std::array<std::uint64_t, loaded_words> words{};
  const Bytes bytes{reinterpret_cast<const char*>(words.data()), sizeof(words)};
  const double ticks_per_load = 1e9 * ticks_per_ns() / loads_per_second;
  const std::uint64_t begin = __rdtsc();
  std::uint64_t made = 0;
  for (std::uint64_t passed = 0; passed < ticks; passed = __rdtsc() - begin) {
    if (static_cast<double>(made) * ticks_per_load > static_cast<double>(passed)) {
      pause_ns(50'000);
      continue;
    }
    for (std::uint64_t i = 0; i < loads_at_once; ++i, ++made) {
      // Nothing that a table could store in less room.
      for (std::uint64_t word = 0; word < words.size(); ++word) {
        words[word] = base::mix_bits(made * words.size() + word + 1);
      }
      until_taken([&] { return set_new(store, first_loaded + made, bytes); });
    }
  }
  return made;
}

}  // namespace

ClaimTails measure_claim_tails(const TailSetup& setup) {
  const auto expected = setup.living + static_cast<std::uint64_t>(2e6 * setup.seconds);
  Ground ground{setup.directory, Durability::memory, expected};
  Engine& engine = ground.engine();
  Store store = engine.store();
  for (std::uint64_t i = 0; i < setup.living; ++i) {
    until_taken([&] { return set_new(store, i); });
  }
  const auto ticks = static_cast<std::uint64_t>(setup.seconds * 1e9 * ticks_per_ns());
  std::atomic<bool> stop{false};
  Claimant seen;
  std::uint64_t loaded = 0;
  std::thread claimant{[&] {
    pin_to_core(0);
    claim_until(engine, setup.living, stop, seen);
  }};
  std::thread loader{[&] {
    pin_to_core(1);
    loaded = load_until(engine, ticks);
    // mo: relaxed: see claim_until.
    stop.store(true, std::memory_order_relaxed);
  }};
  claimant.join();
  loader.join();
  require(engine.size(0) == setup.living + seen.granted + loaded,
          "claims beside the storage left another number of records than they made");
  return {.all = seen.all.tail(ticks_per_ns()),
          .fresh = seen.fresh.tail(ticks_per_ns()),
          .loaded = static_cast<double>(loaded) / setup.seconds,
          .refusals = static_cast<double>(seen.refusals),
          .disk_bytes = setup.directory.empty() ? 0 : disk_use(setup.directory).tables};
}

}  // namespace semel::bench
