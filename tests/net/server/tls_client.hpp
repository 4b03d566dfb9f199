// The client's end of TLS, over a socket or over memory.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include "tests/support/catch.hpp"

#include "tests/net/server/certificates.hpp"
#include "tests/support/socket.hpp"

namespace semel::tests {

struct TlsClientOptions {
  const Identity* trusted = nullptr;  ///< null: any server
  const Identity* shown = nullptr;    ///< null: no certificate of its own
  int version_max = 0;                ///< 0: any
};

class TlsClient final : public Stream {
 public:
  explicit TlsClient(TlsClientOptions options) : context_(SSL_CTX_new(TLS_client_method())) {
    if (options.trusted != nullptr) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), options.trusted->certificate());
      SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    }
    if (options.shown != nullptr) {
      REQUIRE(SSL_CTX_use_certificate(context_.get(), options.shown->certificate()) == 1);
      REQUIRE(SSL_CTX_use_PrivateKey(context_.get(), options.shown->key()) == 1);
    }
    if (options.version_max != 0) {
      SSL_CTX_set_security_level(context_.get(), 0);  // or OpenSSL itself refuses old versions
      SSL_CTX_set_min_proto_version(context_.get(), options.version_max);
      SSL_CTX_set_max_proto_version(context_.get(), options.version_max);
    }
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_connect_state(ssl_.get());
  }
  /// The handshake over `socket`, which must outlive this client. False: it failed.
  [[nodiscard]] bool connect(const Socket& socket) {
    SSL_set_fd(ssl_.get(), socket.native());
    ERR_clear_error();
    return SSL_connect(ssl_.get()) == 1;
  }
  [[nodiscard]] bool try_send(std::string_view bytes) override {
    std::size_t written = 0;
    ERR_clear_error();
    return SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) == 1;
  }
  [[nodiscard]] Received receive(std::string& bytes, std::size_t count = 16 * 1024) override {
    char chunk[16 * 1024];
    std::size_t got = 0;
    ERR_clear_error();
    const int done = SSL_read_ex(ssl_.get(), chunk, std::min(count, sizeof chunk), &got);
    bytes.append(chunk, got);
    if (done == 1) return Received::bytes;
    return SSL_want_read(ssl_.get()) ? Received::timeout : Received::end;
  }
  /// What `action` would have sent.
  template <class Action>
  [[nodiscard]] std::string captured(Action&& action) {
    BIO* const memory = BIO_new(BIO_s_mem());
    BIO* const network = SSL_get_wbio(ssl_.get());
    BIO_up_ref(network);
    SSL_set0_wbio(ssl_.get(), memory);
    action();
    char* data = nullptr;
    const long size = BIO_get_mem_data(memory, &data);
    std::string bytes{data, static_cast<std::size_t>(size)};
    SSL_set0_wbio(ssl_.get(), network);
    return bytes;
  }
  [[nodiscard]] SSL* native() const noexcept { return ssl_.get(); }

 private:
  struct FreeContext {
    void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  };
  struct FreeSsl {
    void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  };

  std::unique_ptr<SSL_CTX, FreeContext> context_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
};

}  // namespace semel::tests
