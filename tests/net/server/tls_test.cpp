// TLS as a layer over bytes, and on the server's port.
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include "tests/support/catch.hpp"

#include "net/server/log_gate.hpp"
#include "net/server/tls.hpp"
#include "tests/net/server/certificates.hpp"
#include "tests/net/server/server_fixture.hpp"

namespace semel::tests {
namespace {

using net::ClientCertificates;
using net::Ended;
using net::TlsContext;
using net::TlsFiles;
using net::TlsLayer;

struct FreeContext {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
struct FreeSsl {
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
};

struct ClientSetup {
  const Identity* trusted = nullptr;  ///< null: whoever answers
  const Identity* shown = nullptr;    ///< null: no certificate of its own
  int version_max = 0;                ///< 0: any
};

/// The client's end, over memory or a socket.
class TlsClient {
 public:
  explicit TlsClient(ClientSetup setup) : context_(SSL_CTX_new(TLS_client_method())) {
    if (setup.trusted != nullptr) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), setup.trusted->certificate());
      SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    }
    if (setup.shown != nullptr) {
      REQUIRE(SSL_CTX_use_certificate(context_.get(), setup.shown->certificate()) == 1);
      REQUIRE(SSL_CTX_use_PrivateKey(context_.get(), setup.shown->key()) == 1);
    }
    if (setup.version_max != 0) {
      SSL_CTX_set_security_level(context_.get(), 0);  // or OpenSSL itself refuses old versions
      SSL_CTX_set_min_proto_version(context_.get(), setup.version_max);
      SSL_CTX_set_max_proto_version(context_.get(), setup.version_max);
    }
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_connect_state(ssl_.get());
  }
  [[nodiscard]] bool connect(int socket) {
    SSL_set_fd(ssl_.get(), socket);
    ERR_clear_error();
    return SSL_connect(ssl_.get()) == 1;
  }
  void send(std::string_view bytes) {
    std::size_t written = 0;
    REQUIRE(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) == 1);
  }
  /// `count` bytes, or fewer when no more come.
  [[nodiscard]] std::string read(std::size_t count) {
    std::string bytes(count, '\0');
    std::size_t at = 0;
    while (at < count) {
      std::size_t got = 0;
      ERR_clear_error();
      if (SSL_read_ex(ssl_.get(), bytes.data() + at, count - at, &got) != 1) break;
      at += got;
    }
    bytes.resize(at);
    return bytes;
  }
  [[nodiscard]] std::string ask(std::string_view request, std::size_t count) {
    send(request);
    return read(count);
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
  std::unique_ptr<SSL_CTX, FreeContext> context_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
};

struct TlsFixture : ServerFixture {
  TlsFixture() {
    authority.save(directory.path() + "/ca");
    served.save(directory.path() + "/server");
    options.port.reset();
    options.tls_port = 0;
    options.tls = files("server");
  }
  [[nodiscard]] TlsFiles files(const std::string& name) const {
    const std::string path = directory.path() + "/" + name;
    return {.certificate = path + ".crt", .key = path + ".key"};
  }
  void ask_for_certificates(ClientCertificates clients) {
    options.tls.authorities = directory.path() + "/ca.crt";
    options.tls.clients = clients;
  }
  [[nodiscard]] PlainClient connect() { return PlainClient{server->tls_port()}; }

  TemporaryDirectory directory;
  Identity authority{"authority"};
  Identity served{"server", &authority};
};

