// Question: how does an open hash map with a lock for each group of slots serve claims?
// Method:   boost::concurrent_flat_map, records in its slots; a claim is one insert_or_visit.
// Compare:  workloads.hpp, in one run with the engine.
// Report:   rates, resident bytes, tail while growing.
#include "bench/harness/peer.hpp"

#if __has_include(<boost/unordered/concurrent_flat_map.hpp>)
#include <boost/unordered/concurrent_flat_map.hpp>

namespace semel::bench {

namespace {

template <class Stored>
class ConcurrentFlatMap {
 public:
  using Scope = NoScope<ConcurrentFlatMap>;
  explicit ConcurrentFlatMap(std::uint64_t) {}

  Claimed claim(const Key& key, std::uint64_t value) {
    const std::int64_t now = clock_.now();
    Claimed claimed{.granted = true};
    const auto seen = [&](auto& slot) { claimed = claim_existing(slot.second, value, now); };
    const PeerRecord fresh{.value = value, .due = now + peer_ttl_ms};
    if constexpr (std::is_same_v<Stored, Key>) {
      map_.try_emplace_or_visit(key, fresh, seen);
    } else {
      // Two steps: a string is built only for a key that is not there.
      if (map_.visit(asked<Stored>(key), seen) == 0) {
        map_.try_emplace_or_visit(Stored{asked<Stored>(key)}, fresh, seen);
      }
    }
    return claimed;
  }

  bool overwrite(const Key& key, std::uint64_t value) {
    const std::int64_t now = clock_.now();
    bool lives = false;
    map_.visit(asked<Stored>(key), [&](auto& slot) {
      lives = slot.second.due > now;
      if (lives) slot.second = {.value = value, .due = now + peer_ttl_ms};
    });
    return lives;
  }

  bool erase(const Key& key) {
    const std::int64_t now = clock_.now();
    bool lived = false;
    map_.erase_if(asked<Stored>(key), [&](const auto& slot) {
      lived = slot.second.due > now;
      return true;
    });
    return lived;
  }

  std::uint64_t size() const { return map_.size(); }

 private:
  PeerClock clock_;
  boost::concurrent_flat_map<Stored, PeerRecord, PeerHash, PeerEqual> map_;
};

}  // namespace

Contestant boost_concurrent() {
  return contestant<ConcurrentFlatMap<Key>>("boost::concurrent_flat_map");
}
Contestant boost_concurrent_strings() {
  return contestant<ConcurrentFlatMap<std::string>>("boost::concurrent_flat_map");
}

}  // namespace semel::bench

#else

namespace semel::bench {

Contestant boost_concurrent() {
  return {.name = "boost::concurrent_flat_map"};
}
Contestant boost_concurrent_strings() {
  return {.name = "boost::concurrent_flat_map"};
}

}  // namespace semel::bench

#endif
