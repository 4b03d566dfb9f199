// Claims of one namespace: claim -> complete | fail | release, renew, wait.
// Source: docs/semantics.md#claims
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "semel/claim.hpp"
#include "semel/function.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

class Engine;
namespace engine {
struct ClaimsParts;
}

/// How a completion treats a result that cannot be kept: it is longer than value_bytes_max, or
/// memory is full. The work has run, and must not run again for this reason.
enum class ResultKeeping : std::uint8_t {
  required,  ///< the call fails, nothing is changed
  optional,  ///< the work is done without the result; OwnerOutcome::dropped has the reason
  none,      ///< the work is done; a digest of the payload is kept, and no result
};

/// Names the work and the owner's right to it: key and epoch of a granted ClaimOutcome.
struct OwnerCall {
  Bytes key{};
  Epoch epoch = 0;
  Bytes payload{};                                  ///< complete: the result; fail: the failure
  std::optional<Duration> lease{};                  ///< renew only; none: the policy's
  ResultKeeping keeping = ResultKeeping::required;  ///< complete only
  std::optional<Policy::OnFailure> on_failure{};    ///< fail only; none: the policy's. in_doubt:
                                                    ///< the payload has the known facts
};

/// How an operator ends a claim in doubt.
enum class Resolution : std::uint8_t { done, released };

/// Receives the answer of a wait. May be empty.
using ClaimCallback = Function<void(ClaimOutcome&&)>;
/// Identifies a wait for cancel_wait(); 0: none.
using WaitTicket = std::uint64_t;

class ClaimWait;

/// A handle on one namespace. A copy counts a reference, so keep a handle instead of looking the
/// namespace up for each call. A handle may outlive its namespace, and may be destroyed after the
/// engine, but not called after it. Thread-safe, except assignment. After the namespace is dropped,
/// calls change nothing and have the error namespace_dropped: a claim with the answer busy, an
/// owner's call with refused.
class Claims {
 public:
  /// Claims the work for the caller. Exactly one of any number of concurrent callers on a
  /// free key is granted. Errors in the outcome: key_empty, key_too_long, bad_option, wrong_kind;
  /// memory_full as busy. Progress: lock-free.
  [[nodiscard]] ClaimOutcome claim(const ClaimRequest& request);

  /// In a namespace of issued keys (Policy::issued): lets `key` be claimed for `ttl`, by default
  /// the policy's attempts_ttl. False: the key is known already, in any state, and stays as it is.
  /// Errors: key_*, bad_option (ttl; the namespace has no issued keys), wrong_kind, memory_full,
  /// refused. Progress: lock-free.
  [[nodiscard]] Result<bool> issue(Bytes key, std::optional<Duration> ttl = {});

  /// Owner calls: compare-and-set on (key, epoch). A call whose answer was lost may be repeated.
  /// Duplicates of work that was completed without a result get replay with result_expired.
  [[nodiscard]] OwnerOutcome complete(const OwnerCall& call);
  [[nodiscard]] OwnerOutcome fail(const OwnerCall& call);
  [[nodiscard]] OwnerOutcome renew(const OwnerCall& call);
  [[nodiscard]] OwnerOutcome release(const OwnerCall& call);

  /// The record as it is; state absent if there is none. Errors: wrong_kind, key_*.
  [[nodiscard]] Result<ClaimView> get(Bytes key);
  /// The newest `count` decisions about `key` at most, with their reasons, from old to new. They
  /// are those of this process: a replica has the decisions that it applied or answered itself.
  /// Simultaneous decisions of different threads may come in either order. Empty if none is known
  /// any more. Errors: key_empty, key_too_long, namespace_dropped, bad_option (count,
  /// 1..limits::decisions_per_key_max; Options::decision_log_bytes is 0), memory_full. Progress:
  /// blocks for the threads that add to a part of the decision log.
  [[nodiscard]] Result<std::vector<ClaimDecision>> explain(
      Bytes key, std::size_t count = limits::decisions_per_key_max);

  // --- batches: an outcome each, in order; a repeated key folds onto its first request --------
  /// outcomes.size() must equal requests.size().
  void claim(std::span<const ClaimRequest> requests, std::span<ClaimOutcome> outcomes);
  void complete(std::span<const OwnerCall> calls, std::span<OwnerOutcome> outcomes);
  /// Grants all or none. True: all are granted. False: nothing was changed, and the outcomes show
  /// the obstacles; a key that was free has the answer granted with epoch 0.
  bool claim_all(std::span<const ClaimRequest> requests, std::span<ClaimOutcome> outcomes);

