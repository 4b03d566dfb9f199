// One round of the linearizability proof: threads on few keys of one engine, each call recorded
// with its moments, while other threads move the clock, sweep, make the table grow, read
// snapshots and close sessions. Afterwards each object's history goes to the checker.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "semel/semel.hpp"
#include "tests/proofs/linearizability/checker.hpp"
#include "tests/proofs/linearizability/history.hpp"
#include "tests/proofs/random.hpp"

namespace semel::proofs {

/// Keys that are checked together. Claims objects have a namespace, store objects do not.
struct Object {
  std::vector<std::string> keys;
  bool is_claims = false;
  bool is_wide = false;  ///< long values only: they take long to write and to read, which is when
                         ///< a torn one, or one whose memory was given out again, would show
  Policy policy{};
  std::optional<Claims> claims;
  // [linear.epoch] a hint for owner calls: any epoch that was granted, also by other threads.
  //   stale: wanted. A stale epoch makes a stale owner, which is one of the cases to record.
  std::unique_ptr<std::atomic<Epoch>> epoch = std::make_unique<std::atomic<Epoch>>(0);
};

/// A call on its way to its object's history.
struct Recorded {
  std::size_t object = 0;
  Call call;
  bool follows_previous = false;  ///< of the same thread on the same object: one batch
};

class LinearRound;

/// One recording thread.
class Worker {
 public:
  Worker(LinearRound& round, std::uint32_t thread, std::uint64_t seed)
      : round_(round), thread_(thread), random_(seed) {}

  void run(std::uint64_t operations);
  [[nodiscard]] std::vector<Recorded>& recorded() noexcept { return recorded_; }

 private:
  void one_operation();
  void do_store();
  void do_batch();
  void do_section();
  void do_claim();
  void do_claim_batch();
  void do_claim_all();
  void do_owner_call();
  void do_wait();
  void do_session();

  [[nodiscard]] std::size_t some_object(bool claims);
  [[nodiscard]] StoreCall some_store_call(const Object& object, std::uint32_t key);
  [[nodiscard]] ClaimCall some_claim_call(const Object& object, std::uint32_t key);
  [[nodiscard]] std::string some_value(bool is_wide);
  [[nodiscard]] Call begin();
  void end(Call& call);
  void keep(std::size_t object, Call call, bool follows_previous = false);

  LinearRound& round_;
  const std::uint32_t thread_;
  Random random_;
  std::vector<Recorded> recorded_;
  std::vector<std::pair<SessionId, std::uint32_t>> sessions_;
  std::uint32_t values_ = 0;
};

struct RoundResult {
  bool right = true;
  bool gave_up = false;  ///< neither right nor wrong: the checker could not follow a history
  std::uint64_t operations = 0;
  std::uint64_t histories = 0;
  std::size_t configurations_most = 0;
  std::string report;
};

class LinearRound {
 public:
  explicit LinearRound(std::uint64_t seed);
  ~LinearRound();
  [[nodiscard]] RoundResult run();

 private:
  friend class Worker;
  static constexpr std::uint32_t sessions_max = 62;
  static constexpr std::uint32_t waits_at_once_max = 8;
  static constexpr std::uint64_t calls_per_tick = 40;

  bool open();
  void tick_while_working();
  void grow_while_working();
  void snapshot_while_working();
  void read_snapshot(std::vector<Recorded>& recorded);
  bool end_waits();
  void add(std::vector<Recorded>& recorded, std::uint32_t thread);
  void check_all(RoundResult& result);
  void complain(const std::string& what);

  /// No two are equal; a call that returned before another was invoked has the smaller one.
  [[nodiscard]] std::uint64_t moment() noexcept {
    // mo: seq_cst [linear.moment]: the order of moments is the order the checker holds against
    //     the engine; weaker, two calls could swap and a wrong history pass or a right one fail.
    return moments_.fetch_add(1, std::memory_order_seq_cst);
  }
  [[nodiscard]] bool is_working() const noexcept {
    // mo: acquire [linear.working]: pairs with the decrement of a worker that ends.
    return working_.load(std::memory_order_acquire) != 0;
  }
  [[nodiscard]] Ms now() const noexcept { return to_ms(clock_.now()); }

  const std::uint64_t seed_;
  Random random_;
  ManualClock clock_;
  std::unique_ptr<Engine> engine_;
  std::vector<Object> objects_;
  std::vector<History> histories_;
  std::vector<Ms> clock_values_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<std::uint64_t> moments_{1};   // [linear.moment]
  std::atomic<std::uint32_t> working_{0};   // [linear.working]
  std::atomic<std::uint32_t> sessions_{2};  // [linear.count] numbers given; only uniqueness
  std::atomic<std::uint32_t> waits_{0};     // [linear.count] waits under way, about
  std::mutex mutex_;                        // of what follows
  std::vector<Recorded> waited_;
  std::string complaint_;
};

}  // namespace semel::proofs
