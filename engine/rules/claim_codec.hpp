// A claim record as the bytes of a table record of Kind::claim.
//
// In memory only: the format has no version, because these bytes never reach a disk (a Mutation
// carries the ClaimRecord). Little-endian. What a record does not have costs no bytes:
//
//   0  u16: bits 0..2 state, then flags of the optional fields
//   2  u64 epoch
//   10 u32 attempts, u8 bytes of each label, u8 fingerprint algorithm, 0 up to 18 (none: 1 attempt,
//      no label)
//   .. 6 bytes each: lease_until, result_until, unique_until (all ones: does not end)
//   .. u64 session
//   .. 16 bytes each: claim_id, result_digest (once the result has expired: while the result is
//      there, it is compared itself), fingerprint digest (algorithm != 0)
//   .. u32 each: the numbers that have a bit in semel/claim_fields.hpp
//   .. the labels (semel/claim_fields.hpp: the owner)
//   .. u32 bytes of the memos, memos (of work that is not over, memo_list.hpp)
//   .. the result up to the end
//
// A held claim without extras takes 24 bytes, a finished one 16 bytes and its result.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "engine/rules/bytes.hpp"
#include "semel/claim.hpp"
#include "semel/claim_fields.hpp"

namespace semel::engine {

/// Where a decision builds the bytes it stores. Small records need no allocation.
class Scratch {
 public:
  static constexpr std::size_t inline_bytes = 256;

  Scratch() noexcept {}  // not `= default`: value-initialising would clear the buffer on each call
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Room for `bytes`. Invalidates what an earlier call returned.
  [[nodiscard]] char* reserve(std::size_t bytes) {
    if (bytes <= inline_bytes) return buffer_;
    if (bytes > heap_bytes_) {
      heap_ = std::make_unique_for_overwrite<char[]>(bytes);
      heap_bytes_ = bytes;
    }
    return heap_.get();
  }

