// Question: how does a two-choice hash map with lock stripes serve claims?
// Method:   libcuckoo's cuckoohash_map; a claim is one uprase_fn under its bucket locks.
// Compare:  workloads.hpp, in one run with the engine.
// Report:   rates, resident bytes, tail while growing.
#include "bench/harness/peer.hpp"

#if __has_include(<libcuckoo/cuckoohash_map.hh>)
#include <libcuckoo/cuckoohash_map.hh>

namespace semel::bench {

namespace {

template <class Stored>
class CuckooMap {
 public:
  using Scope = NoScope<CuckooMap>;
  explicit CuckooMap(std::uint64_t) {}

  Claimed claim(const Key& key, std::uint64_t value) {
    const std::int64_t now = clock_.now();
    Claimed claimed{.granted = true};
    map_.uprase_fn(
        asked<Stored>(key),
        [&](PeerRecord& record) {
          claimed = claim_existing(record, value, now);
          return false;  // do not erase
        },
        PeerRecord{.value = value, .due = now + peer_ttl_ms});
    return claimed;
  }

  bool overwrite(const Key& key, std::uint64_t value) {
    const std::int64_t now = clock_.now();
    bool lives = false;
    map_.update_fn(asked<Stored>(key), [&](PeerRecord& record) {
      lives = record.due > now;
      if (lives) record = {.value = value, .due = now + peer_ttl_ms};
    });
    return lives;
  }

  bool erase(const Key& key) {
    const std::int64_t now = clock_.now();
    bool lived = false;
    map_.erase_fn(asked<Stored>(key), [&](PeerRecord& record) {
      lived = record.due > now;
      return true;
    });
    return lived;
  }

  std::uint64_t size() const { return map_.size(); }

 private:
  PeerClock clock_;
  libcuckoo::cuckoohash_map<Stored, PeerRecord, PeerHash, PeerEqual> map_;
};

}  // namespace

Contestant libcuckoo() {
  return contestant<CuckooMap<Key>>("libcuckoo");
}
Contestant libcuckoo_strings() {
  return contestant<CuckooMap<std::string>>("libcuckoo");
}

}  // namespace semel::bench

#else

namespace semel::bench {

Contestant libcuckoo() {
  return {.name = "libcuckoo"};
}
Contestant libcuckoo_strings() {
  return {.name = "libcuckoo"};
}

}  // namespace semel::bench

#endif
