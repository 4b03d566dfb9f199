// A peer that says why it does not serve, and closes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/server/peer.hpp"

namespace semel::net {

class RefusingPeer final : public Peer {
 public:
  /// `reply`: all that it ever sends. It rings, because it does not wait for a request.
  RefusingPeer(std::string reply, std::shared_ptr<PeerHost> host)
      : reply_(std::move(reply)), host_(std::move(host)) {
    host_->wake();
  }

  void receive(std::string_view, std::string& out) override { collect(out); }
  void collect(std::string& out) override { out += std::exchange(reply_, {}); }
  [[nodiscard]] bool closes() const noexcept override { return true; }
  [[nodiscard]] PeerInput input() const noexcept override { return {}; }
  void end() noexcept override {}

 private:
  std::string reply_;
  const std::shared_ptr<PeerHost> host_;
};

}  // namespace semel::net
