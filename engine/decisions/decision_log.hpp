// The decision log: the recent decisions about each key, in a fixed amount of memory.
//
// Buckets of 4 KiB, chosen by the keyed hash of the key, so that clients cannot choose keys that
// share one. A bucket has places for 15 records; when they are full the oldest is dropped. The
// bounds are per key, too: one key has at most 8 places, and at most 4 of them for answers that
// changed nothing, so that however often a key is asked for, its grants stay, and so do at least 7
// decisions about other keys of its bucket. Equal decisions in a row are one record with a count.
//
//   bucket   head (64 bytes) | place 0 | .. | place 14 | unused
//   head     lock, count, places from oldest to newest, tags (16 bits of the hash each)
//   place    256 bytes: the numbers, then the three labels one behind the other
//
// Goals: no allocation, no wait longer than a bounded spin, few cache lines. Non-goals: it is not
// durable, not replicated, and not exact: a key is known by 64 bits of its keyed hash, and a
// decision is left out when its bucket stays locked (missed()).
//
// Concurrency
//   [decisions.lock]  exchange with acquire when a thread takes a bucket's lock, pairs with the
//                     release store when it gives it back. All else in a bucket is plain and under
//                     it, but `next`, a hint that is read without the lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "semel/claim.hpp"
#include "semel/claim_fields.hpp"
#include "semel/limits.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// The order of up to 15 places, four bits each, so that one moves in a few instructions. Place i
/// begins at i, and a place behind those in use has not moved: one more is the last already.
class PlaceOrder {
 public:
  [[nodiscard]] std::uint8_t at(std::size_t i) const noexcept { return at(moved_ ^ unmoved, i); }
  /// Of the first `count` the one at `i` becomes the last.
  void move_to_end(std::size_t i, std::size_t count) noexcept {
    const std::uint64_t word = moved_ ^ unmoved;
    const auto below = [](std::size_t places) { return (std::uint64_t{1} << (places * 4)) - 1; };
    const std::uint64_t stays = word & (below(i) | ~below(count));
    const std::uint64_t shifted = word >> 4 & below(count - 1) & ~below(i);
    const std::uint64_t last = std::uint64_t{at(word, i)} << ((count - 1) * 4);
    moved_ = (stays | shifted | last) ^ unmoved;
  }

 private:
  static constexpr std::uint64_t unmoved = 0xfedc'ba98'7654'3210;

  [[nodiscard]] static std::uint8_t at(std::uint64_t word, std::size_t i) noexcept {
    return static_cast<std::uint8_t>(word >> (i * 4) & 15);
  }

  std::uint64_t moved_ = 0;  // beside where each began, so that memory of zeros is a new order
};

/// The numbers of a claim in the order of claim_numbers; 0: not known.
using DecisionNumbers = std::array<std::uint32_t, claim_numbers.size()>;

[[nodiscard]] inline DecisionNumbers numbers_of(const ClaimRecord& record) noexcept {
  DecisionNumbers numbers{};
  each_row<claim_numbers>([&](auto number) { numbers[number.index] = record.*number.row.kept; });
  return numbers;
}

/// One decision as it is kept. Texts are borrowed.
struct DecisionFacts {
  DecisionCall call = DecisionCall::claim;
  std::uint8_t answer = 0;  ///< ClaimAnswer, OwnerAnswer, or of an operator's call: 1 if found
  std::uint8_t flags = 0;
  bool changed = false;  ///< the record
  ErrorCode error = ErrorCode::ok;
  DecisionNumbers numbers{};
  Epoch epoch = 0;
  Timestamp at{};
  Millis span{0};  ///< granted, renewed: the lease; in_flight: the rest of it
  ClaimState met = ClaimState::absent;
  Epoch met_epoch = 0;
  Timestamp met_lease_until{};
  Bytes owner{};
  Bytes client{};
  Bytes met_owner{};

  enum Flag : std::uint8_t {
    takeover = 1,
    poison = 2,
    late = 4,
    dropped = 8,  ///< the result is not kept, or no longer
    owner_dead = 16,
    as_done = 32,  ///< resolve
  };
  [[nodiscard]] bool has(Flag flag) const noexcept { return (flags & flag) != 0; }
  [[nodiscard]] std::uint32_t attempt() const noexcept {
    static_assert(claim_numbers.front().noted == &ClaimDecision::attempt);
    return numbers.front();
  }
};

class DecisionLog {
 public:
  static constexpr std::size_t bucket_bytes = 4096;
  static constexpr std::size_t place_count = 15;
  static constexpr std::size_t client_bytes_max = 48;  ///< a longer one is cut

  DecisionLog() noexcept = default;
  ~DecisionLog();
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;

  /// Room for `bytes`, at least one bucket. False: no memory. What it holds is charged by the
  /// caller.
  [[nodiscard]] bool start(std::size_t bytes) noexcept;

  struct Bucket;
  [[nodiscard]] Bucket& bucket_of(std::uint64_t hash) const noexcept {
    // The upper half, which is no part of the tag.
    const auto index = ((hash >> 32) * bucket_count_) >> 32;
    return *reinterpret_cast<Bucket*>(memory_ + index * bucket_bytes);
  }
  /// For a caller that is going to add() to this bucket, and has other things to wait for before:
  /// brings its head into the cache, later the place that comes next there.
  static void fetch_head(const Bucket& bucket) noexcept { __builtin_prefetch(&bucket, 1); }
  static void fetch_place(const Bucket& bucket) noexcept;

