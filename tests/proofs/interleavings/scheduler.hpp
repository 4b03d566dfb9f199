// Runs a few fibers one at a time and explores the orders in which they can be run.
//
// The code under test is compiled with SteppedAtomic (stepped_atomic.hpp), which calls step()
// before each access. There the explorer may put another fiber in. It runs the same fibers from the
// same state again and again, depth first over all its choices, until none is left.
//
//   preemption   a fiber is left although it could go on. Bounded; what comes at a fiber's end is
//                free. A fiber that was left stays so while others run to their ends: that another
//                can always finish (lock-freedom) is checked by each schedule.
//   hot word     accessed by two fibers, by one of them to change it. Only there is a choice: other
//                accesses commute with everything. The set is learned; when it grows, exploration
//                starts over, so the last pass knew every conflict that it met.
//   merging      the whole state is memory plus what each fiber has read so far. A state that was
//                met before with as many preemptions left is not branched from again; its schedule
//                is still run to the end and checked.
//
// Non-goal: memory orders. Execution is sequentially consistent; ThreadSanitizer and the
// linearizability proof look at the orders.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace semel::proofs {

enum class Access : std::uint8_t { read, write, set_bits, add };

/// What is explored: memory that can be put back, and a body for each fiber.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Every stepped atomic lies in here.
  [[nodiscard]] virtual std::span<const std::byte> memory() const = 0;
  [[nodiscard]] virtual unsigned fiber_count() const = 0;
  /// The fiber after the last: it runs first until ghost_stops(), and goes on when all have ended.
  [[nodiscard]] virtual bool has_ghost() const = 0;
  [[nodiscard]] virtual bool ghost_stops(const void* address, Access kind) = 0;
  /// Back to the start of every schedule.
  virtual void reset() = 0;
  virtual void run(unsigned fiber) = 0;
  /// Null, or what is wrong with a change that was just made.
  [[nodiscard]] virtual const char* wrote(const void* address, std::uint64_t old,
                                          std::uint64_t fresh) = 0;
  /// Empty, or what is wrong. `at_rest`: no ghost is on its way any more.
  [[nodiscard]] virtual std::string check(bool at_rest) = 0;
  [[nodiscard]] virtual std::string describe(const void* address) const = 0;
};

/// A stack that runs one job after the other and can be left in the middle of one. Fibers are kept
/// until the program ends: one that was left in noexcept code can be neither continued nor unwound,
/// and ThreadSanitizer counts the calls of a stack, which ending it would upset.
class Fiber {
 public:
  /// An idle one, or a new one.
  [[nodiscard]] static Fiber& take(std::function<void()> job);
  /// A fiber in the middle of a job is never used again.
  void give_back() noexcept;

  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Begins the job or goes on with it; returns when it has ended or called suspend().
  void resume();
  void suspend();
  [[nodiscard]] bool in_job() const noexcept { return in_job_; }

 private:
  Fiber();
  [[noreturn]] void run_jobs();

  std::function<void()> job_;
  std::unique_ptr<std::byte[]> stack_;
  boost::context::fiber inside_;
  boost::context::fiber caller_;
  bool is_taken_ = true;
  bool in_job_ = false;
  // What the sanitizers want to know about a change of stacks.
  void* sanitizer_fiber_ = nullptr;
  void* sanitizer_caller_ = nullptr;
  void* fake_stack_ = nullptr;
  void* caller_fake_stack_ = nullptr;
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
};

class Explorer {
 public:
  static constexpr unsigned fibers_max = 4;  ///< with the ghost
  static constexpr unsigned no_fiber = fibers_max;

  struct Limits {
    unsigned preemptions = 2;
    std::uint64_t schedules_max = ~std::uint64_t{0};
    /// Setting a bit is a change to a reader too. Without it a reader must not look at the bit, or
    /// only after it failed to change the word (which makes the word hot in any case).
    bool bits_are_changes = false;
  };
  struct Result {
    std::uint64_t schedules = 0;
    std::uint64_t merged = 0;  ///< of these, ended in a state met before
    bool complete = true;      ///< schedules_max was not reached
    std::string failure;       ///< empty: none
    std::string schedule;      ///< of the failure, for replay()
  };

