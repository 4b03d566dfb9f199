// How far the journal is synced, how far callers want it synced, and the rounds in between.
//
// Concurrency
//   [storage.synced]    release store of the syncing thread, acquire loads of waiters.
//   [storage.wanted]    the log offset that a waiter wants synced. A waiter stores it, then reads
//                       synced_; the syncing thread stores synced_ and then reads it. All four are
//                       seq_cst, so the syncing thread does not sleep while a request is open.
//   [storage.round]     the target of the newest round, then its number: release stores of the
//                       syncing thread, acquire loads of waiters, which choose the rounds that wake
//                       them.
//
// Invariant: synced_ <= target_, and neither goes back.
#pragma once

#include <atomic>
#include <cstdint>

#include "semel/journal.hpp"
#include "storage/log/log_format.hpp"
#include "storage/log/signal.hpp"

namespace semel::storage {

class SyncProgress {
 public:
  explicit SyncProgress(LogOffset begin) noexcept
      : requested_(begin), synced_(begin), target_(begin) {}

  // --- waiters -----------------------------------------------------------------------------------
  [[nodiscard]] LogOffset synced() const noexcept {
    return synced_.load(std::memory_order_acquire);  // mo: acquire [storage.synced]
  }
  /// Wakes the syncing thread, unless a request is open that has done so.
  void request(Ticket ticket) noexcept {
    // mo: seq_cst [storage.wanted]: either the syncing thread sees this request, or we see its
    //     round.
    LogOffset before = requested_.load(std::memory_order_seq_cst);
    while (before < ticket &&
           !requested_.compare_exchange_weak(before, ticket, std::memory_order_seq_cst)) {
    }
    // mo: seq_cst [storage.wanted]
    if (before <= synced_.load(std::memory_order_seq_cst)) signal_.raise();
  }
  /// The bits of the rounds that may sync this ticket. Of 64 callers a third arrive during a round
  /// that does not cover them; waking them for it would cost as much as waking them for their own.
  [[nodiscard]] std::uint32_t rounds_for(Ticket ticket) const noexcept {
    // mo: acquire [storage.round]: in this order. The target belongs to this round or to the next;
    //     to a later one only if a round has ended meanwhile, and then a wait returns at once.
    const std::uint32_t round = round_.load(std::memory_order_acquire);
    const bool covered = ticket <= target_.load(std::memory_order_acquire);
    const std::uint32_t first = covered ? round : round + 1;
    return bit_of(first) | bit_of(first + 1);
  }
  /// How long a round takes, smoothed.
  [[nodiscard]] double round_seconds() const noexcept {
    return round_seconds_.load(std::memory_order_relaxed);  // mo: relaxed: a figure
  }

  // --- the syncing thread ------------------------------------------------------------------------
  /// Wakes the syncing thread.
  [[nodiscard]] Signal& signal() noexcept { return signal_; }
  /// A waiter wants more synced than is.
  [[nodiscard]] bool is_requested() const noexcept {
    // mo: seq_cst [storage.wanted], both
    return requested_.load(std::memory_order_seq_cst) > synced_.load(std::memory_order_seq_cst);
  }
  void begin_round(LogOffset target) noexcept;
  /// The disk has all before `synced`. Returns the bit of the waiters of the newest round.
  [[nodiscard]] std::uint32_t publish(LogOffset synced) noexcept;
  void smooth_round(double seconds) noexcept;
  void count_request() noexcept {
    requested_rounds_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a figure
  }

  // --- figures -----------------------------------------------------------------------------------
  [[nodiscard]] std::uint64_t requested_rounds() const noexcept {
    return requested_rounds_.load(std::memory_order_relaxed);  // mo: relaxed: a figure
  }
  [[nodiscard]] std::uint64_t published_rounds() const noexcept {
    return published_rounds_.load(std::memory_order_relaxed);  // mo: relaxed: a figure
  }

 private:
  [[nodiscard]] static std::uint32_t bit_of(std::uint32_t round) noexcept {
    return std::uint32_t{1} << (round % 32);
  }
  void check_invariants() const noexcept;

  Signal signal_;                                   // for the syncing thread
  std::atomic<LogOffset> requested_;                // [storage.wanted]
  std::atomic<LogOffset> synced_;                   // [storage.synced] [storage.wanted]
  std::atomic<LogOffset> target_;                   // [storage.round] of the newest round
  std::atomic<std::uint32_t> round_{0};             // [storage.round] its number
  std::atomic<std::uint64_t> requested_rounds_{0};  // that were requested
  std::atomic<std::uint64_t> published_rounds_{0};
  std::atomic<double> round_seconds_{0};  // how long they take, smoothed
};

}  // namespace semel::storage
