// The parts of the console without a node: sessions, limits of logins, guard, texts.
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/console/console_json.hpp"
#include "net/console/console_limits.hpp"
#include "net/console/console_sessions.hpp"
#include "net/console/key_text.hpp"
#include "net/console/login_limit.hpp"
#include "net/console/request_guard.hpp"
#include "semel/clock.hpp"

namespace semel::tests {
namespace {

namespace limits = net::console_limits;
using net::AdminRequest;
using net::ConsoleSession;
using net::ConsoleSessions;

struct Sessions {
  std::string open(const std::string& user) {
    auto opened = sessions.open({.user = user}, clock.now());
    ended = opened ? opened->ended.size() : 0;
    return opened ? opened->secret : "";
  }
  [[nodiscard]] bool is_open(const std::string& secret) {
    return sessions.find(secret, clock.now()) != nullptr;
  }

  ManualClock clock;
  ConsoleSessions sessions;
  std::size_t ended = 0;
};

AdminRequest get(const std::string& path, const std::string& host) {
  AdminRequest request;
  request.path = path;
  request.host = host;
  request.peer_is_local = true;
  return request;
}

AdminRequest post(const std::string& host, const std::string& origin) {
  AdminRequest request = get("/console/api/login", host);
  request.method = "POST";
  request.origin = origin;
  request.content_type = "application/json";
  return request;
}

std::string refusal(const net::RequestGuard& guard, const AdminRequest& request) {
  const auto place = guard.check(request);
  return place ? "" : place.error().detail;
}

}  // namespace

TEST_CASE("console session: it ends when it was idle for 15 minutes, and after 8 hours",
          "[net][console]") {
  Sessions at;
  const std::string secret = at.open("ann");
  at.clock.advance(limits::session_idle_max - Millis{1});
  CHECK(at.is_open(secret));
  REQUIRE(at.sessions.use(secret, at.clock.now()) != nullptr);
  at.clock.advance(limits::session_idle_max - Millis{1});
  CHECK(at.is_open(secret));
  at.clock.advance(Millis{1});
  CHECK_FALSE(at.is_open(secret));
  CHECK(at.sessions.use(secret, at.clock.now()) == nullptr);

  const std::string busy = at.open("ann");
  const Timestamp end = at.clock.now() + limits::session_life_max;
  while (end - at.clock.now() > Millis{60'000}) {
    REQUIRE(at.sessions.use(busy, at.clock.now()) != nullptr);
    at.clock.advance(Millis{60'000});
  }
  REQUIRE(at.sessions.use(busy, at.clock.now()) != nullptr);
  at.clock.advance(end - at.clock.now() - Millis{1});
  CHECK(at.is_open(busy));
  at.clock.advance(Millis{1});
  CHECK_FALSE(at.is_open(busy));
}

TEST_CASE("console session: looking at it does not keep it alive", "[net][console]") {
  Sessions at;
  const std::string secret = at.open("ann");
  for (int i = 0; i < 15; ++i) {
    CHECK(at.is_open(secret));
    at.clock.advance(Millis{60'000});
  }
  CHECK_FALSE(at.is_open(secret));
}

TEST_CASE(
    "console session: a ninth of one user ends the one idle longest, a 33rd of others is "
    "refused",
    "[net][console]") {
  Sessions at;
  std::vector<std::string> secrets;
  for (std::size_t i = 0; i < limits::sessions_per_user_max; ++i) {
    secrets.push_back(at.open("ann"));
    at.clock.advance(Millis{1});
  }
  REQUIRE(at.sessions.use(secrets[0], at.clock.now()) != nullptr);
  REQUIRE_FALSE(at.open("ann").empty());
  CHECK(at.ended == 1);
  CHECK(at.is_open(secrets[0]));
  CHECK_FALSE(at.is_open(secrets[1]));
  for (std::size_t i = at.sessions.count(); i < limits::sessions_max; ++i) {
    REQUIRE_FALSE(at.open("user" + std::to_string(i)).empty());
  }
  CHECK(at.open("late").empty());
  CHECK_FALSE(at.open("ann").empty());  // in place of one of ann's
  CHECK(at.sessions.count() == limits::sessions_max);
  at.clock.advance(limits::session_idle_max);
  CHECK_FALSE(at.open("late").empty());
  CHECK(at.sessions.count() == 1);
}

TEST_CASE("console session: numbers have 256 bits, differ, and are not what is kept",
          "[net][console]") {
  Sessions at;
  const std::string one = at.open("ann");
  const std::string other = at.open("ann");
  CHECK(one.size() == 64);
  CHECK(one != other);
  const ConsoleSession* const kept = at.sessions.find(one, at.clock.now());
  REQUIRE(kept != nullptr);
  CHECK(net::hex_of(kept->digest) != one);
  CHECK(kept->csrf_token != one);
  CHECK_FALSE(at.is_open(""));
  CHECK_FALSE(at.is_open(net::hex_of(kept->digest)));
  CHECK_FALSE(at.is_open(one.substr(0, 63)));
}

TEST_CASE("console login: five tries of an address, then one each six seconds", "[net][console]") {
  ManualClock clock;
  net::LoginLimit limit;
  const auto take = [&](const std::string& address) { return limit.take(address, clock.now()); };
  for (std::size_t i = 0; i < limits::tries_per_address; ++i) {
    REQUIRE(take("10.0.0.1:" + std::to_string(i)) == Millis{0});
  }
  CHECK(take("10.0.0.1:99") == limits::try_of_address_after);
  CHECK(take("10.0.0.2:99") == Millis{0});
  clock.advance(limits::try_of_address_after - Millis{1});
  CHECK(take("10.0.0.1:99") == Millis{1});
  clock.advance(Millis{1});
  CHECK(take("10.0.0.1:99") == Millis{0});
  CHECK(take("10.0.0.1:99") == limits::try_of_address_after);
}

TEST_CASE("console login: of IPv6 the first 64 bits count, and all addresses together",
          "[net][console]") {
  ManualClock clock;
  net::LoginLimit limit;
  for (std::size_t i = 0; i < limits::tries_per_address; ++i) {
    REQUIRE(limit.take("[2001:db8::" + std::to_string(i + 1) + "]:1", clock.now()) == Millis{0});
  }
  CHECK(limit.take("[2001:db8::ffff]:1", clock.now()) > Millis{0});
  CHECK(limit.take("[2001:db8:0:1::1]:1", clock.now()) == Millis{0});
  for (std::size_t i = limits::tries_per_address + 1; i < limits::tries_in_all; ++i) {
    REQUIRE(limit.take("10.0.1." + std::to_string(i) + ":1", clock.now()) == Millis{0});
  }
  CHECK(limit.take("10.0.2.1:1", clock.now()) == limits::try_in_all_after);
  clock.advance(limits::try_in_all_after);
  CHECK(limit.take("10.0.2.1:1", clock.now()) == Millis{0});
}

TEST_CASE("console login: any number of addresses takes a bounded room", "[net][console]") {
  ManualClock clock;
  net::LoginLimit limit;
  for (int i = 0; i < 100'000; ++i) {
    static_cast<void>(limit.take("10." + std::to_string(i / 65'536) + "." +
                                     std::to_string(i / 256 % 256) + "." + std::to_string(i % 256) +
                                     ":1",
                                 clock.now()));
    if (i % 3 == 0) clock.advance(Millis{1});
  }
  CHECK(limit.addresses() <= limits::addresses_max);
}

TEST_CASE("console guard: addresses and localhost are names of the console, others are not",
          "[net][console][guard]") {
  const net::RequestGuard guard{{}};
  for (const char* const host :
       {"127.0.0.1:9100", "localhost:9100", "LOCALHOST", "[::1]:9100", "10.1.2.3:80", "10.1.2.3"}) {
    INFO(host);
    CHECK(guard.check(get("/console/", host)).ok());
  }
  for (const char* const host :
       {"", "evil.example", "evil.example:9100", "127.0.0.1.evil.example", "localhost.evil.example",
        "127.0.0.1:9100:1", "127.0.0.1:", "127.0.0.1:70000", "::1", "[evil]:1", "127.1:80",
        "127.0.0.1@evil.example", "0x7f000001", "[::1].evil.example"}) {
    INFO(host);
    CHECK_FALSE(guard.check(get("/console/api/status", host)).ok());
  }
  CHECK(guard.check(get("/console/", "127.0.0.1:1"))->is_local);
  CHECK_FALSE(guard.check(get("/console/", "10.1.2.3:1"))->is_local);
  AdminRequest far = get("/console/", "127.0.0.1:1");
  far.peer_is_local = false;
  CHECK_FALSE(guard.check(far)->is_local);
}

TEST_CASE("console guard: a POST comes from the page's own origin, and is JSON",
          "[net][console][guard]") {
  const net::RequestGuard guard{{}};
  const std::string host = "127.0.0.1:9100";
  CHECK(refusal(guard, post(host, "http://127.0.0.1:9100")).empty());
  for (const char* const origin :
       {"http://evil.example", "http://127.0.0.1", "http://127.0.0.1:9101", "null",
        "https://127.0.0.1:9100", "http://localhost:9100", "http://127.0.0.1:9100/"}) {
    INFO(origin);
    CHECK_FALSE(refusal(guard, post(host, origin)).empty());
  }
  CHECK(refusal(guard, post(host, "")) == "the header Origin is missing");
  for (const char* const type : {"", "text/plain", "application/x-www-form-urlencoded",
                                 "multipart/form-data; a=application/json"}) {
    AdminRequest request = post(host, "http://127.0.0.1:9100");
    request.content_type = type;
    CHECK(refusal(guard, request) == "the body is not application/json");
  }
  AdminRequest cross = post(host, "http://127.0.0.1:9100");
  cross.fetch_site = "cross-site";
  CHECK(refusal(guard, cross) == "a page of another site has asked for this");
  AdminRequest twice = post(host, "http://127.0.0.1:9100");
  twice.repeated_header = "Host";
  CHECK(refusal(guard, twice) == "the header Host is there twice");
  AdminRequest link = get("/console/", host);
  link.fetch_site = "cross-site";
  CHECK(refusal(guard, link).empty());
}

TEST_CASE("console guard: an origin that was set is the proxy's, with https",
          "[net][console][guard]") {
  const net::RequestGuard guard{{"https://semel.example"}};
  const auto by_name = guard.check(post("semel.example", "https://semel.example"));
  REQUIRE(by_name.ok());
  CHECK(by_name->is_https);
  CHECK(by_name->is_proxied);
  CHECK_FALSE(by_name->is_local);
  const auto by_port = guard.check(post("127.0.0.1:9100", "https://semel.example"));
  REQUIRE(by_port.ok());
  CHECK(by_port->is_proxied);
  CHECK_FALSE(refusal(guard, post("semel.example", "http://semel.example")).empty());
  CHECK_FALSE(refusal(guard, post("semel.example", "https://evil.example")).empty());

  CHECK(net::check_console_origin("https://semel.example").ok());
  CHECK(net::check_console_origin("https://semel.example:8443").ok());
  CHECK(net::check_console_origin("http://[::1]:80").ok() == false);
  for (const char* const wrong :
       {"", "semel.example", "https://", "https://Semel.example", "https://a/b", "ftp://a",
        "https://a:443", "https://a:x", "https://a b", "https://*.example"}) {
    INFO(wrong);
    CHECK_FALSE(net::check_console_origin(wrong).ok());
  }
  CHECK(net::check_console_origin("https://" + std::string(247, 'a')).ok());
  CHECK_FALSE(net::check_console_origin("https://" + std::string(248, 'a')).ok());
}

TEST_CASE("console cookie: the one of its name, if it is there once", "[net][console][guard]") {
  CHECK(net::cookie_of("a=1; b=2", "b") == "2");
  CHECK(net::cookie_of("b=2", "b") == "2");
  CHECK(net::cookie_of("xb=1; b=2;", "b") == "2");
  CHECK(net::cookie_of("b=1; b=2", "b").empty());
  CHECK(net::cookie_of("b", "b").empty());
  CHECK(net::cookie_of("", "b").empty());
  CHECK(net::cookie_of(";;; =;b=", "b").empty());
  CHECK(net::is_same_secret("abc", "abc"));
  CHECK_FALSE(net::is_same_secret("abc", "abd"));
  CHECK_FALSE(net::is_same_secret("abc", "ab"));
}

TEST_CASE("console text: any bytes become visible characters, and the same bytes again",
          "[net][console]") {
  CHECK(net::key_text("a\\b") == "a\\\\b");
  CHECK(net::key_text("<script>") == "<script>");
  CHECK(net::key_text("\xc3\xa4 \xf0\x9f\x98\x80") == "\xc3\xa4 \xf0\x9f\x98\x80");
  CHECK(net::key_text(std::string{"\0\n\xff", 3}) == "\\x00\\x0a\\xff");
  CHECK(net::key_text("a\xe2\x80\xae"
                      "b") == "a\\xe2\\x80\\xaeb");  // RIGHT-TO-LEFT OVERRIDE
  CHECK(net::key_text("\xe2\x81\xa6\xe2\x80\x8b\xc2\xa0") ==
        "\\xe2\\x81\\xa6\\xe2\\x80\\x8b\\xc2\\xa0");
  std::mt19937 random{Catch::rngSeed()};
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 4 == 0 ? '\\' : random());
    REQUIRE(net::bytes_of_key_text(net::key_text(bytes)) == bytes);
  }
  for (const char* const wrong : {"\\", "\\x", "\\x1", "\\xg0", "\\n", "a\\"}) {
    CHECK_FALSE(net::bytes_of_key_text(wrong).has_value());
  }
}

}  // namespace semel::tests
