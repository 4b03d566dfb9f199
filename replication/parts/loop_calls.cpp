#include "replication/parts/loop_calls.hpp"

#include <poll.h>

#include <boost/asio/post.hpp>
#include <future>
#include <string>
#include <utility>

#include "replication/parts/loop_host.hpp"

namespace semel::replication {

/// Not under the queue's mutex: the loop runs at once where a processor is free, and would wait for
/// it. In between, a tick may take the call and answer it, and this replica may be ended.
void LoopCalls::post_turn() {
  // Without memory the next tick takes the calls.
  queue_.end_wake(thread_.post([this] { turn_(); }));
}

void LoopCalls::wake_soon() {
  if (queue_.begin_wake()) post_turn();
}

void LoopCalls::await_wakers() const {
  while (queue_.is_waking()) poll(nullptr, 0, 1);
}

void LoopCalls::propose(PreparedCommand command, ProposalDone done, const ProposalTerms& terms) {
  // A longer one would end every node that has to write it.
  if (command.bytes.size() > command_bytes_max(options_)) {
    return done(Error{ErrorCode::value_too_long, "a command of " +
                                                     std::to_string(command.bytes.size()) +
                                                     " bytes, in a group at most " +
                                                     std::to_string(command_bytes_max(options_))});
  }
  submit(Proposal::made(std::move(command), std::move(done), terms, millis_of(wall_)));
}

void LoopCalls::submit(Proposal proposal) {
  const CallQueue::Pushed pushed = queue_.push(proposal);
  if (pushed == CallQueue::Pushed::queued) return;
  if (pushed == CallQueue::Pushed::wakes) return post_turn();
  const bool is_full = pushed == CallQueue::Pushed::full;
  if (proposal.done) proposal.done(Error{is_full ? ErrorCode::log_busy : ErrorCode::closing, {}});
}

void LoopCalls::read(ProposalDone done, const ProposalTerms& terms) {
  Reader reader{{std::move(done), ErrorCode::closing},
                millis_of(wall_) + static_cast<std::uint64_t>(terms.patience.count())};
  if (queue_.push(reader) == CallQueue::Pushed::wakes) post_turn();
}

void LoopCalls::take_to(Proposals& proposals, Reads& reads) {
  CallQueue::Calls calls = queue_.take(proposals.take_change(), proposals.is_full());
  for (Proposal& each : calls.proposals) proposals.add(std::move(each));
  proposals.number_held();
  for (Reader& each : calls.reads) reads.add(std::move(each));
}

Status LoopCalls::run(const std::function<Status()>& what) {
  std::promise<Status> promise;
  auto result = promise.get_future();
  const bool is_posted = queue_.run_if_open([&] {
    boost::asio::post(thread_.context(), [&] {
      Status done = Error{ErrorCode::closing, {}};
      thread_.run_part([&] { done = what(); });
      promise.set_value(std::move(done));
    });
  });
  if (!is_posted) return Error{ErrorCode::closing, {}};
  return result.get();
}

}  // namespace semel::replication