  // --- waiting: until the work is done, kept as failed, or this caller is promoted to owner ---
  /// Like claim(), but waits while another owner has the work. Answers in_flight with error
  /// timed_out at the deadline, and busy with waiters_full if there are too many waiters. Serves
  /// waiters in order of arrival. Progress: blocks.
  [[nodiscard]] ClaimOutcome claim_or_wait(const ClaimRequest& request, Timestamp deadline);
  /// The same without blocking: `done` runs once, on the thread that ends the wait (a finishing
  /// owner, advance(), or this one). `done` may call the engine, and must not throw (see Callback).
  /// Returns 0 if `done` has run already, else the ticket for cancel_wait(); `done` may have run by
  /// then. In a child of the engine's process, like every call: error forked.
  WaitTicket claim_or_wait(const ClaimRequest& request, Timestamp deadline, ClaimCallback done);
  /// Ends a wait. After it returns, the callback does not run, and its captures are destroyed or
  /// not touched again. True: the callback has not run; if the wait had been granted the claim, the
  /// claim is released. False: the callback has run, or runs further up the stack of this thread.
  /// Progress: blocks while other threads enter or leave queues, and while the callback runs on
  /// another thread: two callbacks that cancel each other deadlock. Does not throw.
  bool cancel_wait(Bytes key, WaitTicket ticket) noexcept;
  /// The same for coroutines: `ClaimOutcome o = co_await ns.claim_or_wait_async(request, when)`.
  /// The request's bytes must live until the awaited expression ends.
  [[nodiscard]] ClaimWait claim_or_wait_async(const ClaimRequest& request, Timestamp deadline);

  // --- operator calls: counted, never used by a helper ----------------------------------------
  /// Removes the record whatever its state. False: there was none.
  [[nodiscard]] Result<bool> forget(Bytes key);
  /// Ends a doubt (or any held claim): done with `result`, or released. False: nothing to resolve.
  [[nodiscard]] Result<bool> resolve(Bytes key, Resolution resolution, Bytes result = {});

  /// The present policy; of a dropped namespace, its last one.
  [[nodiscard]] Policy policy() const noexcept;
  [[nodiscard]] Engine& engine() const noexcept { return *engine_; }
  /// Valid as long as this handle or a copy of it.
  [[nodiscard]] Bytes name() const noexcept;
  /// True: every call of this handle answers namespace_dropped from now on. Engine::claims() finds
  /// the namespace that has the name now.
  [[nodiscard]] bool is_dropped() const noexcept;

  /// Starts a wait for ClaimWait. False: `outcome` is the answer, and `done` is not called. Writes
  /// `ticket` before `done` can run.
  [[nodiscard]] bool begin_wait(const ClaimRequest& request, Timestamp deadline, WaitTicket& ticket,
                                ClaimOutcome& outcome, ClaimCallback done);

  class Namespace;  // in the engine
  /// A counted reference to a namespace, or none.
  class NamespaceRef {
   public:
    NamespaceRef() noexcept = default;
    /// Takes over the reference that `names` was made with.
    explicit NamespaceRef(Namespace* names) noexcept : names_(names) {}
    NamespaceRef(const NamespaceRef& other) noexcept : names_(other.names_) { keep(); }
    NamespaceRef(NamespaceRef&& other) noexcept : names_(std::exchange(other.names_, nullptr)) {}
    NamespaceRef& operator=(NamespaceRef other) noexcept {
      std::swap(names_, other.names_);
      return *this;
    }
    ~NamespaceRef() { let_go(); }
    [[nodiscard]] Namespace& operator*() const noexcept { return *names_; }
    [[nodiscard]] Namespace* operator->() const noexcept { return names_; }
    [[nodiscard]] explicit operator bool() const noexcept { return names_ != nullptr; }

   private:
    void keep() noexcept;
    void let_go() noexcept;

    Namespace* names_ = nullptr;
  };
  Claims(Engine& engine, NamespaceRef names) noexcept
      : engine_(&engine), names_(std::move(names)) {}

 private:
  friend struct engine::ClaimsParts;

  Engine* engine_;
  NamespaceRef names_;
};

/// Awaitable of claim_or_wait_async. Resumes on the thread that ends the wait. The coroutine may be
/// destroyed while it waits: that cancels the wait, and nothing is resumed.
class ClaimWait {
 public:
  ClaimWait(Claims claims, const ClaimRequest& request, Timestamp deadline) noexcept
      : claims_(std::move(claims)), request_(request), deadline_(deadline) {}
  ~ClaimWait() {
    if (ticket_ != 0) claims_.cancel_wait(request_.key, ticket_);
  }
  ClaimWait(const ClaimWait&) = delete;
  ClaimWait& operator=(const ClaimWait&) = delete;
  /// Asks at once: a coroutine that walks over free keys neither suspends nor deepens the stack.
  [[nodiscard]] bool await_ready() {
    outcome_ = claims_.claim(request_);
    return outcome_.answer != ClaimAnswer::in_flight;
  }
  /// `waiting`: a std::coroutine_handle; the caller includes its header. False: the claim was
  /// answered before the wait began, so the coroutine does not suspend.
  template <class Handle>
  [[nodiscard]] bool await_suspend(Handle waiting) {
    return claims_.begin_wait(request_, deadline_, ticket_, outcome_,
                              [this, waiting](ClaimOutcome&& outcome) {
                                outcome_ = std::move(outcome);
                                ticket_ = 0;
                                waiting.resume();
                              });
  }
  ClaimOutcome await_resume() noexcept { return std::move(outcome_); }

 private:
  Claims claims_;
  ClaimRequest request_;
  Timestamp deadline_;
  WaitTicket ticket_ = 0;
  ClaimOutcome outcome_;
};

}  // namespace semel
