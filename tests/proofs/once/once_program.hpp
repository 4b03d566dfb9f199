// One program of the once proof: a policy, and up to 12 calls on three keys, while time passes,
// memory fills up, engines end and processes crash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "semel/patterns/consume.hpp"
#include "tests/patterns/process.hpp"
#include "tests/proofs/once/once_limits.hpp"
#include "tests/proofs/once/once_locks.hpp"
#include "tests/proofs/once/once_oracle.hpp"
#include "tests/proofs/once/once_readers.hpp"
#include "tests/proofs/once/once_semaphores.hpp"
#include "tests/proofs/once/once_steps.hpp"
#include "tests/proofs/random.hpp"

namespace semel::proofs {

/// A result that some of the time cannot be encoded.
struct Receipt {
  std::uint64_t run = 0;
  bool throws = false;
  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static std::optional<Receipt> decode(Bytes bytes);
};

/// How often what is to be looked at has come about.
struct OnceFigures {
  std::uint64_t runs = 0;
  std::uint64_t locks = 0;     // grants
  std::uint64_t permits = 0;   // grants
  std::uint64_t readers = 0;   // and writers: grants
  std::uint64_t allowed = 0;   // calls, by rate limits
  std::uint64_t refusals = 0;  // calls that found memory full
  std::uint64_t closes = 0;    // engines, by a destructor
  std::uint64_t twins = 0;     // messages whose id came before in their batch
  std::uint64_t formless = 0;  // results that could not be encoded
  std::uint64_t effects = 0;   // of steps
  std::uint64_t recalled = 0;  // steps that were answered with a memo
  std::uint64_t stale = 0;     // that an owner asked for whose lease was over
  std::uint64_t changed = 0;   // terms of a namespace
  void add(const OnceFigures& more) noexcept;
};

class OnceProgram {
 public:
  explicit OnceProgram(std::uint64_t seed);

  /// Empty: nothing was outside of the contract.
  [[nodiscard]] std::string run();
  [[nodiscard]] OnceFigures figures() const noexcept {
    OnceFigures all = figures_;
    all.runs = oracle_.runs();
    all.locks = locks_.taken();
    all.permits = semaphores_.taken();
    all.readers = reader_story_.taken();
    all.allowed = limit_story_.allowed();
    all.effects = step_story_.effects();
    all.recalled = step_story_.recalled();
    all.stale = step_story_.stale();
    all.changed = step_story_.changed();
    return all;
  }

 private:
  /// A run of a key's work, as the call around it sees it.
  struct Run {
    std::uint64_t number = 0;  // 0: it did not run
    std::optional<Ending> how;
  };

  [[nodiscard]] std::string key() {
    return std::string(1, static_cast<char>('a' + random_.below(3)));
  }
  [[nodiscard]] Timestamp now() { return process_.clock().now(); }
  [[nodiscard]] std::uint64_t steps() {
    return random_.chance(1, 2) ? random_.below(60) : tests::Process::never;
  }
  void complain(const char* what) {
    if (complaint_.empty()) complaint_ = what;
  }

  void call();
  void declare();
  void next_process(std::uint64_t steps);
  void last_calls();

  // The work, and the calls that run it.
  Result<Receipt> work(const std::string& key, Work& given, Watchdog* watchdog, Millis held,
                       Run& run, bool may_doubt = true);
  void try_step(Work& given);
  void be_slow(const std::string& key, std::uint64_t run, Watchdog* watchdog);
  Run call_once(const std::string& key);
  void consume(const std::string& key);
  void batch();
  void judge_once(const std::string& key, const Run& run, const OnceOutcome<Receipt>& outcome);
  void judge_consumed(const std::string& key, const Run& run, const Consumed& consumed);
  void judge_refusal(const std::string& key, OnceAnswer answer);
  void resolve();

  // Full memory, and engines that close.
  void fill_or_empty();
  void close_between();
  void close_under_waiters();
  void close_under_blocked();
  void close_under_owner();

  // Other patterns.
  void token();
  void debounce();

  Random random_;
  Policy policy_;
  bool is_small_;    // its memory can be filled
  bool only_steps_;  // other work would be over, as days pass
  OnceOracle oracle_;
  tests::Process process_;
  LockStory locks_;
  SemaphoreStory semaphores_;
  ReaderStory reader_story_;
  LimitStory limit_story_;
  StepStory step_story_;
  std::string complaint_;
  OnceFigures figures_;
  std::uint64_t step_runs_ = 0;
  int depth_ = 0;
  bool was_filled_ = false;  // in this call
};

}  // namespace semel::proofs
