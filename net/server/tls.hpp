// TLS without a socket: bytes of the network in, bytes for it out, plain bytes on the other side.
// 1.2 and later, no renegotiation, no compression, no sessions kept in the server's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "semel/result.hpp"

// OpenSSL's own names; its headers stay in tls.cpp.
struct ssl_ctx_st;
struct ssl_st;
struct bio_st;

namespace semel::net {

enum class ClientCertificates : std::uint8_t { none, optional, required };

/// Files in PEM, and the options of the handshake.
struct TlsFiles {
  std::string certificate{};            ///< the server's, and the chain to its authority
  std::string key{};                    ///< of the certificate
  std::string key_password{};           ///< empty: the key is not encrypted
  std::string authorities{};            ///< authorities of client certificates
  std::string authorities_directory{};  ///< more of them, under OpenSSL's hashed names
  ClientCertificates clients = ClientCertificates::none;
  bool speaks_1_2 = true;
  bool speaks_1_3 = true;
  std::string ciphers{};                ///< of 1.2; empty: OpenSSL's
  std::string ciphersuites{};           ///< of 1.3; empty: OpenSSL's
  bool prefers_server_ciphers = false;  ///< the server's order decides, not the client's
};

/// Certificate, key and rules of new connections. Connections keep the context that they began
/// with, so it can be replaced at any time.
class TlsContext {
 public:
  /// The detail of an error names the file and the reason.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> load(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  [[nodiscard]] ssl_ctx_st* native() const noexcept { return native_; }

 private:
  explicit TlsContext(ssl_ctx_st* native) noexcept : native_(native) {}
  ssl_ctx_st* native_;
};

/// The server's end of one connection. One thread at a time.
class TlsLayer {
 public:
  enum class State : std::uint8_t {
    handshake,
    open,
    closed,  ///< the client has closed its side
    failed,  ///< error() has the reason; drain_output() still has an alert for the client
  };

  /// Null: no memory for it.
  [[nodiscard]] static std::unique_ptr<TlsLayer> accept(const TlsContext& context);
  ~TlsLayer();
  TlsLayer(const TlsLayer&) = delete;
  TlsLayer& operator=(const TlsLayer&) = delete;

  /// Feeds bytes from the network. They are kept until read() has used them.
  void feed(std::string_view bytes);
  /// Continues the handshake, or decrypts. 0: nothing more until feed(); check state().
  [[nodiscard]] std::size_t read(char* to, std::size_t room);
  /// Encrypts. In state open, and in closed: a client that has closed its side may still read.
  void write(std::string_view plain);
  /// Sends the end of the stream.
  void close();
  /// Appends the bytes to send; any of the calls above may produce more.
  void drain_output(std::string& bytes);

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  /// The common name in the client's certificate; empty: it has none.
  [[nodiscard]] std::string client_name() const;

 private:
  explicit TlsLayer(ssl_st* native) noexcept;
  void judge(int result);
  void shrink_input();

  ssl_st* native_;
  bio_st* from_net_;  // both belong to native_
  bio_st* to_net_;
  State state_ = State::handshake;
  std::string error_;
};

}  // namespace semel::net
