#include "net/server/node_peer.hpp"

#include <utility>

#include "net/room.hpp"

namespace semel::net {
namespace {

ClientHandle::Origin origin_of(const PeerInfo& info, Node& node) {
  return {.id = node.next_client_id(),
          .address = info.remote,
          .local_address = info.local,
          .connected_ms = node.engine().clock().unix_ms(),
          .is_unix = info.transport == Transport::unix_socket};
}

}  // namespace

NodePeer::NodePeer(Node& node, Batch& batch, Durability level, const PeerInfo& info,
                   std::shared_ptr<PeerHost> host)
    : node_(node),
      level_(level),
      host_(std::move(host)),
      connection_(node, batch, this, origin_of(info, node)) {}

NodePeer::~NodePeer() = default;

void NodePeer::receive(std::string_view bytes, std::string& out) {
  if (level_ < Durability::synced) return connection_.receive(bytes, out);
  std::string replies;
  const std::uint64_t before = connection_.requests();
  connection_.receive(bytes, replies);
  deliver(std::move(replies), connection_.requests() - before, out);
}

void NodePeer::deliver(std::string&& replies, std::uint64_t requests, std::string& out) {
  if (requests == 0) {  // pushes rest on nothing
    out += replies;
    return;
  }
  held_ = std::move(replies);
  held_requests_ = requests;
  sync_ = std::make_shared<Sync>();
  sync_->host = host_;
  node_.engine().confirm_async(level_, [sync = sync_](const Status& status) {
    {
      const std::lock_guard lock{sync->mutex};
      sync->answered = true;
      sync->failed = !status;
    }
    sync->host->wake();
  });
}

void NodePeer::collect(std::string& out) {
  if (sync_ != nullptr) {
    bool failed = false;
    {
      const std::lock_guard lock{sync_->mutex};
      if (!sync_->answered) return;
      failed = sync_->failed;
    }
    sync_.reset();
    if (failed) {
      std::string error{"-"};
      error.append(resp_prefix_of(ErrorCode::outcome_unknown)).append(" ");
      error.append(sentence_of(ErrorCode::outcome_unknown)).append("\r\n");
      for (std::uint64_t i = 0; i < held_requests_; ++i) out += error;
    } else {
      out += held_;
    }
    give_back(held_);
  }
  if (level_ < Durability::synced) return connection_.collect(out);
  std::string replies;
  const std::uint64_t before = connection_.requests();
  const bool waited = connection_.waits();
  connection_.collect(replies);
  const bool answered = waited && !connection_.waits();
  deliver(std::move(replies), connection_.requests() - before + (answered ? 1 : 0), out);
}

bool NodePeer::closes() const noexcept {
  return sync_ == nullptr && connection_.closes();
}
bool NodePeer::waits() const noexcept {
  return sync_ != nullptr || connection_.waits();
}
bool NodePeer::more() const noexcept {
  return sync_ == nullptr && connection_.more();
}

PeerInput NodePeer::input() const noexcept {
  return {.requests = connection_.requests(),
          .held = connection_.kept_bytes(),
          .wanted = connection_.wanted_bytes()};
}

OutputClass NodePeer::output_class() const noexcept {
  return connection_.is_subscribed() ? OutputClass::pubsub : OutputClass::normal;
}

void NodePeer::end() noexcept {
  connection_.end();
}

}  // namespace semel::net
