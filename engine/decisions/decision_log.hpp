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

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "semel/claim.hpp"
#include "semel/limits.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// A label of at most `size` bytes; a longer one is cut.
template <std::size_t size>
class Label {
 public:
  Label() noexcept {}  // not `= default`: the bytes need not be cleared
  Label(Bytes text) noexcept { *this = text; }
  Label& operator=(Bytes text) noexcept {
    size_ = static_cast<std::uint8_t>(std::min(text.size(), size));
    if (size_ != 0) std::memcpy(bytes_, text.data(), size_);
    return *this;
  }
  [[nodiscard]] Bytes text() const noexcept { return {bytes_, size_}; }

 private:
  static_assert(size < 256);
  std::uint8_t size_ = 0;
  char bytes_[size];
};

/// Numbers of up to 15 places in an order, four bits each, so that one moves in a few instructions.
class PlaceOrder {
 public:
  [[nodiscard]] std::uint8_t at(std::size_t i) const noexcept {
    return static_cast<std::uint8_t>(word_ >> (i * 4) & 15);
  }
  void append(std::uint8_t place, std::size_t count) noexcept {
    word_ |= std::uint64_t{place} << (count * 4);
  }
  /// Of `count` numbers the one at `i` becomes the last.
  void move_to_end(std::size_t i, std::size_t count) noexcept {
    const std::uint64_t before = word_ & ((std::uint64_t{1} << (i * 4)) - 1);
    const std::uint64_t behind = word_ >> (i * 4) >> 4 << (i * 4);
    const std::uint8_t place = at(i);
    word_ = before | behind;
    append(place, count - 1);
  }

 private:
  std::uint64_t word_ = 0;
};

/// One decision as it is kept. Texts are borrowed.
struct DecisionFacts {
  DecisionCall call = DecisionCall::claim;
  std::uint8_t answer = 0;  ///< ClaimAnswer, OwnerAnswer, or of an operator's call: 1 if found
  std::uint8_t flags = 0;
  bool changed = false;  ///< the record
  ErrorCode error = ErrorCode::ok;
  std::uint32_t attempt = 0;
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

  /// For a caller that is going to add() about this key, and has other things to wait for before:
  /// brings the head of its bucket into the cache, later the place that comes next there.
  void fetch_bucket(std::uint64_t hash) const noexcept { __builtin_prefetch(&bucket_of(hash), 1); }
  void fetch_place(std::uint64_t hash) const noexcept {
    const Bucket& bucket = bucket_of(hash);
    // mo: relaxed: a hint; a wrong one costs a cache miss
    const auto* const place =
        reinterpret_cast<const char*>(bucket.places + bucket.next.load(std::memory_order_relaxed));
    for (std::size_t at = 0; at < fetched_bytes; at += 64) __builtin_prefetch(place + at, 1);
  }

  /// Notes a decision about the key with this hash. Progress: wait-free; gives up if another
  /// thread keeps the bucket's lock.
  void add(std::uint64_t hash, const DecisionFacts& facts) noexcept;

  /// Calls `visit(facts, last, times)` with each decision about a key, from old to new; `facts.at`
  /// is the time of the first. Texts live as long as the call. Blocks for threads that add.
  template <class Visit>
  void for_each(std::uint64_t hash, Visit&& visit) const {
    std::array<Place, limits::decisions_per_key_max> found;
    const std::size_t count = copy(hash, found);
    for (const Place& place : std::span{found}.first(count)) {
      visit(facts_of(place), Timestamp{Millis{place.last_ms}}, place.times);
    }
  }
  /// Decisions that were left out because their bucket was locked.
  [[nodiscard]] std::uint64_t missed() const noexcept {
    return missed_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bucket_count_ * bucket_bytes; }

 private:
  struct Place {
    std::uint64_t hash;
    std::int64_t first_ms;
    std::int64_t last_ms;
    std::uint64_t times;
    Epoch epoch;
    Epoch met_epoch;
    std::int64_t met_lease_ms;
    std::int64_t span_ms;
    std::uint32_t attempt;
    std::uint16_t error;
    DecisionCall call;
    std::uint8_t answer;
    std::uint8_t flags;
    ClaimState met;
    bool changed;
    std::uint8_t owner_size;
    std::uint8_t client_size;
    std::uint8_t met_owner_size;
    char text[2 * limits::owner_label_max + client_bytes_max];
  };
  static_assert(sizeof(Place) <= 256);
  static constexpr std::size_t fetched_bytes = 192;  // the numbers, and labels of usual lengths
  struct alignas(64) Bucket {
    std::atomic<std::uint32_t> lock{0};
    std::atomic<std::uint8_t> next{0};  // the place that the next decision takes, most likely; < 15
    std::uint8_t count = 0;
    PlaceOrder order;                     // from oldest to newest
    std::uint16_t tags[place_count + 1];  // the last of none
    alignas(64) Place places[place_count];
  };
  static_assert(sizeof(Bucket) <= bucket_bytes);
  class Lock;

  [[nodiscard]] Bucket& bucket_of(std::uint64_t hash) const noexcept {
    // The upper half, which is no part of the tag.
    const auto index = ((hash >> 32) * bucket_count_) >> 32;
    return *reinterpret_cast<Bucket*>(memory_ + index * bucket_bytes);
  }
  /// The places of a key in its bucket, as bits.
  [[nodiscard]] static unsigned places_of(const Bucket& bucket, std::uint64_t hash) noexcept;
  /// The newest of some places, which are bits; not none.
  [[nodiscard]] static std::uint8_t newest_of(const Bucket& bucket, unsigned places) noexcept;
  /// The place for one more decision about a key that has `places`: taken from the key where its
  /// bounds say so, else the next one, else the oldest of the bucket.
  [[nodiscard]] static std::uint8_t choose_place(Bucket& bucket, unsigned places,
                                                 bool changes) noexcept;
  /// Where in the order the key's bounds take it from; none: they do not.
  [[nodiscard]] static std::optional<std::size_t> bound_of(const Bucket& bucket, unsigned places,
                                                           bool changes) noexcept;
  [[nodiscard]] static bool merge(Place& newest, const DecisionFacts& facts) noexcept;
  static void write(Place& place, std::uint64_t hash, const DecisionFacts& facts) noexcept;
  [[nodiscard]] static DecisionFacts facts_of(const Place& place) noexcept;
  std::size_t copy(std::uint64_t hash,
                   std::span<Place, limits::decisions_per_key_max> found) const noexcept;

  std::byte* memory_ = nullptr;  // mapped; ours
  std::uint64_t bucket_count_ = 0;
  mutable std::atomic<std::uint64_t> missed_{0};
};

}  // namespace semel::engine
