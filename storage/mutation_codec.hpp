// A mutation as bytes on disk. Little-endian; docs/disk-format.md has the table.
//
//   u32 bytes that follow | u8 type | u8 kind | u8 db | u8 flags | u64 version
//   | u64 due, if it has one | u32 key bytes | key | value, to the end, or a claim:
//   u8 state | u8 flags | u8 owner bytes | u8 fingerprint algorithm | u32 attempts | u64 epoch
//   | u64 session | u64 lease bytes: end, full length | u64 result end | u64 unique end
//   | claim id, result digest, fingerprint: 16 bytes each, if there | owner | result
//
// Times are milliseconds of the storage's own time line (time_line.hpp), never of a process.
#pragma once

#include <cstddef>
#include <string>

#include "semel/journal.hpp"
#include "storage/time_line.hpp"

namespace semel::storage {

/// Appends `mutation` to `out`. `now`: the engine's time, for the length of a lease.
void encode(const Mutation& mutation, const TimeLine& line, Timestamp now, std::string& out);

/// Takes one mutation from the front of `bytes`; what it holds points into them. `now`: the
/// engine's time at which it is put back; a remote owner's lease starts again in full then. False:
/// damaged.
[[nodiscard]] bool decode(Bytes& bytes, const TimeLine& line, Timestamp now, Mutation& mutation);

}  // namespace semel::storage
