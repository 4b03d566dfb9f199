// Which clients may connect to a node, from where and as which user: with made-up addresses.
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/server/node_session.hpp"
#include "semel/semel.hpp"
#include "tests/net/server/server_fixture.hpp"
#include "tests/support/resp.hpp"

namespace semel::tests {
namespace {

using net::SessionInfo;
using net::Transport;
class WakeCounter final : public net::SessionHost {
 public:
  void wake() noexcept override { ++wakes; }
  int wakes = 0;
};

struct Door {
  Door() : engine(std::move(Engine::open({}).value())), node(*engine, settings) {
    node.hooks.event = [this](const net::NodeEvent& event) { reported.emplace_back(event.name); };
  }
  struct Guest {
    std::unique_ptr<net::Session> session;
    std::shared_ptr<WakeCounter> host = std::make_shared<WakeCounter>();

    std::string say(const Words& words) {
      std::string reply;
      if (host->wakes != 0) session->collect(reply);
      if (!session->closes()) session->receive(request_bytes(words), reply);
      return reply;
    }
  };
  Guest knock(const SessionInfo& info) {
    Guest guest;
    guest.session = net::make_node_session(node, batch, Durability::memory, info, guest.host);
    return guest;
  }
  Guest far() { return knock({.remote = "192.0.2.2:4711"}); }
  Guest near() { return knock({.remote = "127.0.0.1:4711"}); }
  void set(const std::string& name, const std::string& value) {
    const net::Settings::NamedView pair{name, value};
    REQUIRE(settings.set(std::span{&pair, 1}).ok());
  }

