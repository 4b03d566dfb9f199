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
    if (work.perhaps_held && now >= work.lease_until && !in_doubt_at_lease_end()) {
      work.state = State::free;  // its end was not written, so the end of its lease counts
    }
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
    work.perhaps_held = work.perhaps_ended = false;
    work.lease_until = lease_until;
    return work.run = ++last_run_;
  }
  void renewed(const std::string& key, std::uint64_t run, Timestamp lease_until) {
    Key& work = keys_[key];
    if (work.run == run) work.lease_until = std::max(work.lease_until, lease_until);
  }
  /// A run that was taken over says nothing any more. `written` false: there may have been no
  /// memory to write a failure down.
  void end(const std::string& key, std::uint64_t run, Ending how, bool written = true) {
    Key& work = keys_[key];
    if (how == Ending::ok) work.was_done = true;  // whatever is written down of it
    if (work.run != run || work.state != State::running) return;
    work.perhaps_held = !written && how != Ending::ok;
    switch (how) {
      case Ending::ok:
        work.state = State::done;
        work.receipt = run;
        return;
      case Ending::error:
        return become(work, policy_.on_failure);
      case Ending::thrown:
      case Ending::unsure:
        return become(work, policy_.on_exception);
    }
  }
  /// The run ended well, and the answer says that this is not written down: its lease goes on. Of
  /// a run that was taken over that is always allowed.
  void unrecorded(const std::string& key, std::uint64_t run, bool was_filled) {
    Key& work = keys_[key];
    if (work.run != run || work.state != State::done) return;
    work.state = State::running;
    if (!was_filled) complain(key, "was not written down, though there was memory");
  }
  /// A call has ended in a process that lives: what it did is written down.
  void settle() { touched_.clear(); }
  /// The process ended in the middle of a call: of what that call touched, the end may be lost.
  void crash() {
    for (const std::string& key : touched_) {
      Key& work = keys_[key];
      work.perhaps_ended = true;
      if (!in_doubt_at_lease_end()) {
        work.state = State::free;
      } else if (work.state == State::running) {
        work.state = State::doubt;
      }
    }
    touched_.clear();
    crashed_ = true;
  }
  /// The process ended between two calls, and its runs with it.
  void close() {
    for (auto& [name, work] : keys_) work.lease_until = Timestamp::min();
  }
  void resolved(const std::string& key, bool done) {
    Key& work = keys_[key];
    work.state = done ? State::done : State::free;
    work.perhaps_held = work.perhaps_ended = false;
    if (done) work.was_done = true;
    if (!done) work.runs = 0;
  }

  /// Whether an answer may say that the work was done before.
  [[nodiscard]] bool was_done(const std::string& key) const {
    const auto found = keys_.find(key);
    return found != keys_.end() && found->second.was_done;
  }
  /// The run whose result is the work's.
  [[nodiscard]] std::uint64_t receipt(const std::string& key) const {
    const auto found = keys_.find(key);
    return found == keys_.end() ? 0 : found->second.receipt;
  }
  /// All leases are over, and memory is free: a call has to run it.
  [[nodiscard]] bool must_run(const std::string& key) const {
    const auto found = keys_.find(key);
    if (policy_.attempts_max != 0 || (crashed_ && in_doubt_at_lease_end())) return false;
    if (found == keys_.end()) return true;
    const Key& work = found->second;
    if (work.perhaps_held || work.perhaps_ended) return false;
    return work.state == State::free || (work.state == State::running && !in_doubt_at_lease_end());
  }
  void complain(const std::string& key, const char* what) {
    if (complaint_.empty()) complaint_ = key + " " + what;
  }
  [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }
  [[nodiscard]] std::uint64_t runs() const noexcept { return last_run_; }

 private:
  enum class State : std::uint8_t { free, running, done, kept, doubt };
  struct Key {
    State state = State::free;
    bool perhaps_held = false;   // its failure may not have been written: held until the lease ends
    bool perhaps_ended = false;  // a crash may have come behind its end
    bool was_done = false;
    std::uint64_t run = 0;
    std::uint64_t receipt = 0;
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

  Policy policy_;
  std::map<std::string, Key> keys_;
  std::set<std::string> touched_;
  std::uint64_t last_run_ = 0;
  bool crashed_ = false;
  std::string complaint_;
};

}  // namespace semel::proofs
