// Where the engine calls what its user wrote: an exception ends there. It is counted, reported
// to Options::on_callback_exception, and the engine goes on as if the callback had returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "engine/memory/threads.hpp"
#include "semel/engine.hpp"
#include "semel/journal.hpp"

namespace semel::engine {

/// Safe from any thread.
class CallbackWatch {
 public:
  explicit CallbackWatch(const Function<void(Callback, std::exception_ptr)>& sink) : sink_(sink) {}

  /// Calls `callback`. False: it threw.
  template <class Function>
  bool run(Callback which, Function&& callback) noexcept {
    try {
      std::forward<Function>(callback)();
      return true;
    } catch (...) {
      report(which);
      return false;
    }
  }
  [[nodiscard]] std::uint64_t threw() const noexcept {
    return threw_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

 private:
  void report(Callback which) noexcept {
    threw_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
    if (!sink_) return;
    try {
      sink_(which, std::current_exception());
    } catch (...) {  // counted it is
    }
  }

  const Function<void(Callback, std::exception_ptr)> sink_;
  std::atomic<std::uint64_t> threw_{0};
};

/// The journal as it is called after a change: the change is visible already, so an exception comes
/// too late to refuse it. Without a journal only journal() and confirm() may be called.
class GuardedJournal {
 public:
  GuardedJournal(Journal* journal, Durability durability, CallbackWatch& callbacks) noexcept
      : journal_(journal), durability_(durability), callbacks_(callbacks) {}

  /// Null: none.
  [[nodiscard]] Journal* journal() const noexcept { return journal_; }
  /// Before a change; `frees`: it only ends records.
  [[nodiscard]] bool accepts(bool frees) const noexcept {
    SEMEL_ASSERT(journal_ != nullptr);
    return journal_->accepts_writes() || (frees && journal_->accepts_frees());
  }

  /// 0: not taken, or it threw.
  [[nodiscard]] Ticket append(std::span<const Mutation> group) const noexcept {
    SEMEL_ASSERT(journal_ != nullptr && !group.empty());
    Ticket ticket = 0;
    callbacks_.run(Callback::journal, [&] { ticket = journal_->append(group); });
    return ticket;
  }
  [[nodiscard]] Ticket newest() const noexcept {
    Ticket ticket = 0;
    callbacks_.run(Callback::journal, [&] { ticket = journal_->newest(); });
    return ticket;
  }
  void pace() const noexcept {
    callbacks_.run(Callback::journal, [&] { journal_->pace(); });
  }
  /// False: not reached, not known, or it threw.
  [[nodiscard]] bool wait_for(Ticket ticket, Durability level) const noexcept {
    bool reached = false;
    callbacks_.run(Callback::journal, [&] { reached = journal_->wait(ticket, level).has_value(); });
    return reached;
  }
  /// Whether confirm() does nothing.
  [[nodiscard]] bool confirms_nothing() const noexcept { return durability_ == Durability::memory; }
  /// At the end of a call: waits until what it changed, or saw, has reached the engine's level. ok,
  /// or why that is not known.
  [[nodiscard]] ErrorCode confirm(ThreadContext& own) const {
    if (durability_ == Durability::memory) [[likely]]
      return ErrorCode::ok;
    return wait_for_call(own);
  }

 private:
  [[nodiscard]] ErrorCode wait_for_call(ThreadContext& own) const;

  Journal* const journal_;
  const Durability durability_;
  CallbackWatch& callbacks_;
};

}  // namespace semel::engine
