// A claim as the wait queue tries it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/claims/claim_context.hpp"
#include "engine/waits/wait_queue.hpp"
#include "semel/claims.hpp"

namespace semel::engine {

/// The first try is made with bytes of the caller. What stays in the queue is another attempt, with
/// bytes of its own; see keep().
class ClaimAttempt : public Attempt {
 public:
  /// `request` and `table_key` ("name:key"): their bytes must live as long as this.
  ClaimAttempt(Engine& engine, Claims::NamespaceRef names, const ClaimRequest& request,
               Bytes table_key)
      : engine_(engine), names_(std::move(names)), request_(request), table_key_(table_key) {}

  /// The answer, once there is one; before, what the last try said.
  ClaimOutcome outcome;

  void give_up(ErrorCode why, Timestamp now, const Seen& seen) noexcept final;
  [[nodiscard]] std::size_t bytes() const noexcept final { return sizeof *this + bytes_.size(); }
  /// The same attempt for the queue. std::bad_alloc.
  [[nodiscard]] virtual std::unique_ptr<ClaimAttempt> keep() const = 0;
  [[nodiscard]] KeyRef key() const noexcept { return {names_->policy().db, table_key_}; }
  /// Tries once without waiting. True: `outcome` is the answer, at the latest by its deadline.
  [[nodiscard]] bool answers_now(Timestamp deadline);

 protected:
  /// Copies what belongs to the caller.
  ClaimAttempt(const ClaimAttempt& other, std::string&& bytes);
  [[nodiscard]] static std::string bytes_of(const ClaimAttempt& other);

  Engine& engine_;
  const Claims::NamespaceRef names_;
  ClaimRequest request_;
  Bytes table_key_;

 private:
  const std::string bytes_;  // of key and labels, if they are its own
};

/// Whether a caller comes, and others may be in the line before it, or waits there itself.
enum class Arrival : std::uint8_t { comes, waits };
/// Asks for the claim of `table_key`, which is that of the request. waits: another has it, and
/// `seen` says until when; that is not counted, as it is asked again and again. answered: `outcome`
/// is any other answer.
[[nodiscard]] Verdict try_claim(const ClaimContext& context, const ClaimRequest& request,
                                Bytes table_key, Arrival arrival, ClaimOutcome& outcome,
                                Seen& seen);

/// Waits with a callback, or answers: false. `first`: asked here. Then `done` is left where it is,
/// and `outcome` is the answer. See WaitQueue::wait.
[[nodiscard]] bool wait_for_claim(WaitQueue& queue, ClaimAttempt& first, Timestamp deadline,
                                  ClaimCallback& done, WaitTicket& ticket, ClaimOutcome& outcome);
/// The same, blocking.
[[nodiscard]] ClaimOutcome wait_for_claim(WaitQueue& queue, ClaimAttempt& attempt,
                                          Timestamp deadline, const Clock& clock);

}  // namespace semel::engine