  explicit Explorer(Subject& subject);
  ~Explorer();
  Explorer(const Explorer&) = delete;
  Explorer& operator=(const Explorer&) = delete;

  [[nodiscard]] Result explore(const Limits& limits);
  /// Runs one schedule, telling each access. `1,0@17,2`: fiber 1 first, at step 17 fiber 0, when
  /// that has ended fiber 2.
  [[nodiscard]] Result replay(const std::string& schedule, std::FILE* trace);

  /// The one that is running on this thread, for the atomics; null outside of a schedule.
  [[nodiscard]] static Explorer* running() noexcept { return running_; }

  // --- for SteppedAtomic and the subject, inside a schedule ---------------------------------
  void step(const void* address, Access kind);
  /// The result of the access: what the fiber knows has changed.
  void saw(std::uint64_t result);
  void wrote(const void* address, std::uint64_t old, std::uint64_t fresh);
  /// Something whose order among fibers matters to check(). Returns its place in that order.
  unsigned event();
  [[noreturn]] void fail(std::string reason);
  [[nodiscard]] unsigned current() const noexcept { return current_; }

  /// Only `owner` can reach these bytes yet (no_fiber: all can).
  void set_private(const void* begin, std::size_t bytes, unsigned owner);

 private:
  static constexpr std::uint32_t steps_max = 20'000;
  struct Choice {
    std::uint8_t taken;
    std::uint8_t count;
  };
  struct Switch {
    unsigned fiber;
    std::uint32_t step;  ///< 0: at the start, or when a fiber ended
  };

  void run_once();
  void run_ghost_until_it_stops();
  void run_fibers();
  void finish();
  void decide();
  [[nodiscard]] unsigned next_fiber();
  [[nodiscard]] unsigned choose(unsigned count);
  [[nodiscard]] bool next_path();
  [[nodiscard]] bool met_before();
  [[nodiscard]] bool is_hot(std::uint32_t seen) const noexcept;
  void switch_to(unsigned fiber, std::uint32_t step);
  [[nodiscard]] std::size_t unit(const void* address) const noexcept;
  [[nodiscard]] bool has_ended(unsigned fiber) const noexcept { return (ended_ >> fiber & 1) != 0; }
  void replace_broken_fibers();
  [[nodiscard]] std::string schedule_text() const;

  static inline thread_local Explorer* running_ = nullptr;

  Subject& subject_;
  const std::byte* const memory_;
  const unsigned count_;
  Fiber* fibers_[fibers_max] = {};
  Limits limits_;

  // Learned over all schedules, one each for 4 bytes of memory.
  std::vector<std::uint32_t> seen_;  // a byte per Access, a bit per fiber
  std::vector<std::uint8_t> hot_;
  bool hot_grew_ = false;
  std::vector<Choice> path_;
  class States;
  std::unique_ptr<States> states_;
  std::uint64_t merged_count_ = 0;

  // Of the schedule that runs.
  std::vector<std::uint8_t> private_;  // owner + 1
  std::size_t at_ = 0;
  unsigned current_ = 0;
  unsigned next_ = 0;
  unsigned ended_ = 0;
  unsigned preemptions_ = 0;
  std::uint32_t step_ = 0;
  unsigned events_ = 0;
  std::uint64_t event_hash_ = 0;
  std::uint64_t memory_hash_ = 0;
  std::uint64_t known_[fibers_max] = {};
  bool merged_ = false;
  bool is_ghost_ = false;
  std::vector<Switch> switches_;
  std::string failure_;

  // Of a replay.
  bool replaying_ = false;
  std::vector<Switch> wanted_;
  std::size_t wanted_at_ = 0;
  std::FILE* trace_ = nullptr;
};

}  // namespace semel::proofs
