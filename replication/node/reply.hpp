// Who waits for the outcome of a proposal or a read.
#pragma once

#include <new>
#include <utility>

#include "replication/node/replica_options.hpp"

namespace semel::replication {

/// Calls `done` once: at the latest when this goes away. So nobody waits for ever where memory ends
/// in the middle of a step, and with it whoever would have answered. One thread at a time.
class Reply {
 public:
  Reply() noexcept = default;
  /// `if_lost`: what it is told then.
  Reply(ProposalDone done, ErrorCode if_lost) noexcept : done_(std::move(done)), lost_(if_lost) {}
  Reply(Reply&& other) noexcept : done_(std::exchange(other.done_, nullptr)), lost_(other.lost_) {}
  Reply& operator=(Reply&& other) noexcept {
    std::swap(done_, other.done_);
    std::swap(lost_, other.lost_);
    return *this;
  }
  ~Reply() {
    if (done_) (*this)(Error{lost_, {}});
  }

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(done_); }
  /// Once. A callback that finds no memory must not end this node: the loss is its own.
  void operator()(Result<Answer> answer) noexcept {
    const ProposalDone done = std::exchange(done_, nullptr);
    try {
      done(std::move(answer));
    } catch (const std::bad_alloc&) {
    }
  }

 private:
  ProposalDone done_{};
  ErrorCode lost_ = ErrorCode::outcome_unknown;
};

}  // namespace semel::replication
