// Question: how does a chained hash map with a lock per record serve claims?
// Method:   oneTBB's concurrent_hash_map; a claim takes a reader's lock unless the record ended.
// Compare:  workloads.hpp, in one run with the engine.
// Report:   rates, resident bytes, tail while growing.
#include "bench/harness/peer.hpp"

#if __has_include(<oneapi/tbb/concurrent_hash_map.h>)
#define TBB_PREVIEW_CONCURRENT_HASH_MAP_EXTENSIONS 1  // looks up a string by its view
#include <oneapi/tbb/concurrent_hash_map.h>

namespace semel::bench {

namespace {

struct TbbHashCompare : PeerHash, PeerEqual {
  using is_transparent = void;
  template <class Asked>
  std::size_t hash(const Asked& key) const noexcept {
    return PeerHash::operator()(key);
  }
  template <class One, class Other>
  bool equal(const One& one, const Other& other) const noexcept {
    return PeerEqual::operator()(one, other);
  }
};

template <class Stored>
class TbbMap {
 public:
  using Scope = NoScope<TbbMap>;
  explicit TbbMap(std::uint64_t) {}

  Claimed claim(const Key& key, std::uint64_t value) {
    const std::int64_t now = clock_.now();
    const PeerRecord fresh{.value = value, .due = now + peer_ttl_ms};
    {
      typename Map::const_accessor found;
      if constexpr (std::is_same_v<Stored, Key>) {
        if (map_.insert(found, {key, fresh})) return {.granted = true};
      } else {
        // Two steps: a string is built only for a key that is not there.
        if (!map_.find(found, asked<Stored>(key)) &&
            map_.insert(found, {Stored{asked<Stored>(key)}, fresh})) {
          return {.granted = true};
        }
      }
      if (found->second.due > now) return {.granted = false, .previous = found->second.value};
    }
    typename Map::accessor ended;
    map_.insert(ended, Stored{asked<Stored>(key)});
    return claim_existing(ended->second, value, now);
  }

  bool overwrite(const Key& key, std::uint64_t value) {
    const std::int64_t now = clock_.now();
    typename Map::accessor found;
    if (!map_.find(found, asked<Stored>(key)) || found->second.due <= now) return false;
    found->second = {.value = value, .due = now + peer_ttl_ms};
    return true;
  }

  bool erase(const Key& key) {
    const std::int64_t now = clock_.now();
    typename Map::accessor found;
    if (!map_.find(found, asked<Stored>(key))) return false;
    const bool lived = found->second.due > now;
    return map_.erase(found) && lived;
  }

  std::uint64_t size() const { return map_.size(); }

 private:
  using Map = tbb::concurrent_hash_map<Stored, PeerRecord, TbbHashCompare>;
  PeerClock clock_;
  Map map_;
};

}  // namespace

Contestant onetbb() {
  return contestant<TbbMap<Key>>("oneTBB");
}
Contestant onetbb_strings() {
  return contestant<TbbMap<std::string>>("oneTBB");
}

}  // namespace semel::bench

#else

namespace semel::bench {

Contestant onetbb() {
  return {.name = "oneTBB"};
}
Contestant onetbb_strings() {
  return {.name = "oneTBB"};
}

}  // namespace semel::bench

#endif
