#include "replication/transport/peer_stream.hpp"

#include <openssl/x509v3.h>

#include <algorithm>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace semel::replication {

namespace asio = boost::asio;
using asio::use_awaitable;

namespace {

/// More than a usual entry has. All messages read ahead are handled in one go, before anything else
/// runs.
constexpr std::size_t read_ahead_bytes = std::size_t{16} << 10;

std::string address_of(const PeerStream::Socket& socket) {
  boost::system::error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error) return "unknown";
  return remote.address().to_string() + ":" + std::to_string(remote.port());
}

}  // namespace

Result<std::shared_ptr<asio::ssl::context>> load_tls(const PeerTls& files) {
  auto made = std::make_shared<asio::ssl::context>(asio::ssl::context::tls);
  boost::system::error_code error;
  const auto failed = [&](const std::string& file) {
    return Error{ErrorCode::bad_option, "'" + file + "': " + error.message()};
  };
  SSL_CTX_set_min_proto_version(made->native_handle(), TLS1_3_VERSION);
  SSL_CTX_set_session_cache_mode(made->native_handle(), SSL_SESS_CACHE_OFF);
  made->use_certificate_chain_file(files.certificate, error);
  if (error) return failed(files.certificate);
  made->use_private_key_file(files.key, asio::ssl::context::pem, error);
  if (error) return failed(files.key);
  made->load_verify_file(files.authorities, error);
  if (error) return failed(files.authorities);
  made->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  return made;
}

std::optional<std::pair<std::string, std::string>> split_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) return std::nullopt;
  std::string host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return std::nullopt;
  }
  if (host.empty()) return std::nullopt;
  return std::pair{host, address.substr(colon + 1)};
}

namespace {

bool is_host_letter(char c) noexcept {
  const auto is_in = [c](char from, char to) { return c >= from && c <= to; };
  return is_in('a', 'z') || is_in('A', 'Z') || is_in('0', '9') || c == '.' || c == '-' ||
         c == '_' || c == ':' || c == '%';
}

/// A host that other nodes can use, and a port of 1 to 65535.
bool is_reachable(const std::string& address) {
  constexpr unsigned port_max = 65535;
  const auto parts = split_address(address);
  if (!parts || !std::all_of(parts->first.begin(), parts->first.end(), is_host_letter))
    return false;
  const std::string& port = parts->second;
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc{} && end == port.data() + port.size() && number >= 1 &&
         number <= port_max;
}

}  // namespace

Status check_member_address(const std::string& address) {
  const auto refused = [](const std::string& part, const char* whom) {
    constexpr std::size_t shown_max = 60;
    std::string shown = part.substr(0, shown_max);
    for (char& c : shown) c = c >= ' ' && c <= '~' ? c : '?';
    return Error{ErrorCode::bad_option,
                 "'" + shown + "' is not host:port, the address for " + whom};
  };
  if (address.size() > address_bytes_max) {
    return Error{ErrorCode::bad_option, "an address of " + std::to_string(address.size()) +
                                            " bytes, limit " + std::to_string(address_bytes_max)};
  }
  const std::size_t comma = address.find(',');
  const std::string peers = address.substr(0, comma);
  if (!is_reachable(peers)) return refused(peers, "other nodes");
  if (comma == std::string::npos) return Done{};
  const std::string clients = address.substr(comma + 1);
  return is_reachable(clients) ? Status{Done{}} : refused(clients, "clients");
}

std::string node_uri(std::uint64_t cluster_id, NodeId node_id) {
  char text[64];
  std::snprintf(text, sizeof text, "semel://%016llx/%llu",
                static_cast<unsigned long long>(cluster_id),
                static_cast<unsigned long long>(node_id));
  return text;
}

PeerStream::PeerStream(Socket socket, std::shared_ptr<asio::ssl::context> tls)
    : tls_(std::move(tls)),
      none_(tls_ ? tls_ : std::make_shared<asio::ssl::context>(asio::ssl::context::tls)),
      stream_(std::move(socket), *none_),
      deadline_(stream_.get_executor()),
      address_(address_of(stream_.next_layer())) {
  boost::system::error_code ignored;
  stream_.next_layer().set_option(asio::ip::tcp::no_delay{true}, ignored);
}
PeerStream::~PeerStream() = default;

