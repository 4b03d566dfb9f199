#include "gateway/shared/stream.hpp"

#include <openssl/ssl.h>

#include <boost/asio/ssl/host_name_verification.hpp>
#include <fstream>

namespace semel::gateway {
namespace {

Error bad_file(const std::string& setting, const std::string& file, const error_code& error) {
  return {ErrorCode::bad_option, setting + " '" + file + "': " + error.message()};
}

/// HTTP/1.1 or nothing: the handshake fails for a client that offers only h2.
int choose_protocol(SSL* /*connection*/, const unsigned char** chosen, unsigned char* bytes,
                    const unsigned char* offered, unsigned offered_bytes, void* /*unused*/) {
  static constexpr unsigned char ours[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* found = nullptr;
  const int answer =
      SSL_select_next_proto(&found, bytes, ours, sizeof ours, offered, offered_bytes);
  *chosen = found;
  return answer == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::shared_ptr<asio::ssl::context> new_context(asio::ssl::context::method method) {
  auto made = std::make_shared<asio::ssl::context>(method);
  SSL_CTX_set_min_proto_version(made->native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_session_cache_mode(made->native_handle(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(made->native_handle(), SSL_MODE_RELEASE_BUFFERS);  // of idle connections
  SSL_CTX_set_options(made->native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Without this OpenSSL prompts at the terminal for the password of an encrypted key, and blocks.
  made->set_password_callback(
      [](std::size_t, asio::ssl::context::password_purpose) { return std::string{}; });
  return made;
}

}  // namespace

bool Stream::has_unread() noexcept {
  if (!secure_) return false;
  SSL* const connection = secure_->native_handle();
  return SSL_has_pending(connection) != 0 || BIO_pending(SSL_get_rbio(connection)) > 0;
}

std::vector<std::string> check_tls_files(const Settings& settings) {
  std::vector<std::string> errors;
  const NodeSettings& node = settings.node;
  const std::pair<const char*, const std::string*> files[] = {
      {"tls-cert", &settings.tls_cert},
      {"tls-key", &settings.tls_key},
      {"upstream-ca", &settings.upstream_ca},
      {"store-ca", &node.ca},
      {"store-cert", &node.cert},
      {"store-key", &node.key}};
  for (const auto& [setting, file] : files) {
    if (file->empty()) continue;
    std::ifstream stream{*file, std::ios::binary};
    if (stream.get() != std::ifstream::traits_type::eof()) continue;
    errors.push_back(std::string{setting} + " '" + *file + "': cannot be read, or is empty");
  }
  if (!errors.empty()) return errors;  // those that follow would say the same again
  const auto note = [&](const auto& made) {
    if (!made) errors.push_back(made.error().detail);
  };
  const bool is_pair = settings.tls_cert.empty() == settings.tls_key.empty();
  if (is_pair) note(client_tls(settings));
  if (parse_upstream(settings.upstream)) note(upstream_tls(settings));
  if (node.cert.empty() == node.key.empty()) note(node_tls(node));
  return errors;
}

Result<std::shared_ptr<asio::ssl::context>> client_tls(const Settings& settings) {
  if (settings.tls_cert.empty()) return std::shared_ptr<asio::ssl::context>{};
  auto made = new_context(asio::ssl::context::tls_server);
  error_code error;
  made->use_certificate_chain_file(settings.tls_cert, error);
  if (error) return bad_file("tls-cert", settings.tls_cert, error);
  made->use_private_key_file(settings.tls_key, asio::ssl::context::pem, error);
  if (error) return bad_file("tls-key", settings.tls_key, error);
  SSL_CTX_set_alpn_select_cb(made->native_handle(), choose_protocol, nullptr);
  return made;
}

Result<std::shared_ptr<asio::ssl::context>> upstream_tls(const Settings& settings) {
  SEMEL_TRY(address, parse_upstream(settings.upstream));
  if (!address.is_tls) return std::shared_ptr<asio::ssl::context>{};
  auto made = new_context(asio::ssl::context::tls_client);
  error_code error;
  if (!settings.upstream_ca.empty()) {
    made->load_verify_file(settings.upstream_ca, error);
    if (error) return bad_file("upstream-ca", settings.upstream_ca, error);
  } else {
    made->set_default_verify_paths(error);
    if (error) return bad_file("upstream-ca", "of the system", error);
  }
  return made;
}

Result<std::shared_ptr<asio::ssl::context>> node_tls(const NodeSettings& node) {
  if (!node.is_tls) return std::shared_ptr<asio::ssl::context>{};
  auto made = new_context(asio::ssl::context::tls_client);
  error_code error;
  if (node.ca.empty()) {
    made->set_default_verify_paths(error);
  } else {
    made->load_verify_file(node.ca, error);
  }
  if (error) return bad_file("store-ca", node.ca.empty() ? "of the system" : node.ca, error);
  if (node.cert.empty()) return made;
  made->use_certificate_chain_file(node.cert, error);
  if (error) return bad_file("store-cert", node.cert, error);
  made->use_private_key_file(node.key, asio::ssl::context::pem, error);
  if (error) return bad_file("store-key", node.key, error);
  return made;
}

bool is_refused_by_tls(const error_code& error) noexcept {
  return error && error.category() == asio::error::get_ssl_category();
}

bool expect_name(Stream& stream, const std::string& host, bool is_verified) {
  auto* const tls = stream.tls_layer();
  if (tls == nullptr) return true;
  error_code is_address;
  asio::ip::make_address(host, is_address);
  // Names of hosts are for SNI, addresses are not (RFC 6066, section 3).
  if (is_address && SSL_set_tlsext_host_name(tls->native_handle(), host.c_str()) != 1) return false;
  error_code error;
  tls->set_verify_mode(is_verified ? asio::ssl::verify_peer : asio::ssl::verify_none, error);
  if (error || !is_verified) return !error;
  tls->set_verify_callback(asio::ssl::host_name_verification{host}, error);
  return !error;
}

}  // namespace semel::gateway
