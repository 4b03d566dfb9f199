// The callback of a proposal or a read.
#pragma once

#include <new>
#include <utility>

#include "replication/proposals/proposal_terms.hpp"

namespace semel::replication {

/// Calls `done` once, at the latest in the destructor. A step of the loop may end in the middle,
/// without memory, and its caller must be answered all the same. One thread at a time.
class Reply {
 public:
  Reply() noexcept = default;
  /// `if_lost`: the error that the destructor gives it.
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