asio::awaitable<void> PeerStream::begin_tls(bool is_server) {
  if (!tls_) co_return;
  co_await stream_.async_handshake(
      is_server ? asio::ssl::stream_base::server : asio::ssl::stream_base::client, use_awaitable);
}

bool PeerStream::proves(std::uint64_t cluster_id, NodeId node_id) const {
  if (!tls_) return true;
  const std::string wanted = node_uri(cluster_id, node_id);
  auto& stream = const_cast<asio::ssl::stream<Socket>&>(stream_);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate{
      SSL_get1_peer_certificate(stream.native_handle()), X509_free};
  if (certificate == nullptr) return false;
  const auto free_names = [](GENERAL_NAMES* names) { GENERAL_NAMES_free(names); };
  const std::unique_ptr<GENERAL_NAMES, decltype(free_names)> names{
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)),
      free_names};
  if (names == nullptr) return false;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    const Bytes text{reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                     static_cast<std::size_t>(ASN1_STRING_length(uri))};
    if (text == wanted) return true;
  }
  return false;
}

asio::awaitable<void> PeerStream::fill(asio::mutable_buffer to) {
  if (tls_) {
    co_await asio::async_read(stream_, to, use_awaitable);
  } else {
    co_await asio::async_read(stream_.next_layer(), to, use_awaitable);
  }
}

/// Until so many are held(): at most as many as ahead_ has room for.
asio::awaitable<void> PeerStream::hold(std::size_t bytes) {
  SEMEL_ASSERT(bytes <= ahead_.size());
  if (begin_ + bytes > ahead_.size() || begin_ == end_) {
    std::memmove(ahead_.data(), ahead_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ - begin_ < bytes) {
    const auto room = asio::buffer(ahead_.data() + end_, ahead_.size() - end_);
    std::size_t count = 0;
    if (tls_) {
      count = co_await stream_.async_read_some(room, use_awaitable);
    } else {
      count = co_await stream_.next_layer().async_read_some(room, use_awaitable);
    }
    end_ += count;
  }
}

asio::awaitable<Frame> PeerStream::read(std::size_t bytes_max) {
  // Nothing of a connection that was closed is taken, also if it has come before.
  if (!stream_.next_layer().is_open()) {
    throw boost::system::system_error{asio::error::operation_aborted};
  }
  // A peer that is not known yet costs no more than the longest hello.
  const std::size_t room = std::min(bytes_max, read_ahead_bytes);
  if (ahead_.size() < room) ahead_.resize(room);
  if (held().size() < frame_head_bytes) co_await hold(frame_head_bytes);
  const auto rest = frame_rest(held().data(), bytes_max);
  if (!rest.ok()) throw PeerError{rest.error().detail};
  begin_ += frame_head_bytes;
  std::string large;
  Bytes bytes;
  if (*rest <= ahead_.size()) {
    if (held().size() < *rest) co_await hold(*rest);
    bytes = held().substr(0, *rest);
    begin_ += *rest;
  } else {
    large.resize(*rest);
    const std::size_t count = held().copy(large.data(), large.size());
    begin_ += count;
    co_await fill(asio::buffer(large.data() + count, large.size() - count));
    bytes = large;
  }
  auto frame = decode_frame(bytes);
  if (!frame.ok()) throw PeerError{frame.error().detail};
  co_return *std::move(frame);
}

asio::awaitable<void> PeerStream::write(const std::string& bytes) {
  if (tls_) {
    co_await asio::async_write(stream_, asio::buffer(bytes), use_awaitable);
  } else {
    co_await asio::async_write(stream_.next_layer(), asio::buffer(bytes), use_awaitable);
  }
}

asio::awaitable<void> PeerStream::say(const Frame& frame) {
  std::string bytes;
  encode(frame, bytes);
  co_await write(bytes);
}

void PeerStream::close() noexcept {
  ++deadlines_;
  deadline_.cancel();
  boost::system::error_code ignored;
  stream_.next_layer().close(ignored);
}

void PeerStream::close_in(Millis time) {
  const std::uint64_t number = ++deadlines_;
  deadline_.expires_after(time);
  deadline_.async_wait([weak = weak_from_this(), number](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self != nullptr && self->deadlines_ == number) self->close();
  });
}

}  // namespace semel::replication