  std::vector<std::string> reported;
  net::Settings settings;
  std::unique_ptr<Engine> engine;
  net::Node node;
  net::Batch batch;
};

}  // namespace

TEST_CASE("protected mode: an address is of this machine or it is not",
          "[net][exposure][attack][fault-4]") {
  const auto tcp = [](const std::string& address) {
    return net::is_remote({.transport = Transport::tcp, .remote = address}, false);
  };
  for (const char* const address :
       {"127.0.0.1:1", "127.8.9.10:65535", "[::1]:80", "[::ffff:127.0.0.1]:80"}) {
    INFO(address);
    CHECK_FALSE(tcp(address));
  }
  for (const char* const address :
       {"192.0.2.2:1", "10.0.0.1:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1", "128.0.0.1:1", "", "?",
        "127.0.0.1.example:1", "localhost:1"}) {
    INFO(address);
    CHECK(tcp(address));
  }
  CHECK_FALSE(net::is_remote({.transport = Transport::unix_socket, .remote = "/s:0"}, false));
}

TEST_CASE("protected mode: a certificate that was asked for vouches for a client",
          "[net][exposure][attack][fault-4]") {
  SessionInfo info{.transport = Transport::tls, .remote = "192.0.2.2:1"};
  CHECK(net::is_remote(info, false));
  CHECK_FALSE(net::is_remote(info, true));
  info.certificate_name = "ada";
  CHECK_FALSE(net::is_remote(info, false));
  info.transport = Transport::tcp;
  CHECK(net::is_remote(info, true));
}

TEST_CASE("protected mode: without a password a remote client gets an error, and is closed",
          "[net][exposure][attack][fault-4]") {
  Door door;
  Door::Guest guest = door.far();
  CHECK(guest.host->wakes == 1);
  const std::string reply = guest.say({"SET", "x", "1"});
  CHECK(reply.starts_with("-DENIED Semel is running in protected mode"));
  CHECK(reply.ends_with("\r\n"));
  CHECK(guest.session->closes());
  CHECK(door.near().say({"EXISTS", "x"}) == ":0\r\n");
  CHECK(door.node.stats.refused() == 1);
  REQUIRE(door.reported.size() == 1);
  CHECK(door.reported[0] == "client_denied");
}

TEST_CASE("protected mode: it is checked for each connection, after any change of users",
          "[net][exposure][attack][fault-4]") {
  Door door;
  door.set("requirepass", "secret");
  Door::Guest before = door.far();
  CHECK(before.say({"GET", "x"}) == "-NOAUTH Authentication required.\r\n");
  SECTION("CONFIG SET requirepass") {
    door.set("requirepass", "");
  }
  SECTION("ACL SETUSER") {
    Door::Guest admin = door.near();
    REQUIRE(admin.say({"AUTH", "secret"}) == "+OK\r\n");
    REQUIRE(admin.say({"ACL", "SETUSER", "default", "nopass"}) == "+OK\r\n");
  }
  CHECK(door.far().say({"PING"}).starts_with("-DENIED"));
  CHECK(door.near().say({"PING"}) == "+PONG\r\n");
  // A client that connected while a password was needed still needs one.
  CHECK(before.say({"GET", "x"}) == "-NOAUTH Authentication required.\r\n");
  CHECK(before.say({"AUTH", "default", "anything"}).starts_with("-WRONGPASS"));
  CHECK(before.say({"HELLO", "3", "AUTH", "default", "x"}).starts_with("-WRONGPASS"));
  CHECK(before.say({"RESET"}) == "+RESET\r\n");
  CHECK(before.say({"GET", "x"}) == "-NOAUTH Authentication required.\r\n");
  door.set("protected-mode", "no");
  CHECK(door.far().say({"PING"}) == "+PONG\r\n");
}

TEST_CASE("protected mode: a user without a password is for this machine only",
          "[net][exposure][attack][fault-4]") {
  Door door;
  REQUIRE(door.node.acl
              .load_file("user default off\nuser x on nopass ~* +@all\n"
                         "user y on >pw ~* +@all\n",
                         "acl")
              .ok());
  Door::Guest far = door.far();
  CHECK(far.say({"AUTH", "x", "any"}).starts_with("-WRONGPASS"));
  CHECK(far.say({"SET", "a", "b"}).starts_with("-NOAUTH"));
  CHECK(far.say({"AUTH", "y", "pw"}) == "+OK\r\n");
  CHECK(far.say({"SET", "a", "b"}) == "+OK\r\n");
  CHECK(door.near().say({"AUTH", "x", "any"}) == "+OK\r\n");
}

TEST_CASE("protected mode: switched on, it ends connections without a login",
          "[net][exposure][attack][fault-4]") {
  Door door;
  door.set("protected-mode", "no");
  Door::Guest far = door.far();
  REQUIRE(far.say({"SET", "a", "1"}) == "+OK\r\n");
  Door::Guest near = door.near();
  door.set("protected-mode", "yes");
  CHECK(far.host->wakes != 0);
  std::string nothing;
  far.session->collect(nothing);
  CHECK(far.session->closes());
  near.session->collect(nothing);
  CHECK_FALSE(near.session->closes());
}

TEST_CASE("certificates: with tls-auth-clients-user CN a client is the user its certificate names",
          "[net][tls][attack][fault-9]") {
  Door door;
  Door::Guest admin = door.near();
  REQUIRE(admin.say({"ACL", "SETUSER", "ada", "on", ">pw", "~a*", "+@all"}) == "+OK\r\n");
  REQUIRE(admin.say({"ACL", "SETUSER", "off", "off", "+@all"}) == "+OK\r\n");
  const auto whoami = [&](const std::string& name, Transport transport = Transport::tls) {
    return door.knock({.transport = transport, .remote = "127.0.0.1:1", .certificate_name = name})
        .say({"ACL", "WHOAMI"});
  };
  CHECK(whoami("ada") == "$7\r\ndefault\r\n");
  door.set("tls-auth-clients-user", "CN");
  CHECK(whoami("ada") == "$3\r\nada\r\n");
  CHECK(whoami("ADA") == "$7\r\ndefault\r\n");
  CHECK(whoami("off") == "$7\r\ndefault\r\n");
  CHECK(whoami("nobody") == "$7\r\ndefault\r\n");
  CHECK(whoami("") == "$7\r\ndefault\r\n");
  // Its rights are those of the user, and it need not log in where others must.
  door.set("requirepass", "secret");
  Door::Guest ada =
      door.knock({.transport = Transport::tls, .remote = "192.0.2.2:1", .certificate_name = "ada"});
  CHECK(ada.say({"SET", "a1", "v"}) == "+OK\r\n");
  CHECK(ada.say({"SET", "b1", "v"}).starts_with("-NOPERM"));
  CHECK(door.knock({.transport = Transport::tls, .remote = "127.0.0.1:1", .certificate_name = "x"})
            .say({"GET", "a1"})
            .starts_with("-NOAUTH"));
}

TEST_CASE("password file: its first line is the password of the user default",
          "[net][acl][attack][fault-9]") {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/password";
  const auto open = [&](const std::string& content, const std::string& requirepass = {}) {
    std::ofstream{path, std::ios::binary} << content;
    net::Settings settings;
    REQUIRE(settings.assign(net::Setting::requirepass_file, path, {}).ok());
    REQUIRE(settings.assign(net::Setting::requirepass, requirepass, {}).ok());
    const auto engine = std::move(Engine::open({}).value());
    net::Node node{*engine, settings};
    if (const Status opened = node.open_users(); !opened) return opened.error().detail;
    net::AclSession session = node.acl.open_session();
    return std::string{node.acl.log_in(session, "default", "s3 cret") ? "right" : "wrong"};
  };
  CHECK(open("s3 cret\n") == "right");
  CHECK(open("s3 cret") == "right");
  CHECK(open("s3 cret\r\nanother line\n") == "right");
  CHECK(open("other\n") == "wrong");
  CHECK(open("") == "requirepass-file '" + path + "' is empty");
  CHECK(open("\n") == "requirepass-file '" + path + "' is empty");
  CHECK(open(std::string(4'097, 'x')) ==
        "requirepass-file '" + path + "' has more than 4096 bytes");
  CHECK(open(std::string(9'000, 'x')) ==
        "requirepass-file '" + path + "' has more than 4096 bytes");
  CHECK(open("s3 cret\n", "both") == "requirepass and requirepass-file are both set");
  std::error_code gone;
  std::filesystem::remove(path, gone);
  net::Settings settings;
  REQUIRE(settings.assign(net::Setting::requirepass_file, path, {}).ok());
  const auto engine = std::move(Engine::open({}).value());
  net::Node node{*engine, settings};
  CHECK(node.open_users().error().detail == "requirepass-file '" + path + "' cannot be read");
}

}  // namespace semel::tests