 private:
  char buffer_[inline_bytes];
  std::unique_ptr<char[]> heap_;
  std::size_t heap_bytes_ = 0;
};

/// Bits of the numbers that are stored behind the fingerprint, 4 bytes each.
inline constexpr unsigned claim_number_bits = [] {
  unsigned bits = 0;
  for (const ClaimNumber& number : claim_numbers) bits |= number.memory;
  return bits;
}();

/// Bytes of encode() beyond result and memos, at most: what a claim may add to
/// Options::value_bytes_max.
inline constexpr std::size_t claim_overhead_max =
    10 + 8 + 3 * 6 + 8 + 3 * 16 + 4 * std::popcount(claim_number_bits) + claim_labels_bytes_max + 4;
static_assert(claim_overhead_max <= Scratch::inline_bytes);

/// A time in the 48 bits that a record has for it: milliseconds that reach 8,900 years, all ones
/// for "does not end". A time before the clock's zero (a restored record's, after a reboot) becomes
/// the first millisecond: over.
inline constexpr std::uint64_t stored_no_end = (std::uint64_t{1} << 48) - 1;
[[nodiscard, gnu::always_inline]] inline std::uint64_t stored_time(Timestamp when) noexcept {
  const std::int64_t ms = std::max<std::int64_t>(1, when.time_since_epoch().count());
  return std::min(static_cast<std::uint64_t>(ms), stored_no_end);
}
[[nodiscard, gnu::always_inline]] inline Timestamp time_of(std::uint64_t stored) noexcept {
  return stored == stored_no_end ? no_end : Timestamp{Millis{static_cast<std::int64_t>(stored)}};
}

/// The bytes of `record`, valid until `scratch` is used again. The record's own bytes may not lie
/// in `scratch`. A zero time or session is not stored: zero is what decode() gives back; a time
/// before zero comes back as 1 ms.
[[nodiscard]] Bytes encode(const ClaimRecord& record, Scratch& scratch);

/// Reads what encode() wrote; owner, memos and result point into `bytes`. False: not a claim's
/// bytes. The memos are taken as they are.
[[nodiscard]] bool decode(Bytes bytes, ClaimRecord& record) noexcept;

/// The rest of claim_wake_of(), of a record that may have to be checked before its end.
[[nodiscard]] Timestamp early_claim_wake_of(Bytes bytes, Timestamp due) noexcept;
/// True for the bytes of a claim in flight that has a lease.
[[nodiscard]] inline bool is_leased(Bytes bytes) noexcept {
  constexpr char asked = 0x17, held_until = 0x11;  // see claim_codec.cpp
  return !bytes.empty() && (bytes.front() & asked) == held_until;
}
/// When the wheel should check an encoded record that ends at `due`: at the end of its lease, as
/// nearly all claims are over by then and the timer serves what they have become; or at the end of
/// its result, if that is earlier and there is one, to trim it.
[[nodiscard, gnu::always_inline]] inline Timestamp claim_wake_of(Bytes bytes,
                                                                 Timestamp due) noexcept {
  constexpr std::uint16_t details = 0x200;  // see claim_codec.cpp, as all of these
  constexpr std::size_t lease_at = 10, details_bytes = 8, time_bytes = 6;
  std::uint16_t head = 0;
  if (bytes.size() >= sizeof head) [[likely]]
    std::memcpy(&head, bytes.data(), sizeof head);
  if (is_leased(bytes)) [[likely]] {
    const std::size_t at = lease_at + (head & details ? details_bytes : 0);
    if (due == no_end || bytes.size() < at + time_bytes) return due;
    std::uint64_t lease_until = 0;
    std::memcpy(&lease_until, bytes.data() + at, time_bytes);
    return std::min(due, Timestamp{Millis{static_cast<std::int64_t>(lease_until)}});
  }
  // Nearly all results end with their record, and are asked no more than this.
  constexpr std::uint16_t asked = 0x102f, done_with_two_ends = 0x22;
  return (head & asked) == done_with_two_ends ? early_claim_wake_of(bytes, due) : due;
}

/// True for the bytes of a record in state vacant.
[[nodiscard]] inline bool is_vacant(Bytes bytes) noexcept {
  return !bytes.empty() && bytes.front() == static_cast<char>(ClaimState::vacant);
}

/// True for the bytes of a record in state done or failed, of which no claim changes more than the
/// end.
[[nodiscard]] inline bool is_finished(Bytes bytes) noexcept {
  constexpr char state_bits = 7;
  const char state = static_cast<char>(bytes.empty() ? 0 : bytes.front() & state_bits);
  return state == static_cast<char>(ClaimState::done) ||
         state == static_cast<char>(ClaimState::failed);
}

/// False: memos that cannot be read. Costs a comparison where there are none.
[[nodiscard]] bool has_sound_memos(Bytes bytes) noexcept;

/// The answer to a repeat of finished work, read without the rest of its record.
struct Replay {
  std::uint32_t attempts = 0;
  Bytes result;  ///< points into the record
};
/// False: not done, the result has expired, the record has numbers beside its attempts, or the
/// bytes are not a claim; decode() tells these apart.
[[nodiscard]] bool read_replay(Bytes bytes, Timestamp now, Replay& replay) noexcept;

// The two records that nearly all duplicates meet: of a first attempt by a caller that said no more
// than its key. They are read in the frame of the call, and what differs from them elsewhere.
inline constexpr std::uint16_t plain_done_head = 0x442, plain_held_head = 0x91;

/// As encode() writes a time: in 48 bits, all ones: does not end. `end`: of its bytes.
[[nodiscard, gnu::always_inline]] inline std::int64_t time_before(Bytes bytes,
                                                                  std::size_t end) noexcept {
  std::uint64_t word;
  std::memcpy(&word, bytes.data() + end - sizeof word, sizeof word);
  return static_cast<std::int64_t>(word >> 16);
}
[[nodiscard, gnu::always_inline]] inline bool has_head(Bytes bytes, std::uint16_t wanted,
                                                       std::size_t bytes_min) noexcept {
  std::uint16_t head;
  if (bytes.size() < bytes_min) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  return head == wanted;
}
/// A result that has not ended: as read_replay(), of a first attempt. False: that one knows more.
[[nodiscard, gnu::always_inline]] inline bool read_plain_replay(Bytes bytes, Timestamp now,
                                                                Bytes& result) noexcept {
  constexpr std::size_t before = 16;
  if (!has_head(bytes, plain_done_head, before)) return false;
  if (time_before(bytes, before) <= now.time_since_epoch().count()) return false;
  result = {bytes.data() + before, bytes.size() - before};
  return true;
}
/// The end of the lease, and the session, of a claim in flight: as read_held(), of a first attempt.
/// False: that one knows more.
[[nodiscard, gnu::always_inline]] inline bool read_plain_held(Bytes bytes, Timestamp& lease_until,
                                                              SessionId& session) noexcept {
  constexpr std::size_t before_session = 16, all = 24;
  if (!has_head(bytes, plain_held_head, all)) return false;
  lease_until = Timestamp{Millis{time_before(bytes, before_session)}};
  std::memcpy(&session, bytes.data() + before_session, sizeof session);
  return true;
}

/// Epoch and end of the lease of a claim in flight that has no owner's name, as read_met(). False:
/// that one knows more.
[[nodiscard, gnu::always_inline]] inline bool read_plain_lease(Bytes bytes, Epoch& epoch,
                                                               Timestamp& lease_until) noexcept {
  constexpr std::size_t before = 16;
  constexpr std::uint16_t session = 0x80;
  std::uint16_t head;
  if (bytes.size() < before) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  if ((head | session) != plain_held_head) return false;
  std::memcpy(&epoch, bytes.data() + sizeof head, sizeof epoch);
  lease_until = Timestamp{Millis{time_before(bytes, before)}};
  return true;
}

/// As encode() of a first grant that has nothing else: 16 or 24 bytes. lease_until is not zero.
[[nodiscard]] constexpr std::size_t granted_bytes(SessionId session) noexcept {
  return session != 0 ? 24 : 16;
}
[[gnu::always_inline]] inline void write_granted(char* to, Epoch epoch, SessionId session,
                                                 Timestamp lease_until) noexcept {
  constexpr std::uint16_t has_session = 0x80;
  const auto head =
      static_cast<std::uint16_t>(session != 0 ? plain_held_head : plain_held_head & ~has_session);
  const std::uint64_t lease = stored_time(lease_until);
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + 2, &epoch, sizeof epoch);
  std::memcpy(to + 10, &lease, 6);
  if (session != 0) std::memcpy(to + 16, &session, sizeof session);
}

