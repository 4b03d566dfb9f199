// Question: how far does an ordinary hash map come, if each of 64 parts has a mutex?
// Method:   Boost's unordered_flat_map and std::unordered_map; the high hash bits choose the part.
// Compare:  workloads.hpp, in one run with the engine.
// Report:   rates, resident bytes, tail while growing.
#include <array>
#include <mutex>
#include <unordered_map>

#include "bench/harness/peer.hpp"

#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
#include <boost/unordered/unordered_flat_map.hpp>
#endif

namespace semel::bench {

namespace {

template <class Stored, class Map>
class Shards {
 public:
  using Scope = NoScope<Shards>;
  explicit Shards(std::uint64_t) {}

  Claimed claim(const Key& key, std::uint64_t value) {
    const std::int64_t now = clock_.now();
    const PeerRecord fresh{.value = value, .due = now + peer_ttl_ms};
    Shard& shard = shard_of(key);
    const std::lock_guard lock{shard.mutex};
    if constexpr (std::is_same_v<Stored, Key>) {
      const auto [at, inserted] = shard.map.try_emplace(key, fresh);
      return inserted ? Claimed{.granted = true} : claim_existing(at->second, value, now);
    } else {
      // Two steps: a string is built only for a key that is not there.
      const auto at = shard.map.find(asked<Stored>(key));
      if (at != shard.map.end()) return claim_existing(at->second, value, now);
      shard.map.try_emplace(Stored{asked<Stored>(key)}, fresh);
      return {.granted = true};
    }
  }

  bool overwrite(const Key& key, std::uint64_t value) {
    const std::int64_t now = clock_.now();
    Shard& shard = shard_of(key);
    const std::lock_guard lock{shard.mutex};
    const auto at = shard.map.find(asked<Stored>(key));
    if (at == shard.map.end() || at->second.due <= now) return false;
    at->second = {.value = value, .due = now + peer_ttl_ms};
    return true;
  }

  bool erase(const Key& key) {
    const std::int64_t now = clock_.now();
    Shard& shard = shard_of(key);
    const std::lock_guard lock{shard.mutex};
    const auto at = shard.map.find(asked<Stored>(key));
    if (at == shard.map.end()) return false;
    const bool lived = at->second.due > now;
    shard.map.erase(at);
    return lived;
  }

  std::uint64_t size() {
    std::uint64_t sum = 0;
    for (Shard& shard : shards_) sum += shard.map.size();
    return sum;
  }

 private:
  struct alignas(64) Shard {
    std::mutex mutex;
    Map map;
  };

  Shard& shard_of(const Key& key) noexcept { return shards_[PeerHash{}(key) >> 58]; }

  PeerClock clock_;
  std::array<Shard, 64> shards_;
};

template <class Stored>
using StdMap = std::unordered_map<Stored, PeerRecord, PeerHash, PeerEqual>;

}  // namespace

Contestant std_shards() {
  return contestant<Shards<Key, StdMap<Key>>>("std map in 64 mutex shards");
}
Contestant std_shards_strings() {
  return contestant<Shards<std::string, StdMap<std::string>>>("std map in 64 mutex shards");
}

#if __has_include(<boost/unordered/unordered_flat_map.hpp>)

namespace {

template <class Stored>
using FlatMap = boost::unordered_flat_map<Stored, PeerRecord, PeerHash, PeerEqual>;

}  // namespace

Contestant boost_flat_shards() {
  return contestant<Shards<Key, FlatMap<Key>>>("flat map in 64 mutex shards");
}
Contestant boost_flat_shards_strings() {
  return contestant<Shards<std::string, FlatMap<std::string>>>("flat map in 64 mutex shards");
}

#else

Contestant boost_flat_shards() {
  return {.name = "flat map in 64 mutex shards"};
}
Contestant boost_flat_shards_strings() {
  return {.name = "flat map in 64 mutex shards"};
}

#endif

}  // namespace semel::bench
