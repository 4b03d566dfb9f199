// Work with steps of the once proof: keys whose work is attempted again and again, by owners that
// are slow, replaced while they run, give up, doubt, finish, or crash, for payloads that take
// turns. What the contract allows of a step: its effect is there once for a payload as long as the
// work's record lives, but for an end of the process, or full memory, between the effect and its
// memo; it runs for the owner alone; and the next work under the key gets no memo of this one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "semel/patterns/once.hpp"
#include "tests/patterns/process.hpp"
#include "tests/proofs/once/once_oracle.hpp"
#include "tests/proofs/random.hpp"

namespace semel::proofs {

class StepStory {
 public:
  /// `takes_days`: between two calls; what else the program does must bear it.
  StepStory(Random& random, tests::Process& process, bool takes_days);

  /// One call, or what befalls the work between two. Empty: nothing was outside of the contract.
  [[nodiscard]] std::string play();
  /// In each process, while there is memory.
  void declare();
  /// The process has ended. `crashed`: in the middle of a call.
  void next_process(bool crashed);

  [[nodiscard]] std::uint64_t effects() const noexcept { return effects_; }
  [[nodiscard]] std::uint64_t recalled() const noexcept { return recalled_; }
  [[nodiscard]] std::uint64_t stale() const noexcept { return stale_; }
  [[nodiscard]] std::uint64_t changed() const noexcept { return changed_; }

 private:
  /// What a step has brought about for one payload.
  struct Charge {
    std::uint64_t id = 0;
    bool kept = false;  // for certain: its memo was acknowledged
  };
  struct Key {
    std::uint64_t run = 0;    // the newest owner
    std::uint64_t since = 0;  // effects of this work have larger ids
    std::map<unsigned, Charge> charges{};
    bool perhaps_over = false;  // memos may be there or not
    Timestamp lives_until = no_end;
  };
  /// An attempt under way; those that it met on the way are above it.
  struct Frame {
    std::string key;
    unsigned payload;
    std::uint64_t run;
    Work* work;
    bool is_over = false;   // its lease, for certain
    bool in_doubt = false;  // when its lease is over: by the terms of its grant, or of a change
  };

  [[nodiscard]] Timestamp now() { return process_.clock().now(); }
  void complain(const std::string& key, const char* what) {
    if (complaint_.empty() && process_.alive()) complaint_ = "step of " + key + " " + what;
  }
  [[nodiscard]] Fingerprint print_of(unsigned payload) const;

  void attempt(const std::string& key, int depth);
  Result<std::string> work(const std::string& key, unsigned payload, Work& given, int depth,
                           std::optional<Ending>& how);
  void charge(Frame& frame);
  void judge_memo(Frame& frame, std::uint64_t id, bool is_new);
  void charge_stale();
  void judge_end(const std::string& key, std::uint64_t run, OnceAnswer answer,
                 std::optional<Ending> how);
  void unguarded();
  void resolve(const std::string& key);
  void drop();
  void change_terms();
  void begin_anew(Key& key);

  Random& random_;
  tests::Process& process_;
  const bool takes_days_;
  Policy policy_;
  const bool has_payloads_;
  std::map<std::string, Key> keys_;
  std::map<std::uint64_t, unsigned> payload_of_;  // of an effect
  std::vector<Frame*> frames_;
  std::uint64_t runs_ = 0;
  std::uint64_t effects_ = 0;
  std::uint64_t recalled_ = 0;
  std::uint64_t stale_ = 0;
  std::uint64_t changed_ = 0;
  std::string complaint_;
};

}  // namespace semel::proofs
