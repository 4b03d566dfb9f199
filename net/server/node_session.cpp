#include "net/server/node_session.hpp"

#include <boost/asio/ip/address.hpp>
#include <utility>

#include "net/resp/release_capacity.hpp"

namespace semel::net {
namespace {

bool asks_for_certificates(const Node& node) {
  return node.settings.text(Setting::tls_auth_clients) == "yes";
}

ClientHandle::Origin origin_of(const SessionInfo& info, Node& node) {
  const bool names_user = node.settings.text(Setting::tls_auth_clients_user) == "CN";
  return {.id = node.next_client_id(),
          .address = info.remote,
          .local_address = info.local,
          .connected_ms = node.engine().clock().unix_ms(),
          .is_unix = info.transport == Transport::unix_socket,
          .is_remote = is_remote(info, asks_for_certificates(node)),
          .certificate_user = names_user ? info.certificate_name : std::string{}};
}

std::size_t bytes_of(const Splices& splices) noexcept {
  std::size_t bytes = 0;
  for (const Splice& each : splices) bytes += each.bytes->size();
  return bytes;
}

/// The host of "127.0.0.1:4711" or "[::1]:4711".
std::string_view host_of(std::string_view address) noexcept {
  address = address.substr(0, address.rfind(':'));
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  return address;
}

/// Sends the reason of a refusal, and closes.
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

// Redis' words, with the names of ours.
constexpr std::string_view denied =
    "-DENIED Semel is running in protected mode because protected mode is enabled and no password "
    "is set for the default user. In this mode connections are only accepted from the loopback "
    "interface. If you want to connect from external computers to Semel you may adopt one of the "
    "following solutions: 1) Set a password for the default user (requirepass, requirepass-file, "
    "ACL SETUSER). 2) Require client certificates on the TLS port (tls-auth-clients yes). 3) "
    "Disable protected mode with 'CONFIG SET protected-mode no' from the same host, or with "
    "'--protected-mode no' at the start, if only trusted hosts can reach the port.\r\n";

}  // namespace

bool is_remote(const SessionInfo& info, bool asks_for_certificates) {
  if (info.transport == Transport::unix_socket) return false;
  const bool is_vouched_for = asks_for_certificates || !info.certificate_name.empty();
  if (info.transport == Transport::tls && is_vouched_for) return false;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(std::string{host_of(info.remote)}, error);
  if (error) return true;
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return !boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6())
                .is_loopback();
  }
  return !address.is_loopback();
}

std::unique_ptr<Session> make_node_session(Node& node, Batch& batch, Durability level,
                                           const SessionInfo& info,
                                           std::shared_ptr<SessionHost> host) {
  const bool is_shut = node.settings.boolean(Setting::protected_mode) &&
                       !node.asks_for_password() && is_remote(info, asks_for_certificates(node));
  if (!is_shut) return std::make_unique<NodeSession>(node, batch, level, info, std::move(host));
  node.stats.connection_refused();
  node.hooks.report({.level = LogLevel::warning,
                     .name = "client_denied",
                     .address = info.remote,
                     .text = "protected-mode, and the user default needs no password"});
  return std::make_unique<RefusingSession>(std::string{denied}, std::move(host));
}

NodeSession::NodeSession(Node& node, Batch& batch, Durability level, const SessionInfo& info,
                         std::shared_ptr<SessionHost> host)
    : node_(node),
      level_(level),
      host_(std::move(host)),
      connection_(node, batch, this, origin_of(info, node)) {
  connection_.share_large();
}

NodeSession::~NodeSession() = default;

void NodeSession::receive(std::string_view bytes, std::string& out) {
  if (level_ < Durability::synced) return connection_.receive(bytes, out);
  std::string replies;
  const std::uint64_t before = connection_.requests();
  connection_.receive(bytes, replies);
  deliver(std::move(replies), connection_.requests() - before, out);
}

void NodeSession::pass_on(std::string& out, std::string_view bytes, Splices&& large) {
  for (Splice& each : large) {
    each.at += out.size();
    large_.push_back(std::move(each));
  }
  out += bytes;
}

Splices NodeSession::take_large() {
  if (level_ < Durability::synced) return connection_.take_large();
  return std::exchange(large_, {});
}

/// Replies awaiting the sync stay with this session; the socket has nothing pending until then.
void NodeSession::hold_output(std::size_t own, std::size_t large, std::size_t parts) {
  if (sync_ == nullptr) {
    connection_.hold_output(own, large, parts);
  } else {
    connection_.hold_output(own + held_.size(), large + bytes_of(held_large_),
                            parts + 1 + held_large_.size());
  }
}

void NodeSession::deliver(std::string&& replies, std::uint64_t requests, std::string& out) {
  if (requests == 0) {  // pushes need no durability wait
    pass_on(out, replies, connection_.take_large());
    return;
  }
  held_ = std::move(replies);
  held_large_ = connection_.take_large();
  connection_.hold_output(held_.size(), bytes_of(held_large_), 1 + held_large_.size());
  held_requests_ = requests;
  sync_ = std::make_shared<Sync>();
  sync_->host = host_;
  node_.engine().confirm_async(level_, [sync = sync_](const Status& status) {
    {
      const base::MutexLock lock{sync->mutex};
      sync->answered = true;
      sync->failed = !status;
    }
    sync->host->wake();
  });
}

void NodeSession::collect(std::string& out) {
  if (sync_ != nullptr) {
    bool failed = false;
    {
      const base::MutexLock lock{sync_->mutex};
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
      pass_on(out, held_, std::move(held_large_));
    }
    give_back(held_);
    held_large_ = Splices{};
    connection_.hold_output(0, 0, 0);  // the socket reports its pending bytes
  }
  if (level_ < Durability::synced) return connection_.collect(out);
  std::string replies;
  const std::uint64_t before = connection_.requests();
  const bool waited = connection_.waits();
  connection_.collect(replies);
  const bool answered = waited && !connection_.waits();
  deliver(std::move(replies), connection_.requests() - before + (answered ? 1 : 0), out);
}

bool NodeSession::closes() const noexcept {
  return sync_ == nullptr && connection_.closes();
}
bool NodeSession::waits() const noexcept {
  return sync_ != nullptr || connection_.waits();
}
bool NodeSession::more() const noexcept {
  return sync_ == nullptr && connection_.more();
}

SessionInput NodeSession::input() const noexcept {
  return {.requests = connection_.requests(),
          .held = connection_.kept_bytes(),
          .wanted = connection_.wanted_bytes()};
}

OutputClass NodeSession::output_class() const noexcept {
  return connection_.client().subscribes() ? OutputClass::pubsub : OutputClass::normal;
}

void NodeSession::end() noexcept {
  connection_.end();
}

}  // namespace semel::net
