// What a claim's answer means for a request, and what the end of a request means for its claim.
//
//   claim -- run --------> upstream -- replied --> complete (its reply is kept), or as on_5xx says
//         |                         |- not sent --> release: nothing was done
//         |                         '- broken, too late: as on_unknown says
//         |- wait -------> for the one that runs, at most RoutePolicy::wait
//         '- reply ------> the kept reply, or problem details
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/core/asked.hpp"
#include "gateway/core/reply.hpp"
#include "gateway/core/route_policy.hpp"
#include "semel/claims.hpp"

namespace semel::gateway {

struct Decision {
  enum class What : std::uint8_t { run, wait, reply };
  enum class Why : std::uint8_t {
    granted,
    in_flight,
    replayed,
    not_kept,
    mismatch,
    in_doubt,
    busy,
    refused
  };
  What what = What::reply;
  Why why = Why::refused;
  Epoch epoch = 0;  ///< of run
  std::uint32_t attempt = 0;
  Reply reply{};  ///< of reply
};

/// How the upstream's part ended.
enum class Upstream : std::uint8_t {
  replied,   ///< all of its reply is there
  not_sent,  ///< it has not got a byte of the request
  unknown,   ///< it may have done the work
};

/// `may_wait`: an in_flight waits, if the route says so.
[[nodiscard]] Decision decision_of(const RoutePolicy& route, ClaimOutcome&& outcome, bool may_wait);

/// What becomes of the claim. `reply`: of replied; null: it is too long to be kept.
/// Returns whether it is written down; false: the lease will end it, as after a death of ours.
/// Progress: blocks for the disk.
[[nodiscard]] bool end_claim(Claims& claims, const RoutePolicy& route, const std::string& key,
                             Epoch epoch, Upstream upstream, unsigned status, const Reply* reply);

/// For the client, where the upstream did not answer.
[[nodiscard]] Reply reply_without_upstream(const RoutePolicy* route, Upstream upstream,
                                           std::string_view why);

}  // namespace semel::gateway
