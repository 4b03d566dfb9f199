// What an Engine is made of.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "engine/api/impl_access.hpp"
#include "engine/api/sessions.hpp"
#include "engine/core/core.hpp"
#include "engine/core/namespaces.hpp"
#include "engine/logged/group_time.hpp"
#include "engine/upkeep/background_thread.hpp"
#include "engine/upkeep/engine_upkeep.hpp"
#include "engine/upkeep/restorer.hpp"
#include "engine/upkeep/spill.hpp"
#include "engine/waits/wait_queue.hpp"
#include "semel/engine.hpp"

namespace semel {

namespace engine {
class CallLog;
class LoggedWaits;
}  // namespace engine

namespace engine {

/// A call that the replicated log decides, or none. The CallLog stays, and with it the engine,
/// while it lives: set_call_log(nullptr) waits for it.
class LoggedCall {
 public:
  using Log = std::atomic<CallLog*>;
  using Calls = std::atomic<std::size_t>;

  LoggedCall() noexcept = default;
  LoggedCall(const Log& log, Calls& calls) noexcept : calls_(&calls) {
    calls.fetch_add(1, std::memory_order_seq_cst);  // mo: seq_cst [engine.logged_calls]
    log_ = log.load(std::memory_order_seq_cst);     // mo: seq_cst [engine.logged_calls]
  }
  ~LoggedCall() {
    // mo: release [engine.logged_calls]: from here on nothing of the engine is touched
    if (calls_ != nullptr) calls_->fetch_sub(1, std::memory_order_release);
  }
  LoggedCall(const LoggedCall&) = delete;
  LoggedCall& operator=(const LoggedCall&) = delete;

  [[nodiscard]] explicit operator bool() const noexcept { return log_ != nullptr; }
  [[nodiscard]] CallLog& operator*() const noexcept { return *log_; }
  [[nodiscard]] CallLog* operator->() const noexcept { return log_; }

 private:
  CallLog* log_ = nullptr;
  Calls* calls_ = nullptr;
};

}  // namespace engine

class Engine::Impl {
 public:
  Impl(const Options& options, std::uint64_t incarnation);
  ~Impl();

