#include "tests/replication/node/peer.hpp"

#include <boost/asio/post.hpp>
#include <cstdlib>

#include "replication/state/answer.hpp"
#include "replication/state/fields.hpp"
#include "tests/replication/node/group.hpp"

namespace semel::tests {

using namespace replication;

HostilePeer::HostilePeer(NodeId id, const std::string& listen, std::uint64_t cluster)
    : guard_(context_.get_executor()), thread_([this] { context_.run(); }) {
  TransportOptions options;
  options.cluster_id = cluster;
  options.node_id = id;
  options.listen = listen;
  std::promise<void> opened;
  boost::asio::post(context_, [&] {
    auto made = PeerTransport::open(context_, options, *this);
    if (!made.ok()) std::abort();
    transport_ = *std::move(made);
    opened.set_value();
  });
  opened.get_future().get();
}

HostilePeer::~HostilePeer() {
  boost::asio::post(context_, [this] {
    transport_.reset();
    guard_.reset();
  });
  thread_.join();
}

void HostilePeer::set_peers(const std::map<NodeId, std::string>& peers) {
  boost::asio::post(context_, [this, peers] { transport_->set_peers(peers); });
}

std::optional<Result<Answer>> HostilePeer::ask(NodeId node, const std::string& bytes) {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock{mutex_};
    id = ++asked_;
  }
  std::string found;
  bool is_sent = false;
  const bool is_there = Group::wait_for([&] {
    // Before there is a connection it is not sent.
    if (!is_sent) {
      std::promise<bool> sent;
      boost::asio::post(context_, [&] {
        sent.set_value(transport_->send(node, Forward{id, bytes}));
      });
      is_sent = sent.get_future().get();
    }
    const std::lock_guard lock{mutex_};
    found = replies_[id];
    return !found.empty();
  });
  if (!is_there) return std::nullopt;
  FieldReader fields{found};
  std::uint64_t error = 0;
  LogIndex index = 0;
  Bytes answer;
  fields.number(error);
  fields.number(index);
  fields.bytes(answer);
  if (error != 0) return Result<Answer>{Error{static_cast<ErrorCode>(error), {}}};
  return decode_answer(answer);
}

void HostilePeer::on_forward_reply(NodeId, ForwardReply reply) {
  const std::lock_guard lock{mutex_};
  replies_[reply.id] = std::move(reply.bytes);
}

}  // namespace semel::tests
