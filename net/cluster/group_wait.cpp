#include "net/cluster/group_wait.hpp"

#include <new>
#include <utility>

#include "net/claims/claim_reply.hpp"
#include "net/cluster/group_round.hpp"
#include "net/resp/resp_writer.hpp"

namespace semel::net {

void GroupWait::begin(Start start) {
  const auto made = std::make_shared<GroupWait>(std::move(start));
  made->handle_->if_abandoned(made->wait_, [made] { made->abandon(); });
  made->ask();
}

GroupWait::GroupWait(Start&& start)
    : group_(start.group),
      handle_(std::move(start.handle)),
      wait_(start.wait),
      words_(start.request.requests.front().begin(), start.request.requests.front().end()),
      db_(start.request.db),
      dialect_(start.request.dialect),
      session_(start.request.session),
      slot_(start.slot),
      command_(std::move(start.command)),
      use_(start.use),
      deadline_(command_->deadline(group_.now())) {}

/// From any thread, also the one that applies entries: it does not block.
void GroupWait::ask() noexcept {
  try {
    GroupRequest request{.db = db_, .dialect = dialect_, .session = session_};
    request.requests.emplace_back(words_.begin(), words_.end());
    group_.submit(std::move(request), use_, [self = shared_from_this()](GroupReply reply) {
      self->answered(std::move(reply));
    });
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::memory_full);
  }
}

void GroupWait::fail(ErrorCode why) noexcept {
  try {
    std::string bytes;
    RespWriter{bytes, Resp::two}.error(why == ErrorCode::closing ? error_text(why)
                                                                 : group_error(group_, why, slot_));
    handle_->reply(wait_, std::move(bytes));
  } catch (const std::bad_alloc&) {
    handle_->kill();  // it must not wait forever
  }
}

void GroupWait::answered(GroupReply reply) {
  if (reply.error != ErrorCode::ok) return fail(reply.error);
  ReplyMeaning meaning = command_->meaning_of(reply.replies);
  bool is_last = false;
  {
    const base::MutexLock lock{mutex_};
    is_last = is_last_ || is_abandoned_;
  }
  const bool may_wait = !is_last && group_.now() < deadline_;
  if (may_wait && meaning.is_pending) return park(std::move(reply.replies));
  std::string nothing;
  if (meaning.is_pending)
    nothing = command_->timeout_reply(dialect_ == 3 ? Resp::three : Resp::two);
  finish(nothing.empty() ? std::move(reply.replies) : std::move(nothing), std::move(meaning.undo));
}

void GroupWait::finish(std::string reply, std::vector<std::string> undo) {
  if (undo.empty()) return handle_->reply(wait_, std::move(reply));
  handle_->reply(wait_, std::move(reply),
                 [self = shared_from_this(), undo = std::move(undo)] { self->give_back(undo); });
}

/// `reply`: the client's, if the command cannot wait.
void GroupWait::park(std::string reply) {
  WaitTicket ticket = 0;
  BlockingCommand::Parking parking{.deadline = deadline_};
  {
    const base::MutexLock lock{mutex_};
    parking.arrival = arrival_;
  }
  command_->fix_words(group_, words_);
  parking.done = [self = shared_from_this()](ClaimOutcome&& outcome) { self->woken(outcome); };
  ClaimOutcome at_once;
  const bool is_parked = command_->wait_for_change(group_, std::move(parking), ticket, at_once);
  if (!is_parked) {
    if (at_once.error == ErrorCode::ok) return ask();
    return handle_->reply(wait_, std::move(reply));
  }
  bool is_over = false;
  {
    const base::MutexLock lock{mutex_};
    // A concurrent wake-up may have made it wait again: then abandon() does not find it in the
    // queue, and it ends when it is woken.
    ticket_ = ticket;
    if (arrival_ == 0) arrival_ = ticket;
    is_over = is_abandoned_;
  }
  if (is_over) group_.stop_waiting(ticket);
}

/// May run on the thread that applies entries.
void GroupWait::woken(const ClaimOutcome& outcome) noexcept {
  {
    const base::MutexLock lock{mutex_};
    ticket_ = 0;
    if (is_abandoned_) return;
    is_last_ = outcome.error != ErrorCode::ok;
  }
  // The group may have been destroyed with its engine.
  if (outcome.error == ErrorCode::closing) return fail(ErrorCode::closing);
  ask();
}

/// If this fails, what it got ends by itself: a claim with its lease.
void GroupWait::give_back(const std::vector<std::string>& undo) noexcept {
  try {
    GroupRequest request{.db = db_, .dialect = 2};
    request.requests.emplace_back(undo.begin(), undo.end());
    group_.submit(std::move(request), MemoryUse::frees,
                  [self = shared_from_this()](const GroupReply&) {});
  } catch (const std::bad_alloc&) {
  }
}

void GroupWait::abandon() noexcept {
  WaitTicket ticket = 0;
  {
    const base::MutexLock lock{mutex_};
    is_abandoned_ = true;
    ticket = std::exchange(ticket_, 0);
  }
  if (ticket != 0) group_.stop_waiting(ticket);
}

}  // namespace semel::net
