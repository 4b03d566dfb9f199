// Memory ends for the threads of a group. An allocation of the threads that decide, write the log,
// take snapshots and call back is made to fail, the first, then the second, and so on; and from
// each on all of them, until memory is back.
//
// Words: site = the allocation that fails first, counted over these threads of three nodes; outage
// = all allocations from the site on fail.
//
// Each life is a process of its own. Asked of it: did it go on; did every call end; was nobody
// granted what another one had; and was everything that was acknowledged there, on all nodes, after
// those that have stopped were opened again?
//
// What fails is operator new. libraft takes its memory from malloc. What Asio takes for its own
// operations is left out: where a coroutine waits for one, the process ends.

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/replica/decision_scope.hpp"
#include "replication/node/group_calls.hpp"
#include "semel/claims.hpp"
#include "tests/proofs/allocations/failing_new.hpp"
#include "tests/proofs/apart.hpp"
#include "tests/proofs/arguments.hpp"
#include "tests/replication/node/group.hpp"

namespace semel::tests {
namespace {

using proofs::FailingNew;
using replication::GroupCalls;
using replication::NodeId;

constexpr unsigned nodes = 3;
constexpr unsigned keys = 60;
constexpr std::uint64_t snapshot_every = 8'192;  // some in each life
constexpr Millis patience_of_calls{400};

/// What the callers of a life have seen of a key.
struct Seen {
  std::atomic<int> granted{0};
  std::atomic<int> acknowledged{0};  // 1: completed
};

ErrorCode last_error = ErrorCode::ok;  // of this process

class Life {
 public:
  Life() : group_(nodes, snapshot_every, {}, replication::feature_level_newest, true) {
    for (NodeId id = 1; id <= nodes; ++id) begin(id);
  }
  ~Life() {
    for (NodeId id = 1; id <= nodes; ++id) end(id);
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  /// 0: it went on; 1: there is no such site; 2: wrong; 4: a node had to be opened again.
  int live(std::uint64_t site, std::uint64_t more) {
    if (group_.wait_leader() == 0) return complain("no leader at the beginning");
    for (NodeId id = 1; id <= nodes; ++id) claims(id);
    FailingNew::arm_background(site, more, "semel-");
    std::vector<std::thread> callers;
    for (NodeId id = 1; id <= nodes; ++id) callers.emplace_back([this, id] { call(id); });
    for (std::thread& each : callers) each.join();
    const bool fired = FailingNew::disarm_background();
    const int verdict = judge();
    return verdict == 0 && !fired ? 1 : verdict;
  }

 private:
  static int complain(const std::string& what) {
    std::printf("%s\n", what.c_str());
    return 2;
  }

  void begin(NodeId id) {
    Engine& engine = group_.node(id).engine();
    calls_[id] = std::make_unique<GroupCalls>(group_.node(id), patience_of_calls);
    engine::set_call_log(engine, calls_[id].get());
    if (!calls_[id]->start()) std::abort();
  }
  void end(NodeId id) {
    group_.node(id).stop();
    engine::set_call_log(group_.node(id).engine(), nullptr);
    calls_[id]->stop();
    group_.close(id);
    calls_[id].reset();
  }
  Claims claims(NodeId id) {
    for (;;) {  // a leader may end just now; the alarm bounds it
      auto found = group_.node(id).engine().claims("work", Policy{});
      if (found.ok()) return *std::move(found);
      last_error = found.error().code;
    }
  }

  static std::string name_of(unsigned key) { return "job " + std::to_string(key); }

  /// All services claim all keys, in other orders; some of them wait for their turn.
  void call(NodeId id) {
    Claims mine = *group_.node(id).engine().claims("work");
    for (unsigned i = 0; i < keys; ++i) {
      const unsigned key = (i * 7 + static_cast<unsigned>(id) * 13) % keys;
      const std::string name = name_of(key);
      const ClaimOutcome outcome =
          i % 5 == 0 ? mine.claim_or_wait({.key = name}, mine.engine().now() + Millis{20})
                     : mine.claim({.key = name});
      if (outcome.answer != ClaimAnswer::granted) continue;
      // mo: relaxed, both: read after the callers have been joined
      seen_[key].granted.fetch_add(1, std::memory_order_relaxed);
      const OwnerOutcome done =
          mine.complete({.key = name, .epoch = outcome.epoch, .payload = name});
      if (done.answer == OwnerAnswer::ok) {
        seen_[key].acknowledged.store(1, std::memory_order_relaxed);
      }
    }
  }

  /// Memory is back.
  int judge() {
    bool reopened = false;
    std::string trouble;
    const bool goes_on = Group::wait_for([&] {
      for (NodeId id = 1; id <= nodes; ++id) {
        if (!reopen_if_stopped(id, reopened, trouble)) return true;
      }
      for (NodeId id = 1; id <= nodes; ++id) {
        if (!group_.node(id).read({.patience = patience_of_calls, .forwards = true})) return false;
      }
      return true;
    });
    if (!trouble.empty()) return complain(trouble);
    if (!goes_on) return complain("the group does not go on\n" + group_.said());
    for (unsigned key = 0; key < keys; ++key) {
      if (const int wrong = look(key); wrong != 0) return wrong;
    }
    return reopened ? 4 : 0;
  }

  /// False: it has stopped for another reason than memory.
  bool reopen_if_stopped(NodeId id, bool& reopened, std::string& trouble) {
    const replication::ReplicaStatus status = group_.node(id).status();
    if (status.failed.empty() && !status.needs_reopen) return true;
    if (!status.needs_reopen && status.failed.find("memory") == std::string::npos &&
        status.failed.find("cannot be applied here") == std::string::npos) {
      trouble = "node " + std::to_string(id) + " stopped: " + status.failed;
      return false;
    }
    end(id);
    group_.open(id, false);
    begin(id);
    reopened = true;
    return true;
  }

  int look(unsigned key) {
    // mo: relaxed, both: the callers have been joined
    const int granted = seen_[key].granted.load(std::memory_order_relaxed);
    const bool is_done = seen_[key].acknowledged.load(std::memory_order_relaxed) != 0;
    if (granted > 1) return complain(name_of(key) + " was granted " + std::to_string(granted));
    for (NodeId id = 1; id <= nodes && is_done; ++id) {
      ClaimOutcome again;
      do {  // a snapshot may come only now, and a leader may end
        bool reopened = false;
        std::string trouble;
        if (!reopen_if_stopped(id, reopened, trouble)) return complain(trouble);
        auto found = group_.node(id).engine().claims("work", Policy{});
        again.error = found.ok() ? ErrorCode::ok : found.error().code;
        if (found.ok()) again = found->claim({.key = name_of(key)});
        last_error = again.error;
      } while (again.error != ErrorCode::ok);
      if (again.answer != ClaimAnswer::replay || again.result != name_of(key)) {
        return complain(name_of(key) + " is lost on node " + std::to_string(id));
      }
    }
    return 0;
  }

  std::array<Seen, keys> seen_{};
  Group group_;
  std::map<NodeId, std::unique_ptr<GroupCalls>> calls_;
};

int apart(const std::function<int()>& play) {
  const auto begin = [] {
    std::set_terminate([] {
      FailingNew::disarm_background();
      std::printf("last error: %s\n", std::string{name_of(last_error)}.c_str());
      proofs::say_where_and_abort();
    });
  };
  return proofs::apart(begin, play);
}

int run(const proofs::Arguments& arguments) {
  constexpr std::uint64_t sites_max = 50'000;
  constexpr std::uint64_t outage = ~std::uint64_t{0} >> 1;
  FailingNew::spare_asio();
  const std::uint64_t part = arguments.is_long ? 60 : 4;
  unsigned lives = 0;
  unsigned wrong = 0;
  for (const std::uint64_t more : {std::uint64_t{0}, outage}) {
    unsigned reopened = 0;
    const unsigned before = lives;
    std::uint64_t site = 1;
    for (;;) {
      const int verdict = apart([&] { return Life{}.live(site, more); });
      if (verdict == 1 || site > sites_max) break;
      ++lives;
      if (verdict == 4) ++reopened;
      if (verdict != 0 && verdict != 4) {
        ++wrong;
        std::printf("  site %lu, %s: wrong\n", static_cast<unsigned long>(site),
                    more == 0 ? "once" : "outage");
      }
      site += 1 + site / part;
    }
    std::printf("%-7s up to site %5lu: %3u lives, in %u a node had to be opened again\n",
                more == 0 ? "once" : "outage", static_cast<unsigned long>(site), lives - before,
                reopened);
    std::fflush(stdout);
  }
  std::printf("%u lives of a group, %u not as they should\n", lives, wrong);
  return wrong == 0 && lives > 0 ? 0 : 1;
}

}  // namespace
}  // namespace semel::tests

int main(int count, char** texts) {
  const auto arguments = semel::proofs::parse_arguments(count, texts);
  return arguments ? semel::tests::run(*arguments) : 2;
}
