// Question: how does a lock-free chained table under read-copy-update serve claims?
// Method:   liburcu's cds_lfht (memb flavour, resized by its own thread); values change in place,
//           removed nodes are freed by call_rcu.
// Compare:  workloads.hpp, in one run with the engine.
// Report:   rates, resident bytes, tail while growing.
#include "bench/harness/peer.hpp"

#if __has_include(<urcu/rculfhash.h>)
#include <urcu/urcu-memb.h>
// The flavour comes first.
#include <urcu/rculfhash.h>

#include <atomic>
#include <cstddef>

namespace semel::bench {

namespace {

struct Node {
  cds_lfht_node link;
  rcu_head retired;
  Key key;
  // The two are not one step: a claim that meets an overwrite may pair the new value with the old
  // end. Kind to this peer, and never observed by the workloads, which overwrite only own keys.
  std::atomic<std::uint64_t> value;
  std::atomic<std::int64_t> due;
};

Node* node_of(cds_lfht_node* link) noexcept {
  static_assert(offsetof(Node, link) == 0);
  return reinterpret_cast<Node*>(link);
}

int same_key(cds_lfht_node* link, const void* key) noexcept {
  return node_of(link)->key == *static_cast<const Key*>(key) ? 1 : 0;
}

void free_node(rcu_head* retired) noexcept {
  delete reinterpret_cast<Node*>(reinterpret_cast<std::byte*>(retired) - offsetof(Node, retired));
}

class ReadLock {
 public:
  ReadLock() noexcept { urcu_memb_read_lock(); }
  ~ReadLock() { urcu_memb_read_unlock(); }
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;
};

class UrcuMap {
 public:
  class Scope {
   public:
    explicit Scope(UrcuMap&) noexcept { urcu_memb_register_thread(); }
    ~Scope() { urcu_memb_unregister_thread(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

  explicit UrcuMap(std::uint64_t)
      : table_(cds_lfht_new_flavor(64, 64, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING,
                                   &urcu_memb_flavor, nullptr)) {
    require(table_ != nullptr, "cds_lfht_new failed");
    // Its helper starts here, on no core in particular; later it would inherit a lane's core.
    urcu_memb_get_default_call_rcu_data();
  }

  Claimed claim(const Key& key, std::uint64_t value) {
    const std::int64_t now = clock_.now();
    const unsigned long hash = PeerHash{}(key);
    const ReadLock lock;
    Node* fresh = nullptr;
    for (;;) {
      cds_lfht_node* met = find(key, hash);
      if (met == nullptr) {
        // Only now: most claims need no node.
        if (fresh == nullptr) fresh = new Node{{}, {}, key, value, now + peer_ttl_ms};
        cds_lfht_node_init(&fresh->link);
        met = cds_lfht_add_unique(table_, hash, same_key, &key, &fresh->link);
        if (met == &fresh->link) return {.granted = true};
      }
      Node* const node = node_of(met);
      // mo: acquire [bench.urcu-due]: the value belongs to this end or a later one.
      if (node->due.load(std::memory_order_acquire) > now) {
        delete fresh;
        // mo: relaxed: ordered by the load above.
        return {.granted = false, .previous = node->value.load(std::memory_order_relaxed)};
      }
      if (cds_lfht_del(table_, met) == 0) urcu_memb_call_rcu(&node->retired, free_node);
    }
  }

  bool overwrite(const Key& key, std::uint64_t value) {
    const std::int64_t now = clock_.now();
    const ReadLock lock;
    cds_lfht_node* const met = find(key, PeerHash{}(key));
    // mo: relaxed: nothing else is read.
    if (met == nullptr || node_of(met)->due.load(std::memory_order_relaxed) <= now) return false;
    // mo: relaxed: ordered by the store below.
    node_of(met)->value.store(value, std::memory_order_relaxed);
    // mo: release [bench.urcu-due]
    node_of(met)->due.store(now + peer_ttl_ms, std::memory_order_release);
    return true;
  }

  bool erase(const Key& key) {
    const std::int64_t now = clock_.now();
    const ReadLock lock;
    cds_lfht_node* const met = find(key, PeerHash{}(key));
    if (met == nullptr || cds_lfht_del(table_, met) != 0) return false;
    Node* const node = node_of(met);
    // mo: relaxed: nothing else is read.
    const bool lived = node->due.load(std::memory_order_relaxed) > now;
    urcu_memb_call_rcu(&node->retired, free_node);
    return lived;
  }

  std::uint64_t size() {
    const Scope scope{*this};
    const ReadLock lock;
    long before = 0;
    long after = 0;
    unsigned long count = 0;
    cds_lfht_count_nodes(table_, &before, &count, &after);
    return count;
  }

 private:
  cds_lfht_node* find(const Key& key, unsigned long hash) {
    cds_lfht_iter at{};
    cds_lfht_lookup(table_, hash, same_key, &key, &at);
    return cds_lfht_iter_get_node(&at);
  }

  PeerClock clock_;
  cds_lfht* table_;
};

}  // namespace

Contestant urcu() {
  return contestant<UrcuMap>("liburcu cds_lfht");
}

}  // namespace semel::bench

#else

namespace semel::bench {

Contestant urcu() {
  return {.name = "liburcu cds_lfht"};
}

}  // namespace semel::bench

#endif
