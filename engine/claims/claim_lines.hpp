// Claims of a caller that waits for whichever of several keys it gets, as for a slot of a
// semaphore. The caller's own Attempt says what a try is; these are the steps that it is made of.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "engine/waits/attempt.hpp"
#include "semel/claims.hpp"

namespace semel::engine {

/// Whether the calls of this thread go through a replicated log: then nothing here may be called.
[[nodiscard]] bool is_logged(Engine& engine) noexcept;

/// Claims request.key for one that waits in its line: no others are before it there. waits: another
/// has it, and `seen` says until when. answered: `outcome` is any other answer.
[[nodiscard]] Verdict claim_in_line(Claims& claims, const ClaimRequest& request,
                                    ClaimOutcome& outcome, Seen& seen);

/// WaitQueue::wait() for `keys` of the namespace. Blocks.
[[nodiscard]] ErrorCode wait_in_lines(Claims& claims, std::span<const std::string> keys,
                                      Attempt& attempt, Timestamp deadline);
/// The same with a receiver. Claims::cancel_wait() ends it, by any of the keys.
[[nodiscard]] ErrorCode wait_in_lines(Claims& claims, std::span<const std::string> keys,
                                      std::unique_ptr<Attempt>& attempt,
                                      std::unique_ptr<Receiver>& receiver, Timestamp deadline,
                                      WaitTicket& ticket);
/// Calls it as the wait queue would.
void run_receiver(Claims& claims, Receiver& receiver) noexcept;

}  // namespace semel::engine
