// Waiting for a permit: a place in the line of each slot, so that whichever slot is freed, its
// lease ends, or its session, the first that came gets it.
//
// A try asks for the one slot whose line it is. Where there may be holders beyond the waiter's
// number of permits it counts before it claims: a grant that has to be given back is a change of
// its own, after which the line would be tried again, for ever.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "engine/claims/claim_lines.hpp"
#include "patterns/holders/permit_slots.hpp"
#include "semel/claim_fields.hpp"
#include "semel/engine.hpp"
#include "semel/patterns/once.hpp"

namespace semel {
namespace {

using detail::is_granted;
using detail::is_in_flight;
using detail::look_again;
using detail::PermitTry;
using engine::Verdict;

class PermitAttempt final : public engine::Attempt {
 public:
  PermitAttempt(const Claims& claims, const ClaimRequest& request, std::uint32_t permits)
      : claims_(claims),
        key_(request.key),
        labels_(joined_labels(request)),
        request_(request),
        permits_(permits) {
    request_.key = key_;
    point_labels(request_, labels_);
  }

  [[nodiscard]] std::vector<std::string> lines() {
    std::vector<std::string> keys;
    const std::uint32_t slots = PermitTry{claims_, request_, permits_}.slots();
    keys.reserve(slots);
    lines_ = slots;
    for (std::uint32_t slot = 0; slot < slots; ++slot) keys.push_back(permit_key(key_, slot));
    return keys;
  }

  [[nodiscard]] Verdict try_for(std::size_t line, engine::Seen& seen) override {
    PermitTry attempt{claims_, request_, permits_};
    seen.now = claims_.engine().now();
    auto slot = static_cast<std::uint32_t>(line);
    const bool is_held = attempt.is_held(slot);
    if (request_.claim_id && has_own(attempt, slot, is_held)) return Verdict::answered;
    const std::uint32_t slots = attempt.slots();
    if (slots > permits_ || slot >= permits_) {
      // A count of all slots, by each waiter in each of its lines, would hold up the thread. None
      // behind it gets the slot of this line either; those of line 0 have to look, each at its
      // time.
      if (is_held && (line != 0 || seen.now < look_at_)) {
        const Verdict passes = look_later(line, slots, seen);
        return line == 0 ? passes : Verdict::waits;
      }
      const PermitTry::Held held = attempt.count_held(slots, limits::permits_max, permits_);
      if (held.count >= permits_) return look_later(line, slots, seen);
      slot = held.lowest_free;
    }
    found_.key = permit_key(key_, slot);
    found_.slot = slot;
    found_.over = false;
    ClaimRequest of_slot = request_;
    of_slot.key = found_.key;
    // Its attempts before may be longer ago than the width is remembered.
    if (!is_held || slot != line) {
      if (const Status wide = attempt.begin(); !wide) {
        found_ = refused(wide.error().code);
        return Verdict::answered;
      }
    }
    const Verdict verdict = engine::claim_in_line(claims_, of_slot, found_.claim, seen);
    if (verdict == Verdict::waits || !detail::decides(found_.claim)) return Verdict::waits;
    if (!is_granted(found_.claim)) return Verdict::answered;
    attempt.confirm(found_);
    return is_granted(found_.claim) ? Verdict::answered : look_later(line, slots, seen);
  }
  void give_up(ErrorCode why, Timestamp, const engine::Seen&) noexcept override {
    found_.claim = {};
    found_.claim.answer = ClaimAnswer::in_flight;
    found_.claim.error = why;
  }
  void give_back() override {
    if (found_.claim.answer != ClaimAnswer::granted) return;
    detail::give_back(claims_, found_.key, found_.claim);
  }
  [[nodiscard]] std::size_t bytes() const noexcept override {
    return sizeof *this + key_.size() + labels_.size();
  }

  /// Its answer, once there is one. At the deadline that is who holds the permits by then.
  [[nodiscard]] PermitOutcome answer() {
    if (found_.claim.error != ErrorCode::timed_out) return std::move(found_);
    PermitTry look{claims_, request_, permits_};
    if (request_.claim_id && look.find_own(found_)) return std::move(found_);
    const std::uint32_t slots = look.slots();
    PermitTry::Held held = look.count_held(slots);
    const bool is_held = is_in_flight(held.first.claim);
    if (is_held) {
      held.first.over = slots > permits_ && held.lowest_free < permits_;
      return std::move(held.first);
    }
    found_.claim.error = ErrorCode::ok;  // given back in this very moment
    return std::move(found_);
  }
  /// The answer of one that could not enter.
  [[nodiscard]] static PermitOutcome refused(ErrorCode why) {
    PermitOutcome found;
    found.claim.answer = why == ErrorCode::closing ? ClaimAnswer::in_flight : ClaimAnswer::busy;
    found.claim.error = why;
    return found;
  }