  [[nodiscard]] engine::Core& core() noexcept { return core_; }
  [[nodiscard]] engine::EngineUpkeep& upkeep() noexcept { return upkeep_; }
  [[nodiscard]] engine::Restorer& restorer() noexcept { return restorer_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  /// The time of a call that begins now.
  [[nodiscard]] Timestamp now() noexcept {
    const engine::ThreadContext* const own = core_.threads().try_context();
    return own != nullptr ? core_.now(*own) : engine::now_of(clock_);
  }
  /// The wall clock at that time.
  [[nodiscard]] std::int64_t unix_ms() noexcept {
    const engine::ThreadContext* const own = core_.threads().try_context();
    return own != nullptr && own->decision != nullptr ? own->decision->unix_ms
                                                      : engine::unix_ms_of(clock_);
  }
  /// Whether this thread may change it: a replica is changed by entries of its replicated log
  /// alone.
  [[nodiscard]] bool accepts_changes() noexcept {
    return !core_.options().replicated || core_.context().decision != nullptr;
  }
  /// Whether log_for_call() has to be asked. A hot call looks here first, and asks out of line:
  /// with what a logged call needs in its frame, a replay took 7 ns longer, of 52.
  [[nodiscard]] bool may_have_log() const noexcept {
    // mo: relaxed: most engines have none; read again where there is one
    return call_log.load(std::memory_order_relaxed) != nullptr;
  }
  /// What decides this thread's call, if not the engine by itself: of a replica, outside of its
  /// entries, the log of its group. None: the engine. In a section too: entries wait for it to end,
  /// so that its thread must not wait for them. To be kept until the call no longer needs the
  /// engine.
  [[nodiscard]] engine::LoggedCall log_for_call() noexcept {
    if (!may_have_log()) [[likely]]
      return {};
    const engine::ThreadContext* const own = core_.threads().try_context();
    const bool is_free = own != nullptr && !own->sees_replica() && own->section == nullptr;
    if (!is_free) return {};
    return {call_log, logged_calls};
  }
  [[nodiscard]] engine::Namespaces& namespaces() noexcept { return namespaces_; }
  [[nodiscard]] engine::Sessions& sessions() noexcept { return sessions_; }
  [[nodiscard]] engine::WaitQueue& wait_queue() noexcept { return wait_queue_; }
  [[nodiscard]] engine::Spiller& spiller() noexcept { return spiller_; }
  /// Counters of the calling thread.
  [[nodiscard]] engine::ThreadContext& thread_stats() { return core_.context(); }

  void apply(const StoreOp& op, StoreOutcome& outcome, Timestamp now) noexcept;
  /// At a `given` time, or at that of the call.
  void apply(std::span<const StoreOp> ops, std::span<StoreOutcome> outcomes,
             std::optional<Timestamp> given) noexcept;
  /// Called after an operation on one key of the store.
  void after_operation(engine::ThreadContext& own, const KeyRef& key, bool changed) {
    if (own.drain_due) [[unlikely]]
      upkeep_.drain_own_timers(own);
    // A waiter may be interested when a string command ended a claim.
    if (changed && wait_queue_.has_waiters()) [[unlikely]]
      this->changed(own, key);
  }
  /// A key that may have waiters has changed.
  void changed(const engine::ThreadContext& own, const KeyRef& key) {
    own.section != nullptr ? own.section->note_change(key) : wait_queue_.changed(key.db, key.key);
  }
  /// At the end of a call: waits until what it changed, or saw, has reached the engine's level. ok,
  /// or why that is not known.
  [[nodiscard]] ErrorCode confirm(engine::ThreadContext& own) {
    return core_.guarded_journal().confirm(own);
  }
  [[nodiscard]] ErrorCode confirm() { return confirm(core_.context()); }
  /// The same for a batch: what its last change was given covers its changes, but not all it saw.
  [[nodiscard]] ErrorCode confirm_batch() {
    const bool wrote = std::exchange(core_.context().ticket, 0) != 0;
    if (wrote && core_.options().durability != Durability::memory) core_.guarded_journal().pace();
    return confirm();
  }
  [[nodiscard]] Status confirm(Durability level);
  /// What a change beside the table has brought, or nothing if it changed none: waits for it.
  [[nodiscard]] Status confirm_ticket(Ticket ticket);
  std::size_t advance(std::size_t budget);
  /// Makes the tables, and starts the threads that the options ask for. Errors: see Engine::open.
  [[nodiscard]] Status start();

  /// A live key of `db`, or none. Not uniform, but every key can come.
  [[nodiscard]] std::optional<std::string> random_key(std::uint8_t db);

  [[nodiscard]] Status restore(const Mutation& mutation);
  /// Whether its record is of a claim that must not end by itself, and says that it does.
  [[nodiscard]] bool holds_longer(const Mutation& mutation) const;
  [[nodiscard]] Status restore_database(const Mutation& mutation);
  /// In `all`, a section over everything: ends the records of a database, as stored, with a smaller
  /// version, and takes them out.
  void erase_database(std::uint8_t stored, Version below, Section::Impl& all);

  Version db_map_version = 0;  // under a section over everything
  base::Mutex snapshot_mutex;  // one snapshot at a time
  base::Mutex decision_mutex;  // held while an entry of a replicated log is applied
  // Set before calls are made, and taken away after them.
  engine::LoggedCall::Log call_log{nullptr};
  engine::LoggedCall::Calls logged_calls{0};            // that are under way
  std::shared_ptr<engine::LoggedWaits> logged_waits{};  // with a call log
  const engine::GroupTime* group_clock = nullptr;       // of a replica that takes part

  /// engine::apply_at(), or memory_full where the heap had no room before anything was changed.
  void apply_or_refuse(engine::Operation& operation, const engine::KeyLocation& location,
                       const StoreOp& op, Timestamp now, StoreOutcome& outcome) noexcept;

 private:
  /// What the background thread does each time.
  void step_background();

  std::unique_ptr<const Clock> own_clock_;
  const Clock& clock_;
  engine::Core core_;
  engine::EngineUpkeep upkeep_{core_};
  engine::Restorer restorer_{core_};
  engine::Namespaces namespaces_{core_};
  engine::Sessions sessions_;
  engine::WaitQueue wait_queue_{core_.region(), core_.callbacks()};
  engine::Spiller spiller_{core_, namespaces_, upkeep_, restorer_};
  engine::BackgroundThread background_;
};

}  // namespace semel
