#include "net/server/tls.hpp"

#include <openssl/bio.h>
#include <openssl/buffer.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <climits>
#include <filesystem>
#include <system_error>
#include <utility>

namespace semel::net {

namespace {

/// The reason of the last failure, in OpenSSL's text; empties its error queue.
std::string reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* text = code != 0 ? ERR_reason_error_string(code) : nullptr;
  // An error of the system, for example of opening a file, has no text in OpenSSL.
  std::string words = text != nullptr ? text : "error " + std::to_string(ERR_GET_REASON(code));
  ERR_clear_error();
  return words;
}

/// Without it OpenSSL would prompt at the terminal.
int give_password(char* room, int size, int /*writes*/, void* mine) {
  const auto& password = *static_cast<const std::string*>(mine);
  if (password.size() > static_cast<std::size_t>(size)) return 0;
  password.copy(room, password.size());
  return static_cast<int>(password.size());
}

Error bad_tls(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}

Status load_identity(SSL_CTX* context, const TlsFiles& files) {
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return bad_tls("TLS certificate '" + files.certificate + "': " + reason());
  }
  std::string password = files.key_password;
  SSL_CTX_set_default_passwd_cb(context, give_password);
  SSL_CTX_set_default_passwd_cb_userdata(context, &password);
  const bool taken = SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  SSL_CTX_set_default_passwd_cb(context, nullptr);
  OPENSSL_cleanse(password.data(), password.size());
  if (!taken)
    return bad_tls("TLS key '" + files.key + "' for '" + files.certificate + "': " + reason());
  return Done{};
}

Status set_ciphers(SSL_CTX* context, const TlsFiles& files) {
  if (!files.speaks_1_2 && !files.speaks_1_3) return bad_tls("no version of TLS is to be spoken");
  SSL_CTX_set_min_proto_version(context, files.speaks_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION);
  if (!files.speaks_1_3) SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
  if (files.prefers_server_ciphers) {
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  }
  if (!files.ciphers.empty() && SSL_CTX_set_cipher_list(context, files.ciphers.c_str()) != 1) {
    return bad_tls("TLS ciphers '" + files.ciphers + "': " + reason());
  }
  if (!files.ciphersuites.empty() &&
      SSL_CTX_set_ciphersuites(context, files.ciphersuites.c_str()) != 1) {
    return bad_tls("TLS ciphersuites '" + files.ciphersuites + "': " + reason());
  }
  return Done{};
}

Status load_authorities(SSL_CTX* context, const TlsFiles& files) {
  const std::string& directory = files.authorities_directory;
  if (files.authorities.empty() && directory.empty()) {
    return bad_tls("client certificates need a file of authorities");
  }
  if (!files.authorities.empty()) {
    if (SSL_CTX_load_verify_file(context, files.authorities.c_str()) != 1) {
      return bad_tls("TLS authorities '" + files.authorities + "': " + reason());
    }
    SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(files.authorities.c_str()));
  }
  if (directory.empty()) return Done{};
  // OpenSSL itself looks into it only when a client shows a certificate.
  std::error_code unknown;
  if (!std::filesystem::is_directory(directory, unknown)) {
    return bad_tls("TLS authorities '" + directory + "': not a directory");
  }
  if (SSL_CTX_load_verify_dir(context, directory.c_str()) != 1) {
    return bad_tls("TLS authorities '" + directory + "': " + reason());
  }
  return Done{};
}

Status fill(SSL_CTX* context, const TlsFiles& files) {
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // Without a session id context a server that requires certificates cannot resume sessions.
  constexpr unsigned char name[] = "semel";
  SSL_CTX_set_session_id_context(context, name, sizeof name - 1);
  SEMEL_CHECK(load_identity(context, files));
  SEMEL_CHECK(set_ciphers(context, files));
  if (files.clients == ClientCertificates::none) return Done{};
  SEMEL_CHECK(load_authorities(context, files));
  const int insists =
      files.clients == ClientCertificates::required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | insists, nullptr);
  return Done{};
}

/// Null: no memory for it.
BIO* memory_bio() {
  BIO* const bio = BIO_new(BIO_s_mem());
  if (bio != nullptr) BIO_set_mem_eof_return(bio, -1);  // empty: more may come
  return bio;
}

