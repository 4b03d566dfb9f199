// The port for health and metrics, through real sockets.
#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/admin/admin_server.hpp"
#include "tests/net/admin/admin_fixture.hpp"

namespace semel::tests {
namespace {

using net::AdminOptions;
using net::AdminServer;
namespace limits = net::admin_limits;

constexpr std::chrono::milliseconds soon{50};

std::string header_of_bytes(std::size_t bytes) {
  const std::string begin = "GET /livez HTTP/1.1\r\nConnection: close\r\nX: ";
  return begin + std::string(bytes - begin.size() - 4, 'a') + "\r\n\r\n";
}

}  // namespace

TEST_CASE("admin: metrics come as text of Prometheus' format 0.0.4", "[net][admin]") {
  const Served served;
  const std::string answer = served.ask("GET", "/metrics");
  CHECK(status_of(answer) == 200);
  CHECK(has(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  CHECK(has(answer, "Content-Length: 11\r\n"));
  CHECK(has(answer, "Cache-Control: no-store\r\n"));
  CHECK(body_of(answer) == "semel_up 1\n");
  CHECK(status_of(served.ask("GET", "/metrics?name=a")) == 200);
}

TEST_CASE("admin: live while it answers, ready when the node says so", "[net][admin]") {
  std::atomic<bool> is_ready{false};
  const auto ready = [&]() -> Status {
    // mo: relaxed: the test sets it before it asks.
    if (is_ready.load(std::memory_order_relaxed)) return Done{};
    return Error{ErrorCode::closing, "recovering, 40 %"};
  };
  const Served served{{}, {}, ready};
  CHECK(body_of(served.ask("GET", "/livez")) == "ok\n");
  const std::string before = served.ask("GET", "/readyz");
  CHECK(status_of(before) == 503);
  CHECK(body_of(before) == "recovering, 40 %\n");
  is_ready.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
  const std::string after = served.ask("GET", "/readyz");
  CHECK(status_of(after) == 200);
  CHECK(body_of(after) == "ok\n");
}

TEST_CASE("admin: HEAD has the header of GET and no body", "[net][admin]") {
  const Served served;
  AdminClient client{served.port};
  client.send(
      "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nHost: "
      "localhost\r\n\r\n");
  const std::string head = client.answer(false);
  CHECK(status_of(head) == 200);
  CHECK(has(head, "Content-Length: 11\r\n"));
  CHECK(body_of(client.answer()) == "ok\n");  // begins right behind
}

TEST_CASE("admin: what it does not know is 404, 405 or 400", "[net][admin]") {
  const Served served;
  CHECK(status_of(served.ask("GET", "/")) == 404);
  CHECK(status_of(served.ask("POST", "/nowhere")) == 404);
  CHECK(status_of(served.ask("GET", "/metrics/")) == 404);
  for (const char* const method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    const std::string answer = served.ask(method, "/metrics");
    CHECK(status_of(answer) == 405);
    CHECK(has(answer, "Allow: GET, HEAD\r\n"));
  }
  CHECK(status_of(served.ask("PING\r\n\r\n")) == 400);
  CHECK(status_of(served.ask("*1\r\n$4\r\nPING\r\n")) == 400);
  CHECK(status_of(served.ask("GET /livez HTTP/1.1\r\nbad header\r\n\r\n")) == 400);
  CHECK(status_of(served.ask("GET /livez FTP/1.1\r\n\r\n")) == 400);
}

TEST_CASE("admin: a request with a body is refused", "[net][admin]") {
  const Served served;
  const std::string length = served.ask("GET /livez HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
  CHECK(status_of(length) == 400);
  CHECK(body_of(length) == "a request has no body here\n");
  const std::string chunked = served.ask(
      "GET /livez HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  CHECK(status_of(chunked) == 400);
  CHECK(status_of(served.ask(
            "GET /livez HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")) == 200);
}

TEST_CASE("admin: a header of 8 KiB is the longest", "[net][admin]") {
  const Served served;
  CHECK(status_of(served.ask(header_of_bytes(limits::header_bytes_max))) == 200);
  const std::string refused = served.ask(header_of_bytes(limits::header_bytes_max + 1));
  CHECK(status_of(refused) == 400);
  CHECK(body_of(refused) == "the request's header exceeds 8192 bytes\n");
  // Also one that never ends, and long behind the bound.
  CHECK(status_of(served.ask("GET /" + std::string(40'000, 'a'))) == 400);
}

TEST_CASE("admin: a connection serves many requests, however they are cut", "[net][admin]") {
  const Served served;
  AdminClient client{served.port};
  const std::string request = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (std::size_t cut = 1; cut < request.size(); ++cut) {
    client.send(request.substr(0, cut));
    client.send(request.substr(cut));
    REQUIRE(body_of(client.answer()) == "ok\n");
  }
  client.send(request + request + request);
  for (int i = 0; i < 3; ++i) REQUIRE(body_of(client.answer()) == "ok\n");
  client.send("GET /livez HTTP/1.0\r\n\r\n");
  CHECK(status_of(client.rest()) == 200);  // and closes, as HTTP/1.0 has it
}

TEST_CASE("admin: of sixteen connections the one that awaits a request for longest gives way",
          "[net][admin][attack][between-7]") {
  const std::string half = "GET /livez HTTP/1.1\r\n";
  const std::string whole = half + "\r\n";
  const Served served;
  std::vector<std::unique_ptr<AdminClient>> clients;
  for (std::size_t i = 0; i < limits::connections_max; ++i) {
    clients.push_back(std::make_unique<AdminClient>(served.port));
    clients.back()->send(whole);
    REQUIRE(status_of(clients.back()->answer()) == 200);  // so the server has the connection
  }

  SECTION("idle ones") {
    CHECK(status_of(served.ask("GET", "/livez")) == 200);
    CHECK(clients.front()->is_closed());
    clients.back()->send(whole);
    CHECK(status_of(clients.back()->answer()) == 200);
  }
  SECTION("those within a request") {
    for (auto& client : clients) client->send(half);
    for (int i = 0; i < 40; ++i) {
      clients.push_back(std::make_unique<AdminClient>(served.port));
      clients.back()->send(half);
      CHECK(status_of(served.ask("GET", "/livez")) == 200);
    }
  }
}

TEST_CASE("admin: idle and slow connections are closed", "[net][admin]") {
  SECTION("idle") {
    const Served served{{.idle_within = soon}};
    AdminClient client{served.port};
    CHECK(client.is_closed());
  }
  SECTION("slow within a request") {
    const Served served{{.request_within = soon}};
    AdminClient client{served.port};
    client.send("GET /livez HTTP/1.1\r\nHo");
    CHECK(client.is_closed());
  }
  SECTION("after a request") {
    const Served served{{.idle_within = soon}};
    AdminClient client{served.port};
    client.send("GET /livez HTTP/1.1\r\n\r\n");
    CHECK(body_of(client.rest()) == "ok\n");
  }
}

TEST_CASE("admin: ending it closes what is open at once", "[net][admin]") {
  Served served;
  AdminClient idle{served.port};
  AdminClient busy{served.port};
  busy.send("GET /livez HTTP/1.1\r\n");
  AdminClient done{served.port};
  done.send("GET /livez HTTP/1.1\r\n\r\n");
  REQUIRE(status_of(done.answer()) == 200);
  served.server.reset();
  CHECK(idle.is_closed());
  CHECK(busy.is_closed());
  CHECK(done.is_closed());
}

TEST_CASE("admin: a handler without memory ends its own connection only", "[net][admin]") {
  std::atomic<bool> is_short{true};
  net::AdminRoute route{.path = "/short"};
  route.handle = [&](const net::AdminRequest&, const net::AdminRespond& respond) {
    // mo: relaxed: the test sets it before it asks.
    if (is_short.load(std::memory_order_relaxed)) throw std::bad_alloc{};
    respond(net::text_response(200, "ok\n"));
  };
  const Served served{{}, std::move(route)};
  AdminClient other{served.port};
  other.send("GET /livez HTTP/1.1\r\n\r\n");
  REQUIRE(body_of(other.answer()) == "ok\n");
  for (std::size_t i = 0; i < 2 * limits::connections_max; ++i) {
    AdminClient client{served.port};
    client.send("GET /short HTTP/1.1\r\nHost: localhost\r\n\r\n");
    REQUIRE(client.is_closed());
  }
  is_short.store(false, std::memory_order_relaxed);  // mo: relaxed: as above
  CHECK(status_of(served.ask("GET", "/short")) == 200);
  other.send("GET /livez HTTP/1.1\r\n\r\n");
  CHECK(body_of(other.answer()) == "ok\n");
}

TEST_CASE("admin: a tick without memory is not the last one", "[net][admin]") {
  std::atomic<int> ticks{0};
  net::AdminSite site;
  site.tick = [&] {
    // mo: release [test.ticks]
    if (ticks.fetch_add(1, std::memory_order_release) == 0) throw std::bad_alloc{};
  };
  const auto server = AdminServer::start({}, std::move(site)).value();
  // mo: acquire [test.ticks]
  while (ticks.load(std::memory_order_acquire) < 2) std::this_thread::yield();
}

TEST_CASE("admin: refused requests are reported with their status", "[net][admin]") {
  std::vector<std::string> seen;  // of the server's thread; read when it has ended
  net::AdminSite site{
      .routes = net::common_routes([] { return std::string{}; }, []() -> Status { return Done{}; }),
      .refused = [&](const net::AdminRequest& request, unsigned status) {
        seen.push_back(request.method + request.path + std::to_string(status) +
                       request.peer_address);
      }};
  auto server = AdminServer::start({}, std::move(site)).value();
  const auto ask = [&](const std::string& bytes) {
    AdminClient client{server->endpoints().front().port};
    client.send(bytes);
    return client.rest();
  };
  const std::string rest = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  CHECK(has(ask("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n"), " 403 "));
  CHECK(has(ask("POST /a" + rest + "\r\n"), "there is /metrics, /livez, /healthz and /readyz\n"));
  CHECK(has(ask("POST /metrics" + rest + "\r\n"), " 405 "));
  CHECK(has(ask("GET /metrics" + rest + "Content-Length: 1\r\n\r\na"), " 400 "));
  CHECK(has(ask("GET /metrics" + rest + "\r\n"), " 200 "));
  CHECK(has(ask("PING\r\n\r\n"), " 400 "));  // no request
  server.reset();
  CHECK(seen == std::vector<std::string>{"GET/metrics403127.0.0.1", "POST/a404127.0.0.1",
                                         "POST/metrics405127.0.0.1", "GET/metrics400127.0.0.1"});
}

TEST_CASE("admin: `::` includes IPv4 only where that is asked for", "[net][admin]") {
  net::AdminOptions options{.addresses = {"::"}, .dual_stack = true, .remote = true};
  const auto both = AdminServer::start(options, {});
  if (!both.ok()) return;                                      // this machine has no IPv6
  AdminClient client{both.value()->endpoints().front().port};  // to 127.0.0.1
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  CHECK(has(client.rest(), " 404 "));
  options.dual_stack = false;
  const auto one = AdminServer::start(options, {}).value();
  const auto beside = AdminServer::start(
      {.addresses = {"0.0.0.0"}, .port = one->endpoints().front().port, .remote = true}, {});
  CHECK(beside.ok());
}

TEST_CASE("admin: several addresses each get a port", "[net][admin]") {
  const Served served{{.addresses = {"127.0.0.1", "127.0.0.2"}}};
  const auto& endpoints = served.server->endpoints();
  REQUIRE(endpoints.size() == 2);
  CHECK(endpoints[0].address == "127.0.0.1");
  CHECK(endpoints[1].address == "127.0.0.2");
  CHECK(endpoints[0].port != 0);
  CHECK(endpoints[1].port != 0);
  CHECK(net::AdminEndpoint{"::1", 80}.text() == "[::1]:80");
}

TEST_CASE("admin: an address that cannot be served is named", "[net][admin]") {
  const auto wrong = [](const AdminOptions& options) {
    const Status status = AdminServer::check(options);
    return status.ok() ? "nothing" : status.error().detail;
  };
  CHECK(wrong({}) == "nothing");
  CHECK(wrong({.addresses = {"::1", "127.1.2.3"}}) == "nothing");
  CHECK(wrong({.addresses = {}}) == "admin: 0 addresses; there must be from 1 to 16");
  CHECK(wrong({.addresses = std::vector<std::string>(16, "::1")}) == "nothing");
  CHECK(wrong({.addresses = std::vector<std::string>(17, "::1")}) ==
        "admin: 17 addresses; there must be from 1 to 16");
  CHECK(wrong({.addresses = {"localhost"}}) == "admin: 'localhost' is not an IP address");
  for (const char* const remote : {"0.0.0.0", "::", "10.0.0.1", "fe80::1"}) {
    CHECK(wrong({.addresses = {"127.0.0.1", remote}}) ==
          "admin: '" + std::string{remote} +
              "' can be reached from other machines, which could read the metrics without a "
              "password; that must be allowed by name");
    CHECK(wrong({.addresses = {remote}, .remote = true}) == "nothing");
  }
  using std::chrono::milliseconds;
  CHECK(wrong({.request_within = milliseconds{0}}) ==
        "admin: request_within is 0 ms; it must be from 1 ms to 1 h");
  CHECK(wrong({.idle_within = milliseconds{3'600'001}}) ==
        "admin: idle_within is 3600001 ms; it must be from 1 ms to 1 h");
}

TEST_CASE("admin: a port in use is an error that names it", "[net][admin]") {
  const Served served;
  const auto error_of = [](const AdminOptions& options) {
    return AdminServer::start(options, {}).error().detail;
  };
  CHECK(error_of({.port = served.port}) ==
        "admin: cannot listen on 127.0.0.1:" + std::to_string(served.port) +
            ": Address already in use");
  CHECK(has(error_of({.addresses = {"0.0.0.0"}}), "'0.0.0.0'"));
}

}  // namespace semel::tests