/// The length of each label.
using LabelBytes = std::array<std::uint8_t, claim_labels.size()>;
[[nodiscard]] constexpr std::size_t sum_of(const LabelBytes& each) noexcept {
  std::size_t sum = 0;
  for (const std::uint8_t bytes : each) sum += bytes;
  return sum;
}
/// The owner among labels that stand one behind the other up to the end of `bytes`.
[[nodiscard]] inline Bytes owner_at_end(Bytes bytes, const LabelBytes& each) noexcept {
  static_assert(claim_labels.front().kept == &ClaimRecord::owner);
  return {bytes.data() + bytes.size() - sum_of(each), each.front()};
}

/// What the decision log notes of a record that a call has met.
struct MetClaim {
  ClaimState state = ClaimState::absent;
  Epoch epoch = 0;
  Timestamp lease_until{};
  Bytes owner;  ///< points into the record
};
/// False: not a claim's bytes.
[[nodiscard]] bool read_met(Bytes bytes, MetClaim& met) noexcept;

/// A claim in flight, read without the rest of its record.
struct HeldClaim {
  std::uint16_t head = 0;
  LabelBytes label_bytes{};
  std::uint8_t algorithm = 0;  ///< of the fingerprint
  std::uint32_t attempts = 0;
  Epoch epoch = 0;
  SessionId session = 0;
  Timestamp lease_until{};
  Bytes identity;  ///< fingerprint, numbers and labels, as the record has them

