// Routes with a body, and paths below them: which requests reach them, and responses that come
// later.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/admin/admin_server.hpp"
#include "tests/net/admin/admin_fixture.hpp"

namespace semel::tests {
namespace {

using net::AdminRequest;
using net::AdminRespond;

constexpr std::size_t body_bytes_max = 384 * 1024;

/// Answers each request with what it was, or keeps it.
struct Pages {
  explicit Pages(net::AdminOptions options = {}) {
    net::AdminRoute route{.path = "/console",
                          .has_below = true,
                          .methods = net::AdminRoute::Methods::read_and_post,
                          .access = net::AdminRoute::Access::own,
                          .body_bytes_max = body_bytes_max};
    route.handle = [this](AdminRequest request, AdminRespond respond) {
      if (request.path == "/console/later") {
        kept.push_back(std::move(respond));
        // mo: release [test.kept]: the test reads `kept` behind it
        kept_count.fetch_add(1, std::memory_order_release);
        return;
      }
      std::string body = (request.is_post() ? "post " : "get ") + request.path + " ?" +
                         request.query + " " + request.host + " " + request.body + " " +
                         std::string{request.repeated_header} + (request.peer_is_local ? "!" : "");
      respond({.status = 200,
               .content_type = "text/plain",
               .body = std::move(body),
               .headers = {{"X-Extra", "1"}}});
    };
    served = std::make_unique<Served>(options, std::move(route));
  }
  [[nodiscard]] std::string ask(const std::string& bytes) const { return served->ask(bytes); }
  void await_kept(std::size_t count) const {
    // mo: acquire [test.kept]
    while (kept_count.load(std::memory_order_acquire) < count) std::this_thread::yield();
  }

  std::vector<AdminRespond> kept;
  std::atomic<std::size_t> kept_count{0};
  std::unique_ptr<Served> served;
};

std::string post(const std::string& path, const std::string& body, const std::string& more = {}) {
  return "POST " + path + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + more +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("admin pages: paths at and below /console, with query, body and headers",
          "[net][admin][pages]") {
  const Pages pages;
  const std::string got =
      pages.ask("GET /console/a?b=c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  CHECK(status_of(got) == 200);
  CHECK(has(got, "X-Extra: 1\r\n"));
  CHECK(body_of(got) == "get /console/a ?b=c h  !");
  CHECK(body_of(pages.ask(post("/console/a", "{}"))) == "post /console/a ? h {} !");
  CHECK(body_of(pages.ask(post("/console", "{}"))) == "post /console ? h {} !");
  CHECK(body_of(pages.ask(post("/console/a", "", "Host: evil\r\n"))) ==
        "post /console/a ? h  Host!");
  CHECK(body_of(pages.ask("POST /console/a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                          "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")) ==
        "post /console/a ? h hi !");
}

TEST_CASE("admin pages: other paths and methods are as without them", "[net][admin][pages]") {
  const Pages pages;
  CHECK(status_of(pages.served->ask("GET", "/consoles")) == 404);
  CHECK(status_of(pages.served->ask("GET", "/livez")) == 200);
  const std::string put = pages.served->ask("PUT", "/console/");
  CHECK(status_of(put) == 405);
  CHECK(has(put, "Allow: GET, HEAD, POST\r\n"));
  CHECK(status_of(pages.ask(post("/metrics", "x"))) == 403);
  CHECK(status_of(pages.ask("GET /console/ HTTP/1.1\r\nContent-Length: 1\r\n\r\nx")) == 400);
  const Served without;
  CHECK(status_of(without.ask("GET", "/console/")) == 404);
  CHECK(status_of(without.ask(post("/console/", "x"))) == 403);
}

TEST_CASE("admin pages: a body of 384 KiB is the longest", "[net][admin][pages]") {
  const Pages pages;
  const std::size_t most = body_bytes_max;
  CHECK(status_of(pages.ask(post("/console/a", std::string(most, 'a')))) == 200);
  AdminClient client{pages.served->port};
  client.send_if_open(post("/console/a", std::string(most + 1, 'a')));
  const std::string refused = client.rest();
  CHECK(status_of(refused) == 400);
  CHECK(body_of(refused) == "the request's body exceeds 393216 bytes\n");
  // Not declared, but in pieces.
  std::string chunks = "POST /console/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 7; ++i) chunks += "10000\r\n" + std::string(65'536, 'a') + "\r\n";
  AdminClient pieces{pages.served->port};
  pieces.send_if_open(chunks);
  CHECK(status_of(pieces.rest()) == 400);
}

TEST_CASE("admin pages: a body that does not come in time ends the connection",
          "[net][admin][pages]") {
  const Pages pages{{.request_within = std::chrono::milliseconds{50}}};
  AdminClient client{pages.served->port};
  client.send("POST /console/a HTTP/1.1\r\nContent-Length: 5\r\n\r\nab");
  CHECK(client.is_closed());
}

TEST_CASE("admin pages: a response may come later, and others are served meanwhile",
          "[net][admin][pages]") {
  Pages pages;
  AdminClient first{pages.served->port};
  first.send(post("/console/later", ""));
  pages.await_kept(1);
  CHECK(status_of(pages.served->ask("GET", "/livez")) == 200);
  pages.served->server->thread()->post([&pages] { pages.kept.front()({.status = 202}); });
  CHECK(status_of(first.rest()) == 202);

  // The client has gone, and the server too.
  {
    AdminClient gone{pages.served->port};
    gone.send(post("/console/later", ""));
    pages.await_kept(2);
  }
  const auto thread = pages.served->server->thread();
  thread->post([&pages] { pages.kept[1]({.status = 202}); });
  CHECK(status_of(pages.served->ask("GET", "/livez")) == 200);
  AdminClient open{pages.served->port};
  open.send(post("/console/later", ""));
  pages.await_kept(3);
  pages.served->server.reset();
  CHECK(open.is_closed());
  pages.kept[2]({.status = 202});
  thread->post([] { FAIL("the server has ended"); });
}

}  // namespace semel::tests
