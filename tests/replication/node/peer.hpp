// A member of a group that sends whatever it likes.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "engine/logged/answer.hpp"
#include "replication/transport/peer_transport.hpp"

namespace semel::tests {

class HostilePeer final : public replication::PeerHandler {
 public:
  HostilePeer(replication::NodeId id, const std::string& listen, std::uint64_t cluster);
  ~HostilePeer() override;
  HostilePeer(const HostilePeer&) = delete;
  HostilePeer& operator=(const HostilePeer&) = delete;

  void set_peers(const std::map<replication::NodeId, std::string>& peers);
  /// What a node answers to these bytes of a Forward. None: nothing in time.
  [[nodiscard]] std::optional<Result<replication::Answer>> ask(replication::NodeId node,
                                                               const std::string& bytes);

  void on_message(replication::RaftMessage) override {}
  void on_forward(replication::NodeId, replication::Forward) override {}
  void on_forward_reply(replication::NodeId from, replication::ForwardReply reply) override;
  void on_peer(replication::NodeId, const std::string&) override {}
  [[nodiscard]] bool knows(replication::NodeId) const override { return true; }
  [[nodiscard]] std::optional<std::string> snapshot_path(replication::LogIndex,
                                                         replication::Term) override {
    return std::nullopt;
  }
  void on_event(Event, const std::string&) override {}

 private:
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::unique_ptr<replication::PeerTransport> transport_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::string> replies_;
  std::uint64_t asked_ = 0;
  std::thread thread_;
};

}  // namespace semel::tests
