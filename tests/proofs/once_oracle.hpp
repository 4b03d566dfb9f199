// What the documented contract allows of work that is to happen once, as a model of its own: it
// hears when a run begins and how it ends, and knows nothing of records. Source: docs/patterns.md
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "semel/claim.hpp"

namespace semel::proofs {

enum class Ending : std::uint8_t { ok, error, thrown, unsure };

/// The keys of one namespace. `complaint` is empty as long as all is allowed.
class OnceOracle {
 public:
  explicit OnceOracle(const Policy& policy) : policy_(policy) {}

  /// A run has had its effect at `now`; its lease lasts until `lease_until` at least.
  std::uint64_t begin(const std::string& key, Timestamp now, Timestamp lease_until) {
    Key& work = keys_[key];
    if (work.state == State::done) complain(key, "ran again after it was done");
    if (work.state == State::kept) complain(key, "ran again after it had failed for good");
    if (work.state == State::doubt) complain(key, "ran again before the doubt was resolved");
    if (work.state == State::running) {
      if (now < work.lease_until) complain(key, "ran beside another whose lease was not over");
      if (in_doubt_at_lease_end()) complain(key, "ran again although its owner went silent");
    }
    ++work.runs;
    if (policy_.attempts_max != 0 && work.runs > policy_.attempts_max) {
      complain(key, "ran more often than attempts_max");
    }
    touched_.insert(key);
    work.state = State::running;
    work.lease_until = lease_until;
    return work.run = ++last_run_;
  }
  void renewed(const std::string& key, std::uint64_t run, Timestamp lease_until) {
    Key& work = keys_[key];
    if (work.run == run) work.lease_until = std::max(work.lease_until, lease_until);
  }
  /// A run that was taken over says nothing any more.
  void end(const std::string& key, std::uint64_t run, Ending how) {
    Key& work = keys_[key];
    if (work.run != run || work.state != State::running) return;
    switch (how) {
      case Ending::ok:
        work.state = State::done;
        return;
      case Ending::error:
        return become(work, policy_.on_failure);
      case Ending::thrown:
      case Ending::unsure:
        return become(work, policy_.on_exception);
    }
  }
  /// A call has ended in a process that lives: what it did is written down.
  void settle() { touched_.clear(); }
  /// The process ended in the middle of a call: of what that call touched, the end may be lost.
  void crash() {
    for (const std::string& key : touched_) {
      Key& work = keys_[key];
      if (!in_doubt_at_lease_end()) {
        work.state = State::free;
      } else if (work.state == State::running) {
        work.state = State::doubt;
      }
    }
    touched_.clear();
  }
  void resolved(const std::string& key, bool done) {
    Key& work = keys_[key];
    work.state = done ? State::done : State::free;
    if (!done) work.runs = 0;
  }
  [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }
  [[nodiscard]] std::uint64_t runs() const noexcept { return last_run_; }

 private:
  enum class State : std::uint8_t { free, running, done, kept, doubt };
  struct Key {
    State state = State::free;
    std::uint64_t run = 0;
    std::uint32_t runs = 0;
    Timestamp lease_until{};
  };
  [[nodiscard]] bool in_doubt_at_lease_end() const noexcept {
    return policy_.on_lease_end == Policy::OnLeaseEnd::in_doubt;
  }
  static void become(Key& work, Policy::OnFailure means) {
    work.state = means == Policy::OnFailure::keep       ? State::kept
                 : means == Policy::OnFailure::in_doubt ? State::doubt
                                                        : State::free;
  }
  void complain(const std::string& key, const char* what) {
    if (complaint_.empty()) complaint_ = key + " " + what;
  }

  Policy policy_;
  std::map<std::string, Key> keys_;
  std::set<std::string> touched_;
  std::uint64_t last_run_ = 0;
  std::string complaint_;
};

}  // namespace semel::proofs
