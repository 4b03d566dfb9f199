// Claims as replies: a map (in RESP2 an array of names and values in turn) whose first pair is
// always "outcome", and then what this outcome means. docs/claims-on-the-wire.md has each.
//
// In RESP2 numbers and flags are bulk strings as well: there are drivers that read any command they
// do not know as bulk strings, and fail at an integer inside an array.
#pragma once

#include <string>
#include <string_view>

#include "net/resp/resp_writer.hpp"
#include "semel/claims.hpp"

namespace semel::net {

/// "OOM memory limit reached, nothing was changed".
[[nodiscard]] std::string error_text(ErrorCode code);

/// A number or a flag of a SEMEL command's reply.
void write_number(RespWriter& reply, std::int64_t number);
void write_flag(RespWriter& reply, bool value);

/// A call of its own: what was not valid is an error.
void write_claim(RespWriter& reply, const ClaimOutcome& outcome);
void write_owner(RespWriter& reply, const OwnerOutcome& outcome);

/// One of a batch: what was not valid has the outcome "error", so that all are maps. `free`: it
/// would have been granted, but others of its batch were not.
void write_claim_of_many(RespWriter& reply, const ClaimOutcome& outcome, bool free = false);
void write_owner_of_many(RespWriter& reply, const OwnerOutcome& outcome);

/// A record; its first pair is "state".
void write_view(RespWriter& reply, const ClaimView& view);
/// The same of one that is held, behind its key.
void write_in_flight(RespWriter& reply, std::string_view key, const ClaimView& view);

void write_policy(RespWriter& reply, std::string_view name, const Policy& policy);

}  // namespace semel::net