 private:
  /// The claim id got a permit while it waited, by another connection. Where the slot of this line
  /// is held, the others are not looked at: none is about to be granted.
  [[nodiscard]] bool has_own(PermitTry& attempt, std::uint32_t slot, bool is_held) {
    return is_held ? attempt.is_own(found_, slot) : attempt.find_own(found_);
  }
  /// A change tells when to look again, and the end of the lease of the slot of this line. What
  /// tells neither is a closed session, and slots that were not there when the wait began. For the
  /// first, line 0 alone looks: a look at all slots by all waiters of all lines would be too much.
  /// For the second, so does a line whose slot is free: line 0 may not look, as its slot is held.
  [[nodiscard]] Verdict look_later(std::size_t line, std::uint32_t slots, engine::Seen& seen) {
    const Result<ClaimView> view = claims_.get(permit_key(key_, static_cast<std::uint32_t>(line)));
    seen.held_until = no_end;
    if (view.ok() && view->state == ClaimState::held && view->lease_remaining > Millis{0}) {
      seen.held_until = seen.now + view->lease_remaining;
    }
    const bool is_free = view.ok() && !detail::is_taken(*view);
    const Timestamp look_at = seen.now + look_again + Millis{slots};
    if (line == 0) {
      if (look_at_ <= seen.now) look_at_ = look_at;
      seen.held_until = std::min(seen.held_until, look_at_);
    } else if (is_free && slots > lines_) {
      seen.held_until = std::min(seen.held_until, look_at);
    }
    return Verdict::passes;  // one that knows of more permits may have one
  }

  Claims claims_;
  const std::string key_;
  const std::string labels_;
  ClaimRequest request_;
  const std::uint32_t permits_;
  std::uint32_t lines_ = 0;               // that it stands in
  Timestamp look_at_ = Timestamp::min();  // line 0 looks at all slots again
  PermitOutcome found_;
};

class PermitReceiver final : public engine::Receiver {
 public:
  explicit PermitReceiver(PermitAttempt& attempt) noexcept : attempt_(attempt) {}

  PermitCallback done;

  void answered() override {
    PermitOutcome found;
    try {
      found = attempt_.answer();
    } catch (const std::bad_alloc&) {  // who holds the permits is not said, but that they are held
      found.claim.answer = ClaimAnswer::in_flight;
    }
    done(std::move(found));
  }

 private:
  PermitAttempt& attempt_;
};

/// Of a call that does not wait.
class AnswerNow final : public engine::Receiver {
 public:
  AnswerNow(const PermitCallback& done, PermitOutcome&& found) noexcept
      : done_(done), found_(std::move(found)) {}
  void answered() override { done_(std::move(found_)); }

 private:
  const PermitCallback& done_;
  PermitOutcome found_;
};

/// Not ok: it does not wait, and `done` is left where it is.
ErrorCode begin_wait(Claims& claims, const ClaimRequest& request, std::uint32_t permits,
                     Timestamp deadline, PermitCallback& done, WaitTicket& ticket) {
  if (engine::is_logged(claims.engine())) return ErrorCode::refused;
  auto made = std::make_unique<PermitAttempt>(claims, request, permits);
  const std::vector<std::string> keys = made->lines();
  auto mine = std::make_unique<PermitReceiver>(*made);
  PermitReceiver& receiver = *mine;
  std::unique_ptr<engine::Receiver> taker = std::move(mine);
  std::unique_ptr<engine::Attempt> attempt = std::move(made);
  receiver.done = std::move(done);
  const ErrorCode why = engine::wait_in_lines(claims, keys, attempt, taker, deadline, ticket);
  if (why != ErrorCode::ok) done = std::move(receiver.done);
  return why;
}

/// Of a group: the log decides, and there is no line of all slots there. Waits for the slot of
/// `found`, or for a moment. True: it is granted; the grant is in `found`.
bool wait_for_slot(Claims& claims, ClaimRequest request, Timestamp deadline, PermitOutcome& found) {
  const Timestamp until = std::min(deadline, deadline_after(claims.engine().now(), look_again));
  if (found.over) {  // slots are free, so there is no line to stand in
    detail::pause_a_moment();
    return false;
  }
  request.key = found.key;
  ClaimOutcome outcome = claims.claim_or_wait(request, until);
  if (outcome.error == ErrorCode::timed_out) return false;
  found.claim = std::move(outcome);
  return is_granted(found.claim);
}

PermitOutcome wait_in_group(Claims& claims, const ClaimRequest& request, std::uint32_t permits,
                            Timestamp deadline, PermitOutcome&& first) {
  PermitOutcome found = std::move(first);
  for (;;) {
    if (!is_in_flight(found.claim) || claims.engine().now() >= deadline) return found;
    if (wait_for_slot(claims, request, deadline, found)) {
      PermitTry{claims, request, permits}.confirm(found);
    }
    if (!is_in_flight(found.claim)) return found;
    found = claim_permit(claims, request, permits);
  }
}

}  // namespace

PermitOutcome claim_permit_or_wait(Claims& claims, const ClaimRequest& request,
                                   std::uint32_t permits, Timestamp deadline) {
  PermitOutcome found = claim_permit(claims, request, permits);
  if (!is_in_flight(found.claim) || claims.engine().now() >= deadline) return found;
  if (engine::is_logged(claims.engine())) {
    return wait_in_group(claims, request, permits, deadline, std::move(found));
  }
  PermitAttempt attempt{claims, request, permits};
  const ErrorCode why = engine::wait_in_lines(claims, attempt.lines(), attempt, deadline);
  return why == ErrorCode::ok ? attempt.answer() : PermitAttempt::refused(why);
}

WaitTicket claim_permit_or_wait(Claims& claims, const ClaimRequest& request, std::uint32_t permits,
                                Timestamp deadline, PermitCallback done) {
  PermitOutcome found = claim_permit(claims, request, permits);
  if (is_in_flight(found.claim) && claims.engine().now() < deadline) {
    WaitTicket ticket = 0;
    const ErrorCode why = begin_wait(claims, request, permits, deadline, done, ticket);
    if (why == ErrorCode::ok) return ticket;
    found = PermitAttempt::refused(why);
  }
  AnswerNow now{done, std::move(found)};
  engine::run_receiver(claims, now);
  return 0;
}

}  // namespace semel
