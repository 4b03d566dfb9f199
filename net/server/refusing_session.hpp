// A session that sends the reason of a refusal, and closes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/server/session.hpp"

namespace semel::net {

class RefusingSession final : public Session {
 public:
  /// `reply`: all that it sends. It wakes its host at once instead of waiting for a request.
  RefusingSession(std::string reply, std::shared_ptr<SessionHost> host)
      : reply_(std::move(reply)), host_(std::move(host)) {
    host_->wake();
  }

  void receive(std::string_view, std::string& out) override { collect(out); }
  void collect(std::string& out) override { out += std::exchange(reply_, {}); }
  [[nodiscard]] bool closes() const noexcept override { return true; }
  [[nodiscard]] SessionInput input() const noexcept override { return {}; }
  void end() noexcept override {}

 private:
  std::string reply_;
  const std::shared_ptr<SessionHost> host_;
};

}  // namespace semel::net
