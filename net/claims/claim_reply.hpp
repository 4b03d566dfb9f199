// Claims as replies: a map (in RESP2 an array of names and values in turn) whose first pair is
// always "outcome", followed by the fields of that outcome. docs/claims-on-the-wire.md lists them.
//
// In RESP2 numbers and flags are bulk strings as well: there are drivers that read any command they
// do not know as bulk strings, and fail at an integer inside an array.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/resp/resp_writer.hpp"
#include "semel/claims.hpp"
#include "semel/patterns/rate_limit.hpp"
#include "semel/patterns/read_write_lock.hpp"
#include "semel/patterns/semaphore.hpp"

namespace semel::net {

/// "OOM memory limit reached, nothing was changed".
[[nodiscard]] std::string error_text(ErrorCode code);

/// A number or a flag of a SEMEL command's reply.
void write_number(RespWriter& reply, std::int64_t number);
void write_flag(RespWriter& reply, bool value);

/// The reply of a single call: an invalid request is an error.
void write_claim(RespWriter& reply, const ClaimOutcome& outcome);
void write_owner(RespWriter& reply, const OwnerOutcome& outcome);

/// The reply of one of a batch: an invalid request has the outcome "error", so that all are maps.
/// `free`: it would have been granted, but others of its batch were not.
void write_claim_of_many(RespWriter& reply, const ClaimOutcome& outcome, bool free = false);
void write_owner_of_many(RespWriter& reply, const OwnerOutcome& outcome);

/// write_claim(), for so many more pairs, which the caller writes behind. False: it is an error,
/// and nothing follows.
[[nodiscard]] bool write_claim_before(RespWriter& reply, const ClaimOutcome& outcome,
                                      std::size_t pairs);
/// The reply of an attempt at a permit: that of its claim, then its slot and the key of that.
void write_permit(RespWriter& reply, const PermitOutcome& found);
/// A permit that is held, or whose holder is in doubt: as of a claim that is in flight.
void write_held_permit(RespWriter& reply, const PermitView& permit, std::string_view key);

/// The reply of an attempt at a read/write lock: that of its claim, then its token and its key.
void write_access(RespWriter& reply, const AccessOutcome& found);
/// A holder of one, or the waiter in front.
void write_held_access(RespWriter& reply, const AccessView& held);

/// The reply of a rate limit.
void write_rate(RespWriter& reply, const RateOutcome& outcome);

/// The view of a record; its first pair is "state".
void write_view(RespWriter& reply, const ClaimView& view);
/// The view of a held record, behind its key.
void write_in_flight(RespWriter& reply, std::string_view key, const ClaimView& view);

void write_policy(RespWriter& reply, std::string_view name, const Policy& policy);

}  // namespace semel::net