bool has_grown(BIO* bio) {
  constexpr std::size_t room_kept = 4096;
  BUF_MEM* memory = nullptr;
  BIO_get_mem_ptr(bio, &memory);
  return memory != nullptr && memory->max > room_kept;
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsFiles& files) {
  ERR_clear_error();
  SSL_CTX* const native = SSL_CTX_new(TLS_server_method());
  if (native == nullptr) return bad_tls("TLS: " + reason());
  std::shared_ptr<const TlsContext> context{new TlsContext{native}};
  const Status filled = fill(native, files);
  ERR_clear_error();
  SEMEL_CHECK(filled);
  return context;
}

TlsContext::~TlsContext() {
  SSL_CTX_free(native_);
}

std::unique_ptr<TlsLayer> TlsLayer::accept(const TlsContext& context) {
  SSL* const native = SSL_new(context.native());
  BIO* const from_net = memory_bio();
  BIO* const to_net = memory_bio();
  if (native == nullptr || from_net == nullptr || to_net == nullptr) {
    BIO_free(from_net);
    BIO_free(to_net);
    SSL_free(native);
    ERR_clear_error();
    return nullptr;
  }
  SSL_set_bio(native, from_net, to_net);
  SSL_set_accept_state(native);
  return std::unique_ptr<TlsLayer>{new TlsLayer{native}};
}

TlsLayer::TlsLayer(ssl_st* native) noexcept
    : native_(native), from_net_(SSL_get_rbio(native)), to_net_(SSL_get_wbio(native)) {}

TlsLayer::~TlsLayer() {
  SSL_free(native_);
}

void TlsLayer::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto part = static_cast<int>(bytes.size() < INT_MAX ? bytes.size() : INT_MAX);
    if (BIO_write(from_net_, bytes.data(), part) != part) {
      state_ = State::failed;
      error_ = "out of memory";
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(part));
  }
}

std::size_t TlsLayer::read(char* to, std::size_t room) {
  // An old error of this thread in OpenSSL's queue must not be taken for ours.
  ERR_clear_error();
  if (state_ == State::handshake) {
    const int result = SSL_do_handshake(native_);
    if (result != 1) {
      judge(result);
      return 0;
    }
    state_ = State::open;
  }
  if (state_ != State::open) return 0;
  std::size_t got = 0;
  const int result = SSL_read_ex(native_, to, room, &got);
  if (result == 1) return got;
  judge(result);
  shrink_input();
  return 0;
}

void TlsLayer::judge(int result) {
  switch (SSL_get_error(native_, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return;
    case SSL_ERROR_ZERO_RETURN:
      state_ = State::closed;
      return;
    default:
      state_ = State::failed;
      error_ = reason();
  }
}

/// A memory BIO keeps the capacity of its largest content; of many idle connections that adds up.
void TlsLayer::shrink_input() {
  if (!has_grown(from_net_) || BIO_pending(from_net_) != 0) return;
  BIO* const fresh = memory_bio();
  if (fresh == nullptr) return;
  SSL_set0_rbio(native_, fresh);
  from_net_ = fresh;
}

void TlsLayer::write(std::string_view plain) {
  if (plain.empty() || (state_ != State::open && state_ != State::closed)) return;
  ERR_clear_error();
  std::size_t written = 0;
  // A write into memory succeeds completely or fails.
  const int result = SSL_write_ex(native_, plain.data(), plain.size(), &written);
  if (result != 1) judge(result);
}

void TlsLayer::close() {
  if (state_ != State::open && state_ != State::closed) return;
  ERR_clear_error();
  SSL_shutdown(native_);  // does not wait for the answer
  ERR_clear_error();
}

void TlsLayer::drain_output(std::string& bytes) {
  const char* data = nullptr;
  const long size = BIO_get_mem_data(to_net_, &data);
  if (size <= 0) return;
  bytes.append(data, static_cast<std::size_t>(size));
  BIO* const fresh = has_grown(to_net_) ? memory_bio() : nullptr;
  if (fresh == nullptr) {
    static_cast<void>(BIO_reset(to_net_));
    return;
  }
  SSL_set0_wbio(native_, fresh);
  to_net_ = fresh;
}

std::string TlsLayer::client_name() const {
  X509* const certificate = SSL_get0_peer_certificate(native_);
  if (certificate == nullptr) return {};
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return {};
  ASN1_STRING* const name = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
  unsigned char* bytes = nullptr;
  const int size = ASN1_STRING_to_UTF8(&bytes, name);
  if (size < 0) return {};
  std::string text{reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
  // OPENSSL_free would put the path of this file, and so the folder of the build, into the program.
  CRYPTO_free(bytes, "tls.cpp", __LINE__);
  // With an embedded zero byte two different names would compare equal as C strings.
  return text.find('\0') == std::string::npos ? text : std::string{};
}

}  // namespace semel::net