TEST_CASE_METHOD(TlsFixture, "a conversation over TLS, in any pieces", "[net][tls]") {
  std::string error;
  const auto context = TlsContext::load(options.tls, error);
  REQUIRE(context != nullptr);
  const auto layer = TlsLayer::accept(*context);
  TlsClient client{{.trusted = &authority}};
  SSL_set_bio(client.native(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  BIO_set_mem_eof_return(SSL_get_rbio(client.native()), -1);
  char room[256];
  std::string plain;
  const auto carry = [&] {  // each byte that the client has made, one by one
    char byte = 0;
    while (BIO_read(SSL_get_wbio(client.native()), &byte, 1) == 1) {
      layer->feed({&byte, 1});
      const std::size_t got = layer->read(room, sizeof room);
      plain.append(room, got);
    }
    std::string cipher;
    layer->take(cipher);
    BIO_write(SSL_get_rbio(client.native()), cipher.data(), static_cast<int>(cipher.size()));
  };
  for (int i = 0; i < 10 && SSL_do_handshake(client.native()) != 1; ++i) carry();
  REQUIRE(SSL_is_init_finished(client.native()) == 1);
  client.send("question");
  carry();
  CHECK(layer->state() == TlsLayer::State::open);
  CHECK(plain == "question");
  layer->write("answer");
  carry();
  CHECK(client.read(6) == "answer");
  SSL_shutdown(client.native());
  carry();
  CHECK(layer->state() == TlsLayer::State::closed);
}

TEST_CASE_METHOD(TlsFixture, "small and large replies arrive whole over TLS", "[net][tls]") {
  start();
  PlainClient socket = connect();
  TlsClient client{{.trusted = &authority}};
  REQUIRE(client.connect(socket.native()));
  CHECK(client.ask("echo hello\n", 6) == "hello\n");
  CHECK(stage.look(1).info.transport == net::Transport::tls);
  CHECK(stage.look(1).info.certificate_name.empty());
  constexpr std::size_t bytes = std::size_t{8} << 20;
  CHECK(client.ask("big " + std::to_string(bytes) + "\n", bytes + 1) ==
        std::string(bytes, 'x') + "\n");
  const std::string word(300'000, 'w');
  CHECK(client.ask(word + "\n", 7) == "300000\n");
  CHECK(client.ask("quit\n", 4) == "bye\n");
  CHECK(client.read(1).empty());
  CHECK(SSL_get_shutdown(client.native()) == SSL_RECEIVED_SHUTDOWN);  // said, not just cut
}

TEST_CASE_METHOD(TlsFixture, "what was decrypted behind a waiting request is not lost",
                 "[net][tls]") {
  start();
  PlainClient socket = connect();
  TlsClient client{{.trusted = &authority}};
  REQUIRE(client.connect(socket.native()));
  REQUIRE(client.ask("echo x\n", 2) == "x\n");
  // Both records in one segment: the second is decrypted when the first has ended its waiting.
  socket.send(client.captured([&] {
    client.send("wait\n");
    client.send("echo behind\n");
  }));
  REQUIRE(stage.wait_for(1, [](const Seen& seen) { return seen.waits; }));
  tick_round();
  stage.push(1, "first\n");
  CHECK(client.read(13) == "first\nbehind\n");
}

TEST_CASE_METHOD(TlsFixture, "who says over TLS that nothing more comes still gets the replies",
                 "[net][tls]") {
  start();
  PlainClient socket = connect();
  TlsClient client{{.trusted = &authority}};
  REQUIRE(client.connect(socket.native()));
  socket.send(client.captured([&] {  // one segment, so that all of it is read at once
    client.send("echo a\n");
    CHECK(SSL_shutdown(client.native()) == 0);
  }));
  CHECK(client.read(3) == "a\n");
}

TEST_CASE_METHOD(TlsFixture, "nothing older than TLS 1.2 is spoken", "[net][tls]") {
  start();
  const auto works = [&](int version) {
    PlainClient socket = connect();
    return TlsClient{{.version_max = version}}.connect(socket.native());
  };
  CHECK(works(TLS1_3_VERSION));
  CHECK(works(TLS1_2_VERSION));
  CHECK_FALSE(works(TLS1_1_VERSION));
  CHECK_FALSE(works(TLS1_VERSION));
  tick_round();
  CHECK(ended_by(Ended::handshake_failed) == 2);
}

TEST_CASE_METHOD(TlsFixture, "a client that must show a certificate gets in with a right one only",
                 "[net][tls]") {
  ask_for_certificates(ClientCertificates::required);
  start();
  const Identity known{"worker-7", &authority};
  const Identity stranger_authority{"authority"};
  const Identity stranger{"worker-7", &stranger_authority};
  const auto reply_to = [&](const Identity* shown) -> std::string {
    PlainClient socket = connect();
    TlsClient client{{.trusted = &authority, .shown = shown}};
    if (!client.connect(socket.native())) return "no handshake";
    std::size_t written = 0;
    if (SSL_write_ex(client.native(), "echo in\n", 8, &written) != 1) return "no writing";
    return client.read(3);
  };
  CHECK(reply_to(&known) == "in\n");
  CHECK(stage.look(1).info.certificate_name == "worker-7");
  CHECK(reply_to(nullptr) != "in\n");
  CHECK(reply_to(&stranger) != "in\n");
  tick_round();
  CHECK(ended_by(Ended::handshake_failed) == 2);
  CHECK(stage.log().size() == 2);
  CHECK(stage.log()[0].find("TLS handshake failed: ") != std::string::npos);
}

TEST_CASE_METHOD(TlsFixture, "a certificate that may be shown must be right, too", "[net][tls]") {
  ask_for_certificates(ClientCertificates::optional);
  start();
  const Identity known{"worker-7", &authority};
  const Identity stranger{"worker-7"};
  const auto name_with = [&](const Identity* shown, std::uint64_t id) -> std::string {
    PlainClient socket = connect();
    TlsClient client{{.trusted = &authority, .shown = shown}};
    if (!client.connect(socket.native())) return "refused";
    std::size_t written = 0;
    SSL_write_ex(client.native(), "echo in\n", 8, &written);
    if (client.read(3) != "in\n") return "refused";
    return "[" + stage.look(id).info.certificate_name + "]";
  };
  CHECK(name_with(nullptr, 1) == "[]");
  CHECK(name_with(&known, 2) == "[worker-7]");
  CHECK(name_with(&stranger, 3) == "refused");
}

TEST_CASE_METHOD(TlsFixture, "plain bytes on the TLS port are refused with one line in the log",
                 "[net][tls]") {
  start();
  PlainClient client = connect();
  client.send("*1\r\n$4\r\nPING\r\n");
  CHECK(client.read_to_end().find("(open)") == std::string::npos);
  tick_round();
  CHECK(ended_by(Ended::handshake_failed) == 1);
  REQUIRE(stage.log().size() == 1);
  CHECK(stage.log()[0].find("TLS handshake failed: wrong version number") != std::string::npos);
}

TEST_CASE_METHOD(TlsFixture, "many failing handshakes do not fill the log", "[net][tls]") {
  start();
  for (int i = 0; i < 25; ++i) {
    PlainClient client = connect();
    client.send("*1\r\n$4\r\nPING\r\n");
    CHECK(client.read_to_end().find("(open)") == std::string::npos);
  }
  tick_round();
  CHECK(ended_by(Ended::handshake_failed) == 25);
  CHECK(stage.log().size() == net::LogGate::lines_max);
  clock.advance(net::LogGate::period);
  tick_round();
  CHECK(stage.log().back() == "15 more lines about connections left out");
}

TEST_CASE_METHOD(TlsFixture, "a handshake has a time and a size", "[net][tls][limits]") {
  options.limits.handshake = Millis{3000};
  SECTION("time") {
    start();
    PlainClient silent = connect();
    PlainClient other = connect();
    TlsClient done{{.trusted = &authority}};
    REQUIRE(done.connect(other.native()));
    REQUIRE(done.ask("echo x\n", 2) == "x\n");
    clock.advance(Millis{3000});
    tick_round();
    CHECK(ended_by(Ended::handshake_late) == 0);
    clock.advance(Millis{1});
    tick_round();
    CHECK(ended_by(Ended::handshake_late) == 1);
    CHECK(silent.read_to_end().empty());
    CHECK(done.ask("echo y\n", 2) == "y\n");
  }
  SECTION("size") {
    ask_for_certificates(ClientCertificates::required);  // the client's second flight counts, too
    options.limits.handshake_bytes = 64;
    start();
    PlainClient socket = connect();
    TlsClient client{{.trusted = &authority}};
    CHECK_FALSE(client.connect(socket.native()));
    tick_round();
    CHECK(ended_by(Ended::handshake_failed) == 1);
    CHECK(stage.log().at(0).find("TLS handshake is over 64 bytes") != std::string::npos);
  }
}

TEST_CASE_METHOD(TlsFixture, "new connections use the files of a reload, old ones go on",
                 "[net][tls]") {
  start();
  const Identity new_authority{"new authority"};
  Identity{"server", &new_authority}.save(directory.path() + "/new");
  PlainClient old_socket = connect();
  TlsClient old{{.trusted = &authority}};
  REQUIRE(old.connect(old_socket.native()));
  REQUIRE(old.ask("echo x\n", 2) == "x\n");

  TlsFiles wrong = files("new");
  wrong.key = files("server").key;
  CHECK(server->reload_tls(wrong).value() ==
        "TLS key '" + wrong.key + "' for '" + wrong.certificate + "': key values mismatch");
  wrong.key = directory.path() + "/none";
  CHECK(server->reload_tls(wrong).value().find("TLS key '" + wrong.key + "' for ") == 0);
  std::ofstream{directory.path() + "/text"} << "no certificate\n";
  wrong.certificate = directory.path() + "/text";
  CHECK(server->reload_tls(wrong).value().find("TLS certificate '" + wrong.certificate) == 0);
  {
    PlainClient socket = connect();
    TlsClient client{{.trusted = &authority}};
    CHECK(client.connect(socket.native()));  // nothing has changed
  }
  CHECK_FALSE(server->reload_tls(files("new")).has_value());
  PlainClient socket = connect();
  TlsClient client{{.trusted = &new_authority}};
  REQUIRE(client.connect(socket.native()));
  CHECK(client.ask("echo new\n", 4) == "new\n");
  CHECK(old.ask("echo old\n", 4) == "old\n");
  PlainClient late_socket = connect();
  TlsClient late{{.trusted = &authority}};
  CHECK_FALSE(late.connect(late_socket.native()));
}

TEST_CASE_METHOD(TlsFixture, "versions and ciphers are those that were chosen", "[net][tls]") {
  const auto speaks = [&](int version) {
    PlainClient socket = connect();
    TlsClient client{{.trusted = &authority, .version_max = version}};
    return client.connect(socket.native());
  };
  const auto cipher = [&](int version) {
    PlainClient socket = connect();
    TlsClient client{{.trusted = &authority, .version_max = version}};
    REQUIRE(client.connect(socket.native()));
    return std::string{SSL_get_cipher_name(client.native())};
  };
  SECTION("1.2 alone") {
    options.tls.speaks_1_3 = false;
    start();
    CHECK(speaks(TLS1_2_VERSION));
    CHECK_FALSE(speaks(TLS1_3_VERSION));
  }
  SECTION("1.3 alone") {
    options.tls.speaks_1_2 = false;
    start();
    CHECK_FALSE(speaks(TLS1_2_VERSION));
    CHECK(speaks(TLS1_3_VERSION));
  }
  SECTION("one cipher of each") {
    options.tls.ciphers = "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
    options.tls.ciphersuites = "TLS_CHACHA20_POLY1305_SHA256";
    start();
    CHECK(cipher(TLS1_2_VERSION).find("CHACHA20") != std::string::npos);
    CHECK(cipher(TLS1_3_VERSION) == "TLS_CHACHA20_POLY1305_SHA256");
  }
  SECTION("whose order counts") {
    options.tls.ciphersuites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384";
    start();  // the client has them the other way round
    CHECK(cipher(TLS1_3_VERSION) == "TLS_AES_256_GCM_SHA384");
    options.tls.prefers_server_ciphers = true;
    REQUIRE_FALSE(server->reload_tls(options.tls).has_value());
    CHECK(cipher(TLS1_3_VERSION) == "TLS_AES_128_GCM_SHA256");
  }
  SECTION("what OpenSSL does not know is refused") {
    start();
    TlsFiles wrong = options.tls;
    wrong.ciphers = "none-such";
    CHECK(server->reload_tls(wrong).value() == "TLS ciphers 'none-such': no cipher match");
    wrong = options.tls;
    wrong.ciphersuites = "none-such";
    CHECK(server->reload_tls(wrong).value().starts_with("TLS ciphersuites 'none-such': "));
    wrong = options.tls;
    wrong.speaks_1_2 = wrong.speaks_1_3 = false;
    CHECK(server->reload_tls(wrong).value() == "no version of TLS is to be spoken");
    CHECK(speaks(TLS1_3_VERSION));
  }
}

TEST_CASE_METHOD(TlsFixture, "a key may have a password", "[net][tls]") {
  served.save(directory.path() + "/locked", "secret");
  options.tls = files("locked");
  std::string error;
  CHECK(net::Server::start(options, stage.hooks(), error) == nullptr);
  CHECK(error.find("TLS key '" + options.tls.key) == 0);
  options.tls.key_password = "wrong";
  CHECK(net::Server::start(options, stage.hooks(), error) == nullptr);
  options.tls.key_password = "secret";
  start();
  PlainClient socket = connect();
  TlsClient client{{.trusted = &authority}};
  REQUIRE(client.connect(socket.native()));
  CHECK(client.ask("echo x\n", 2) == "x\n");
}

TEST_CASE_METHOD(TlsFixture, "authorities may lie in a directory", "[net][tls]") {
  const std::string folder = directory.path() + "/authorities";
  std::filesystem::create_directory(folder);
  char name[16];
  const unsigned long hash =
      X509_NAME_hash_ex(X509_get_subject_name(authority.certificate()), nullptr, nullptr, nullptr);
  std::snprintf(name, sizeof name, "%08lx.0", hash);
  std::filesystem::copy_file(directory.path() + "/ca.crt", folder + "/" + name);
  options.tls.authorities_directory = folder;
  options.tls.clients = ClientCertificates::required;
  start();
  const auto gets_in = [&](const Identity* shown) {
    PlainClient socket = connect();
    TlsClient client{{.trusted = &authority, .shown = shown}};
    // With 1.3 the refusal comes behind the client's handshake.
    return client.connect(socket.native()) && SSL_write(client.native(), "echo x\n", 7) == 7 &&
           client.read(2) == "x\n";
  };
  const Identity friendly{"friend", &authority};
  const Identity elsewhere{"elsewhere"};
  const Identity foreign{"foreign", &elsewhere};
  CHECK(gets_in(&friendly));
  CHECK_FALSE(gets_in(&foreign));
  CHECK_FALSE(gets_in(nullptr));
  TlsFiles wrong = options.tls;
  wrong.authorities_directory = directory.path() + "/ca.crt";
  CHECK(server->reload_tls(wrong).value() ==
        "TLS authorities '" + wrong.authorities_directory + "': not a directory");
}

TEST_CASE_METHOD(TlsFixture, "a server does not start with files that it cannot use",
                 "[net][tls]") {
  std::string error;
  options.tls.certificate = directory.path() + "/none";
  CHECK(net::Server::start(options, stage.hooks(), error) == nullptr);
  CHECK(error.find("TLS certificate '" + options.tls.certificate + "': ") == 0);
  options.tls = files("server");
  options.tls.clients = ClientCertificates::required;
  CHECK(net::Server::start(options, stage.hooks(), error) == nullptr);
  CHECK(error == "client certificates need a file of authorities");
}

}  // namespace
}  // namespace semel::tests