  [[nodiscard]] Bytes owner() const noexcept { return owner_at_end(identity, label_bytes); }
};
/// The rest of read_held().
[[nodiscard]] bool read_any_held(Bytes bytes, HeldClaim& held) noexcept;
/// False: not held, or without what every held claim has, or the bytes are not a claim.
[[nodiscard, gnu::always_inline]] inline bool read_held(Bytes bytes, HeldClaim& held) noexcept {
  constexpr std::uint16_t has_session = 0x80;
  constexpr std::size_t before_session = 16;
  if (bytes.size() < before_session) [[unlikely]]
    return false;
  std::memcpy(&held.head, bytes.data(), sizeof held.head);
  if ((held.head | has_session) != plain_held_head) [[unlikely]]
    return read_any_held(bytes, held);
  std::memcpy(&held.epoch, bytes.data() + 2, sizeof held.epoch);
  std::uint64_t lease = 0;
  std::memcpy(&lease, bytes.data() + before_session - sizeof lease, sizeof lease);
  held.lease_until = time_of(lease >> 16);
  held.label_bytes = {};
  held.algorithm = 0;
  held.attempts = 1;
  held.session = 0;
  held.identity = {};
  if (held.head != plain_held_head) return true;
  if (bytes.size() < before_session + sizeof held.session) [[unlikely]]
    return false;
  std::memcpy(&held.session, bytes.data() + before_session, sizeof held.session);
  return true;
}

/// The ends of what a completion leaves: 0 < result_until <= due <= unique_until.
struct DoneEnds {
  Timestamp result_until;
  Timestamp unique_until;  ///< in a sliding window: the latest that `due` can become
  Timestamp due;           ///< of the record
};
/// Whether a held claim becomes a record with one end and no more than its result.
[[nodiscard, gnu::always_inline]] inline bool leaves_plain_done(const HeldClaim& held,
                                                                const DoneEnds& ends) noexcept {
  constexpr unsigned kept = [] {  // details, numbers, and the rows of claim_flags that stay
    unsigned bits = 0x200 | claim_number_bits;
    for (const ClaimFlag& flag : claim_flags) bits |= flag.memory;
    return bits & ~unsigned{claim_flags.front().memory};
  }();
  return ends.result_until == ends.unique_until && (held.head & kept) == 0;
}
inline constexpr std::size_t plain_done_bytes = 16;  // before the result
[[nodiscard]] std::size_t any_done_bytes(const HeldClaim& held, const DoneEnds& ends) noexcept;
void write_any_done(char* to, const HeldClaim& held, const DoneEnds& ends, Bytes result) noexcept;

/// As encode() of a held claim that became done: without lease, session, claim_id and memos.
[[nodiscard, gnu::always_inline]] inline std::size_t done_bytes(const HeldClaim& held,
                                                                const DoneEnds& ends,
                                                                std::size_t result) noexcept {
  const bool is_plain = leaves_plain_done(held, ends);
  return result + (is_plain ? plain_done_bytes : any_done_bytes(held, ends));
}
[[gnu::always_inline]] inline void write_done(char* to, const HeldClaim& held, const DoneEnds& ends,
                                              Bytes result) noexcept {
  if (!leaves_plain_done(held, ends)) [[unlikely]]
    return write_any_done(to, held, ends, result);
  const std::uint64_t until = stored_time(ends.unique_until);
  std::memcpy(to, &plain_done_head, sizeof plain_done_head);
  std::memcpy(to + 2, &held.epoch, sizeof held.epoch);
  std::memcpy(to + 10, &until, 6);
  to += plain_done_bytes;
  if (result.size() - 4 < 4) {  // words like "paid": without a call
    std::memcpy(to, result.data(), 4);
    std::memcpy(to + result.size() - 4, result.data() + result.size() - 4, 4);
  } else {
    copy_bytes(to, result.data(), result.size());
  }
}

/// The session of an encoded record alone; 0 if it has none.
[[nodiscard]] SessionId session_of(Bytes bytes) noexcept;

}  // namespace semel::engine
