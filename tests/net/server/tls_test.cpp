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
#include "tests/net/server/server_fixture.hpp"
#include "tests/net/server/tls_client.hpp"

namespace semel::tests {
namespace {

using net::ClientCertificates;
using net::Ended;
using net::TlsContext;
using net::TlsFiles;
using net::TlsLayer;

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
  [[nodiscard]] Socket connect() { return Socket{server->tls_port()}; }

  TemporaryDirectory directory;
  Identity authority{"authority"};
  Identity served{"server", &authority};
};

TEST_CASE_METHOD(TlsFixture, "a conversation over TLS, in any pieces", "[net][tls]") {
  const auto context = TlsContext::load(options.tls);
  REQUIRE(context.ok());
  const auto layer = TlsLayer::accept(**context);
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
    layer->drain_output(cipher);
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
  Socket socket = connect();
  TlsClient client{{.trusted = &authority}};
  REQUIRE(client.connect(socket));
  CHECK(client.ask("echo hello\n", 6) == "hello\n");
  CHECK(sessions.look(1).info.transport == net::Transport::tls);
  CHECK(sessions.look(1).info.certificate_name.empty());
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
  Socket socket = connect();
  TlsClient client{{.trusted = &authority}};
  REQUIRE(client.connect(socket));
  REQUIRE(client.ask("echo x\n", 2) == "x\n");
  // Both records in one segment: the second is decrypted when the first has ended its waiting.
  socket.send(client.captured([&] {
    client.send("wait\n");
    client.send("echo behind\n");
  }));
  REQUIRE(sessions.wait_for(1, [](const SessionState& seen) { return seen.waits; }));
  tick_round();
  sessions.push(1, "first\n");
  CHECK(client.read(13) == "first\nbehind\n");
}

TEST_CASE_METHOD(TlsFixture, "a client that has closed its side of TLS still gets the replies",
                 "[net][tls]") {
  start();
  Socket socket = connect();
  TlsClient client{{.trusted = &authority}};
  REQUIRE(client.connect(socket));
  socket.send(client.captured([&] {  // one segment, so that all of it is read at once
    client.send("echo a\n");
    CHECK(SSL_shutdown(client.native()) == 0);
  }));
  CHECK(client.read(3) == "a\n");
}

TEST_CASE_METHOD(TlsFixture, "nothing older than TLS 1.2 is spoken", "[net][tls]") {
  start();
  const auto works = [&](int version) {
    Socket socket = connect();
    return TlsClient{{.version_max = version}}.connect(socket);
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
    Socket socket = connect();
    TlsClient client{{.trusted = &authority, .shown = shown}};
    if (!client.connect(socket)) return "no handshake";
    if (!client.try_send("echo in\n")) return "no writing";
    return client.read(3);
  };
  CHECK(reply_to(&known) == "in\n");
  CHECK(sessions.look(1).info.certificate_name == "worker-7");
  CHECK(reply_to(nullptr) != "in\n");
  CHECK(reply_to(&stranger) != "in\n");
  tick_round();
  CHECK(ended_by(Ended::handshake_failed) == 2);
  CHECK(sessions.log().size() == 2);
  CHECK(sessions.log()[0].find("TLS handshake failed: ") != std::string::npos);
}

TEST_CASE_METHOD(TlsFixture, "a certificate that may be shown must be right, too", "[net][tls]") {
  ask_for_certificates(ClientCertificates::optional);
  start();
  const Identity known{"worker-7", &authority};
  const Identity stranger{"worker-7"};
  const auto name_with = [&](const Identity* shown, std::uint64_t id) -> std::string {
    Socket socket = connect();
    TlsClient client{{.trusted = &authority, .shown = shown}};
    if (!client.connect(socket)) return "refused";
    if (!client.try_send("echo in\n") || client.read(3) != "in\n") return "refused";
    return "[" + sessions.look(id).info.certificate_name + "]";
  };
  CHECK(name_with(nullptr, 1) == "[]");
  CHECK(name_with(&known, 2) == "[worker-7]");
  CHECK(name_with(&stranger, 3) == "refused");
}

TEST_CASE_METHOD(TlsFixture, "plain bytes on the TLS port are refused with one line in the log",
                 "[net][tls]") {
  start();
  Socket client = connect();
  client.send("*1\r\n$4\r\nPING\r\n");
  CHECK(client.read_to_end().find("(open)") == std::string::npos);
  tick_round();
  CHECK(ended_by(Ended::handshake_failed) == 1);
  REQUIRE(sessions.log().size() == 1);
  CHECK(sessions.log()[0].find("TLS handshake failed: wrong version number") != std::string::npos);
}

TEST_CASE_METHOD(TlsFixture, "many failing handshakes do not fill the log", "[net][tls]") {
  start();
  for (int i = 0; i < 25; ++i) {
    Socket client = connect();
    client.send("*1\r\n$4\r\nPING\r\n");
    CHECK(client.read_to_end().find("(open)") == std::string::npos);
  }
  tick_round();
  CHECK(ended_by(Ended::handshake_failed) == 25);
  CHECK(sessions.log().size() == net::LogGate::lines_max);
  clock.advance(net::LogGate::period);
  tick_round();
  CHECK(sessions.log().back() == "15 more lines about connections left out");
}

TEST_CASE_METHOD(TlsFixture, "a handshake has a time and a size", "[net][tls][limits]") {
  options.limits.handshake = Millis{3000};
  SECTION("time") {
    start();
    Socket silent = connect();
    Socket other = connect();
    TlsClient done{{.trusted = &authority}};
    REQUIRE(done.connect(other));
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
    Socket socket = connect();
    TlsClient client{{.trusted = &authority}};
    CHECK_FALSE(client.connect(socket));
    tick_round();
    CHECK(ended_by(Ended::handshake_failed) == 1);
    CHECK(sessions.log().at(0).find("TLS handshake is over 64 bytes") != std::string::npos);
  }
}

TEST_CASE_METHOD(TlsFixture, "new connections use the files of a reload, old ones go on",
                 "[net][tls]") {
  start();
  const Identity new_authority{"new authority"};
  Identity{"server", &new_authority}.save(directory.path() + "/new");
  Socket old_socket = connect();
  TlsClient old{{.trusted = &authority}};
  REQUIRE(old.connect(old_socket));
  REQUIRE(old.ask("echo x\n", 2) == "x\n");

  TlsFiles wrong = files("new");
  wrong.key = files("server").key;
  CHECK(server->reload_tls(wrong).error().detail ==
        "TLS key '" + wrong.key + "' for '" + wrong.certificate + "': key values mismatch");
  wrong.key = directory.path() + "/none";
  CHECK(server->reload_tls(wrong).error().detail.find("TLS key '" + wrong.key + "' for ") == 0);
  std::ofstream{directory.path() + "/text"} << "no certificate\n";
  wrong.certificate = directory.path() + "/text";
  CHECK(server->reload_tls(wrong).error().detail.find("TLS certificate '" + wrong.certificate) ==
        0);
  {
    Socket socket = connect();
    TlsClient client{{.trusted = &authority}};
    CHECK(client.connect(socket));  // nothing has changed
  }
  CHECK(server->reload_tls(files("new")).ok());
  Socket socket = connect();
  TlsClient client{{.trusted = &new_authority}};
  REQUIRE(client.connect(socket));
  CHECK(client.ask("echo new\n", 4) == "new\n");
  CHECK(old.ask("echo old\n", 4) == "old\n");
  Socket late_socket = connect();
  TlsClient late{{.trusted = &authority}};
  CHECK_FALSE(late.connect(late_socket));
}

TEST_CASE_METHOD(TlsFixture, "versions and ciphers are those that were chosen", "[net][tls]") {
  const auto speaks = [&](int version) {
    Socket socket = connect();
    TlsClient client{{.trusted = &authority, .version_max = version}};
    return client.connect(socket);
  };
  const auto cipher = [&](int version) {
    Socket socket = connect();
    TlsClient client{{.trusted = &authority, .version_max = version}};
    REQUIRE(client.connect(socket));
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
    REQUIRE(server->reload_tls(options.tls).ok());
    CHECK(cipher(TLS1_3_VERSION) == "TLS_AES_128_GCM_SHA256");
  }
  SECTION("what OpenSSL does not know is refused") {
    start();
    TlsFiles wrong = options.tls;
    wrong.ciphers = "none-such";
    CHECK(server->reload_tls(wrong).error().detail == "TLS ciphers 'none-such': no cipher match");
    wrong = options.tls;
    wrong.ciphersuites = "none-such";
    CHECK(server->reload_tls(wrong).error().detail.starts_with("TLS ciphersuites 'none-such': "));
    wrong = options.tls;
    wrong.speaks_1_2 = wrong.speaks_1_3 = false;
    CHECK(server->reload_tls(wrong).error().detail == "no version of TLS is to be spoken");
    CHECK(speaks(TLS1_3_VERSION));
  }
}

TEST_CASE_METHOD(TlsFixture, "a key may have a password", "[net][tls]") {
  served.save(directory.path() + "/locked", "secret");
  options.tls = files("locked");
  CHECK(net::Server::start(options, sessions.hooks())
            .error()
            .detail.find("TLS key '" + options.tls.key) == 0);
  options.tls.key_password = "wrong";
  CHECK_FALSE(net::Server::start(options, sessions.hooks()).ok());
  options.tls.key_password = "secret";
  start();
  Socket socket = connect();
  TlsClient client{{.trusted = &authority}};
  REQUIRE(client.connect(socket));
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
    Socket socket = connect();
    TlsClient client{{.trusted = &authority, .shown = shown}};
    // With 1.3 the refusal comes behind the client's handshake.
    return client.connect(socket) && client.try_send("echo x\n") && client.read(2) == "x\n";
  };
  const Identity friendly{"friend", &authority};
  const Identity elsewhere{"elsewhere"};
  const Identity foreign{"foreign", &elsewhere};
  CHECK(gets_in(&friendly));
  CHECK_FALSE(gets_in(&foreign));
  CHECK_FALSE(gets_in(nullptr));
  TlsFiles wrong = options.tls;
  wrong.authorities_directory = directory.path() + "/ca.crt";
  CHECK(server->reload_tls(wrong).error().detail ==
        "TLS authorities '" + wrong.authorities_directory + "': not a directory");
}

TEST_CASE_METHOD(TlsFixture, "a server does not start with files that it cannot use",
                 "[net][tls]") {
  const auto refused = [&] {
    const auto started = net::Server::start(options, sessions.hooks());
    return started ? std::string{"none"} : started.error().detail;
  };
  options.tls.certificate = directory.path() + "/none";
  CHECK(refused().find("TLS certificate '" + options.tls.certificate + "': ") == 0);
  options.tls = files("server");
  options.tls.clients = ClientCertificates::required;
  CHECK(refused() == "client certificates need a file of authorities");
}

}  // namespace
}  // namespace semel::tests
