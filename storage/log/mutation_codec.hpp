// A mutation as bytes, in the journal and in blobs. Little-endian; docs/disk-format.md has the
// table.
//
//   u8 head | varint bytes that follow | u64 version | u8 kind, if neither string nor claim
//   | u8 db, if not 0 | u48 due, if it has one | u48 keep until, if another | varint key bytes
//   | key | value, to the end, or a claim, or a delta (the kind's highest bit): varint version -
//   version of its base, then the trail (engine/objects/edit_trail.hpp), to the end. A claim:
//   u8 state, flags from 256 up in bits 3..7 | u8 flags | u8 owner bytes | u8 fingerprint algorithm
//   | varint attempts
//   | varint version - epoch | u64 session | u48 lease end | varint length of the lease
//   | u48 result end | u48 unique end | claim id, result digest, fingerprint: 16 bytes each
//   | owner | result             (from the session to the fingerprint: what the flags say is there)
//
// That is the full form. In the near form, which the journal alone has, the version is an i32 and
// each time a u32: differences to the base in the segment's header. All ones: no end.
//
// Times are milliseconds of the durable clock (durable_clock.hpp), never of a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "semel/journal.hpp"
#include "semel/limits.hpp"
#include "storage/log/durable_clock.hpp"
#include "storage/log/log_format.hpp"

namespace semel::storage {

/// Whether `mutation` has a near form with this base.
[[nodiscard]] bool is_near(const Mutation& mutation, const DurableClock& durable_clock,
                           const MutationBase& base) noexcept;

/// The bytes that encode() writes at the same `now`, whatever the base is.
[[nodiscard]] std::size_t encoded_bytes(const Mutation& mutation, Timestamp now,
                                        MutationForm form = MutationForm::full) noexcept;

/// Writes `mutation` to `to` and returns the end. `now`: the engine's time, for the length of a
/// lease. `base`: of the near form, which is_near() must allow; null: in the full form.
char* encode(const Mutation& mutation, const DurableClock& durable_clock, Timestamp now, char* to,
             const MutationBase* base = nullptr) noexcept;

/// Reads one mutation from the front of `bytes`; it points into them. `now`: the engine's time at
/// which it is restored; a remote owner's lease starts again in full then. `base` as above. False:
/// damaged.
[[nodiscard]] bool decode(Bytes& bytes, const DurableClock& durable_clock, Timestamp now,
                          Mutation& mutation, const MutationBase* base = nullptr);

/// Appends the full form of mutations in the near form. False: one is damaged, and is left out with
/// those behind it.
[[nodiscard]] bool widen(Bytes group, const MutationBase& base, std::string& to);

/// Whether records of this kind are objects of elements.
[[nodiscard]] constexpr bool is_object_kind(Kind kind) noexcept {
  return kind >= Kind::hash && kind <= Kind::stream;
}
/// Whether deltas may follow on this: it is whole, and long enough.
[[nodiscard]] inline bool may_be_base(const Mutation& mutation) noexcept {
  return is_object_kind(mutation.kind) && mutation.value.size() >= limits::trail_record_bytes_min;
}

/// What draining needs of a mutation.
struct MutationExtent {
  std::size_t bytes = 0;
  std::uint64_t keep_until_ms = DurableClock::no_end_ms;  ///< of the durable clock
  Version version = 0;
  Mutation::Type type = Mutation::Type::put;
  Kind kind = Kind::string;
  bool is_delta = false;
  std::uint8_t db = 0;
  Bytes key{};  ///< points into the mutation
};
/// Of the mutation at the front of `bytes`. False: damaged.
[[nodiscard]] bool extent_of(Bytes bytes, MutationExtent& extent,
                             const MutationBase* base = nullptr) noexcept;

}  // namespace semel::storage
