#include "replication/transport/peer_transport.hpp"

#include <utility>

#include "base/assert.hpp"
#include "replication/transport/transport_inside.hpp"

namespace semel::replication {

namespace asio = boost::asio;

PeerTransport::PeerTransport(std::shared_ptr<TransportInside> inside)
    : inside_(std::move(inside)) {}
PeerTransport::~PeerTransport() {
  stop();
}

Result<std::unique_ptr<PeerTransport>> PeerTransport::open(asio::io_context& context,
                                                           const TransportOptions& options,
                                                           PeerHandler& handler) {
  const auto address = split_address(options.listen);
  if (!address) {
    return Error{ErrorCode::bad_option, "'" + options.listen + "' is not host:port"};
  }
  std::shared_ptr<asio::ssl::context> tls;
  if (options.tls) {
    SEMEL_TRY(loaded, load_tls(*options.tls));
    tls = std::move(loaded);
  }
  auto inside = std::make_shared<TransportInside>(context, options, handler, std::move(tls));
  boost::system::error_code error;
  asio::ip::tcp::resolver resolver{context};
  const auto found =
      resolver.resolve(address->first, address->second, asio::ip::tcp::resolver::passive, error);
  if (error || found.empty()) {
    return Error{ErrorCode::bad_option, "'" + options.listen + "': " + error.message()};
  }
  const asio::ip::tcp::endpoint endpoint = *found.begin();
  asio::ip::tcp::acceptor& acceptor = inside->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address{true}, error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return Error{ErrorCode::storage_in_use, options.listen + ": " + error.message()};
  inside->begin();
  return std::unique_ptr<PeerTransport>{new PeerTransport{std::move(inside)}};
}

std::uint16_t PeerTransport::port() const noexcept {
  boost::system::error_code ignored;
  return inside_->acceptor.local_endpoint(ignored).port();
}

void PeerTransport::set_peers(const std::map<NodeId, std::string>& peers) {
  inside_->set_peers(peers);
}
void PeerTransport::expect_logs(const std::map<NodeId, LogIdentity>& logs) {
  inside_->expect_logs(logs);
}
LogIdentity PeerTransport::log_of(NodeId id) const {
  const auto found = inside_->incoming.find(id);
  return found == inside_->incoming.end() ? LogIdentity{} : found->second->log;
}
void PeerTransport::send(const RaftMessage& message) {
  SEMEL_ASSERT(message.from == inside_->options.node_id);
  static_cast<void>(inside_->queue(message.to, message));
}
bool PeerTransport::send(NodeId to, const Frame& frame) {
  return inside_->queue(to, frame);
}
void PeerTransport::fetch(NodeId from, LogIndex index, Term term, const std::string& path,
                          std::function<void(const std::string&)> done) {
  inside_->fetch(from, {.index = index, .term = term}, path, std::move(done));
}
void PeerTransport::cancel_fetch() {
  inside_->cancel_fetch();
}
TransportTotals PeerTransport::totals() const noexcept {
  return inside_->totals;
}
std::size_t PeerTransport::half_open() const noexcept {
  return inside_->unknown.size();
}
void PeerTransport::stop() {
  inside_->stop();
}

Status PeerTransport::reload_tls(const PeerTls& files) {
  SEMEL_TRY(loaded, load_tls(files));
  inside_->tls = std::move(loaded);
  return Done{};
}

std::map<NodeId, PeerStats> PeerTransport::stats() const {
  std::map<NodeId, PeerStats> found;
  for (const auto& [id, peer] : inside_->peers) {
    found[id] = peer->stats;
    found[id].is_connected = peer->out != nullptr;
  }
  return found;
}

}  // namespace semel::replication