  /// Notes a decision about the key with this hash. Progress: wait-free; gives up if another
  /// thread keeps the bucket's lock.
  void add(std::uint64_t hash, const DecisionFacts& facts) noexcept;
  struct Place;
  /// The same in the frame of the caller, which has looked for the bucket, and writes all that
  /// DecisionFacts has but the call by `fill(Place&)`, once or twice. In decision_write.hpp.
  template <class Fill>
  void add_here(Bucket& bucket, std::uint64_t hash, DecisionCall call, bool changes,
                const Fill& fill) noexcept;
  /// One more that is left out.
  void miss() noexcept {
    missed_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

  /// Calls `visit(facts, last, times)` with each decision about a key, from old to new; `facts.at`
  /// is the time of the first. Texts live as long as the call. Blocks for threads that add.
  template <class Visit>
  void for_each(std::uint64_t hash, Visit&& visit) const;
  /// Decisions that were left out because their bucket was locked, or for want of memory.
  [[nodiscard]] std::uint64_t missed() const noexcept {
    return missed_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bucket_count_ * bucket_bytes; }

 private:
  class Lock;

  /// The places of a key in its bucket, as bits.
  [[nodiscard]] static unsigned places_of(const Bucket& bucket, std::uint64_t hash) noexcept;
  /// Whether the newest of some places, which are bits and not none, takes the decision as well.
  [[nodiscard]] static bool merge_newest(Bucket& bucket, unsigned places,
                                         const Place& fresh) noexcept;
  /// The place for one more decision about a key that has `places`: taken from the key where its
  /// bounds say so, else the next one, else the oldest of the bucket.
  [[nodiscard]] static std::uint8_t choose_place(Bucket& bucket, unsigned places,
                                                 bool changes) noexcept;
  /// Where in the order the key's bounds take it from; none: they do not.
  [[nodiscard]] static std::optional<std::size_t> bound_of(const Bucket& bucket, unsigned places,
                                                           bool changes) noexcept;
  [[nodiscard]] static bool merge(Place& newest, const Place& fresh) noexcept;
  [[nodiscard]] static DecisionFacts facts_of(const Place& place) noexcept;
  std::size_t copy(std::uint64_t hash,
                   std::span<Place, limits::decisions_per_key_max> found) const noexcept;

  std::byte* memory_ = nullptr;  // mapped; ours
  std::uint64_t bucket_count_ = 0;
  mutable std::atomic<std::uint64_t> missed_{0};
};

struct DecisionLog::Place {
  std::uint64_t hash;
  std::int64_t first_ms;
  std::int64_t last_ms;
  std::uint64_t times;
  Epoch epoch;
  Epoch met_epoch;
  std::int64_t met_lease_ms;
  std::int64_t span_ms;
  DecisionNumbers numbers;
  std::uint16_t error;
  DecisionCall call;
  std::uint8_t answer;
  std::uint8_t flags;
  ClaimState met;
  bool changed;
  std::uint8_t owner_size;
  std::uint8_t client_size;
  std::uint8_t met_owner_size;
  char text[2 * limits::owner_label_max + client_bytes_max];  // owner, client, met_owner

  [[nodiscard]] Bytes owner() const noexcept { return {text, owner_size}; }
  [[nodiscard]] Bytes client() const noexcept { return {text + owner_size, client_size}; }
  [[nodiscard]] Bytes met_owner() const noexcept {
    return {text + owner_size + client_size, met_owner_size};
  }
};
static_assert(sizeof(DecisionLog::Place) <= 256);

struct alignas(64) DecisionLog::Bucket {
  std::atomic<std::uint32_t> lock{0};
  std::atomic<std::uint8_t> next{0};  // the place that the next decision takes, most likely; < 15
  std::uint8_t count = 0;
  PlaceOrder order;                     // from oldest to newest
  std::uint16_t tags[place_count + 1];  // the last of none
  alignas(64) Place places[place_count];
};
static_assert(sizeof(DecisionLog::Bucket) <= DecisionLog::bucket_bytes);

/// Holds a bucket, or not if it stays locked.
class DecisionLog::Lock {
 public:
  [[gnu::always_inline]] explicit Lock(Bucket& bucket, bool waits = false) noexcept
      : bucket_(bucket) {
    // mo: acquire [decisions.lock]: what the last holder wrote is read.
    held_ = bucket.lock.exchange(1, std::memory_order_acquire) == 0;
    if (!held_) [[unlikely]]
      held_ = wait(bucket, waits);
  }
  [[gnu::always_inline]] ~Lock() {
    // mo: release [decisions.lock]: the next holder sees the writes.
    if (held_) bucket_.lock.store(0, std::memory_order_release);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  [[nodiscard]] explicit operator bool() const noexcept { return held_; }

 private:
  /// False: it stays locked, and the caller does not wait `for_long`.
  [[nodiscard, gnu::cold]] static bool wait(Bucket& bucket, bool for_long) noexcept;

  Bucket& bucket_;
  bool held_;
};

inline void DecisionLog::fetch_place(const Bucket& bucket) noexcept {
  // mo: relaxed: a hint; a wrong one costs a cache miss
  const auto* const place =
      reinterpret_cast<const char*>(bucket.places + bucket.next.load(std::memory_order_relaxed));
  constexpr std::size_t fetched_bytes = 192;  // the numbers, and labels of usual lengths
  for (std::size_t at = 0; at < fetched_bytes; at += 64) __builtin_prefetch(place + at, 1);
}

template <class Visit>
void DecisionLog::for_each(std::uint64_t hash, Visit&& visit) const {
  std::array<Place, limits::decisions_per_key_max> found;
  const std::size_t count = copy(hash, found);
  for (const Place& place : std::span{found}.first(count)) {
    visit(facts_of(place), Timestamp{Millis{place.last_ms}}, place.times);
  }
}

}  // namespace semel::engine
