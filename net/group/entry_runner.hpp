// The requests of clients in entries of the replicated log, run on this node.
#pragma once

#include <algorithm>
#include <utility>

#include "net/node/group_runner.hpp"
#include "replication/state/apply.hpp"

namespace semel::net {

/// `node` must outlive this.
class EntryRunner final : public replication::RequestRunner {
 public:
  explicit EntryRunner(Node& node) : runner_(node) {}

  [[nodiscard]] bool knows(const GroupRequest& request) const noexcept override {
    return std::all_of(request.requests.begin(), request.requests.end(),
                       [](const auto& words) { return GroupRunner::knows(words); });
  }
  [[nodiscard]] replication::PlainAnswer run(const GroupRequest& request) override {
    GroupRunner::Result result = runner_.run(request);
    replication::PlainAnswer answer{.text = std::move(result.replies)};
    for (const ErrorCode each : result.failures) {
      if (replication::local_error({replication::PlainAnswer{.error = each}})) answer.error = each;
    }
    return answer;
  }
  [[nodiscard]] Status libraries_changed(const LibraryChange& change) override {
    return runner_.change_libraries(change);
  }

 private:
  GroupRunner runner_;
};

}  // namespace semel::net
