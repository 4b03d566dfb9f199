#include "net/cluster/group_wait.hpp"

#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "net/claims/claim_reply.hpp"
#include "net/cluster/group_round.hpp"
#include "net/resp/reply_reader.hpp"
#include "net/resp/resp_writer.hpp"

namespace semel::net {
namespace {

/// A grant and an in_flight are shorter. A longer reply contains a result: it is final.
constexpr std::size_t read_bytes_max = std::size_t{64} << 10;

/// An empty result: it is not needed.
Reply read_claim(std::string_view bytes) {
  if (bytes.size() > read_bytes_max) return {};
  const std::optional<Reply> reply = take_reply(bytes);
  return reply.value_or(Reply{});
}

/// The field of a claim's reply. Empty: absent.
std::string field_of(const Reply& reply, std::string_view name) {
  for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    if (reply.items[i].text != name) continue;
    const Reply& value = reply.items[i + 1];
    return value.type == Reply::Type::integer ? std::to_string(value.integer) : value.text;
  }
  return {};
}

}  // namespace

void GroupWait::begin(const Start& start) {
  const auto made = std::make_shared<GroupWait>(start);
  start.handle->if_abandoned(start.wait, [made] { made->abandon(); });
  made->ask();
}

GroupWait::GroupWait(const Start& start)
    : group_(start.group),
      handle_(start.handle),
      wait_(start.wait),
      words_(start.request.requests.front().begin(), start.request.requests.front().end()),
      db_(start.request.db),
      dialect_(start.request.dialect),
      session_(start.request.session),
      slot_(start.slot),
      deadline_(start.deadline),
      is_named_(start.is_named) {}

/// From any thread, also the one that applies entries: it does not block.
void GroupWait::ask() noexcept {
  try {
    GroupRequest request{.db = db_, .dialect = dialect_, .session = session_};
    request.requests.emplace_back(words_.begin(), words_.end());
    group_.submit(
        std::move(request), MemoryUse::grows,
        [self = shared_from_this()](GroupReply reply) { self->answered(std::move(reply)); });
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
  const Reply claim = read_claim(reply.replies);
  bool is_last = false;
  {
    const base::MutexLock lock{mutex_};
    is_last = is_last_ || is_abandoned_;
  }
  const bool may_wait = !is_last && group_.now() < deadline_;
  if (may_wait && field_of(claim, "outcome") == "in_flight") return park(std::move(reply.replies));
  finish(std::move(reply.replies), claim);
}

void GroupWait::finish(std::string bytes, const Reply& reply) {
  const bool is_grant = field_of(reply, "outcome") == "granted";
  if (!is_grant || is_named_) return handle_->reply(wait_, std::move(bytes));
  handle_->reply(
      wait_, std::move(bytes),
      [self = shared_from_this(), epoch = field_of(reply, "epoch")] { self->release(epoch); });
}

/// `reply`: the client's reply if the claim cannot wait.
void GroupWait::park(std::string reply) {
  WaitTicket ticket = 0;
  ClaimOutcome at_once;
  const bool is_parked = group_.wait_for_change(
      words_[2], words_[3], deadline_,
      [self = shared_from_this()](ClaimOutcome&& outcome) { self->woken(outcome); }, ticket,
      at_once);
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

/// If this fails, the claim ends with its lease.
void GroupWait::release(const std::string& epoch) noexcept {
  try {
    GroupRequest request{.db = db_, .dialect = 2};
    request.requests.push_back({"SEMEL.RELEASE", words_[2], words_[3], epoch});
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
