// Which requests an admin port admits: pure.
#include <string>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/admin/admin_guard.hpp"

namespace semel::tests {
namespace {

using net::AdminGuard;
using net::AdminRequest;
using net::AdminRoute;

unsigned refused(const AdminGuard& guard, const AdminRequest& request) {
  const auto refusal = guard.refusal(request);
  return refusal ? refusal->status : 0;
}

AdminRequest to(std::string host) {
  return {.host = std::move(host)};
}

}  // namespace

TEST_CASE("admin guard: Host is an address, localhost, or one of the hosts", "[net][admin]") {
  const AdminGuard any{.hosts = {"Scrape.internal"}};
  const AdminGuard loopback{.hosts = {"Scrape.internal"}, .only_loopback = true};
  for (const char* const host : {"127.0.0.1", "127.0.0.1:9100", "[::1]", "[::1]:9100", "localhost",
                                 "LocalHost:1", "scrape.internal", "SCRAPE.internal:9100"}) {
    CHECK(refused(any, to(host)) == 0);
    CHECK(refused(loopback, to(host)) == 0);
  }
  for (const char* const host : {"10.1.2.3", "10.1.2.3:9100", "[fe80::1]", "0.0.0.0"}) {
    CHECK(refused(any, to(host)) == 0);
    CHECK(refused(loopback, to(host)) == 403);
  }
  for (const char* const host :
       {"", ":", ":9100", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "::1",
        "[::1", "[127.0.0.1]", "local", "scrape.internal.", "127.1"}) {
    CHECK(refused(any, to(host)) == 403);
    CHECK(refused(loopback, to(host)) == 403);
  }
}

TEST_CASE("admin guard: no page, and no header twice", "[net][admin]") {
  const AdminGuard guard;
  AdminRequest page = to("localhost");
  page.origin = "http://localhost";
  CHECK(refused(guard, page) == 403);
  AdminRequest twice = to("localhost");
  twice.repeated_header = "Cookie";
  CHECK(refused(guard, twice) == 403);
}

TEST_CASE("admin guard: with a token nothing else counts", "[net][admin]") {
  const AdminGuard guard{.has_token = [](std::string_view text) { return text == "Bearer t"; }};
  CHECK(refused(guard, to("localhost")) == 401);
  AdminRequest request = to("evil.example");
  request.origin = "http://evil.example";
  request.authorization = "Bearer t";
  CHECK(refused(guard, request) == 0);
  request.repeated_header = "Authorization";
  const auto refusal = guard.refusal(request);
  REQUIRE(refusal);
  CHECK(refusal->status == 401);
  REQUIRE(refusal->headers.size() == 1);
  CHECK(refusal->headers.front() ==
        std::pair<std::string, std::string>{"WWW-Authenticate", "Bearer"});
}

TEST_CASE("admin guard: access comes before path, path before method", "[net][admin]") {
  using Methods = AdminRoute::Methods;
  using Access = AdminRoute::Access;
  const std::vector<AdminRoute> routes{
      {.path = "/open", .access = Access::open},
      {.path = "/own", .has_below = true, .methods = Methods::read_and_post, .access = Access::own},
      {.path = "/change", .methods = Methods::post}};
  struct Case {
    const char* method;
    const char* path;
    unsigned admitted;  // 0: it has a route
    unsigned other;
    const char* allow;
  };
  for (const auto& [method, path, admitted, other, allow] : {
           Case{"GET", "/open", 0, 0, ""},
           Case{"HEAD", "/open", 0, 0, ""},
           Case{"POST", "/open", 405, 403, "GET, HEAD"},
           Case{"GET", "/open/", 404, 403, ""},
           Case{"GET", "/own", 0, 0, ""},
           Case{"POST", "/own/a/b", 0, 0, ""},
           Case{"PUT", "/own", 405, 403, "GET, HEAD, POST"},
           Case{"GET", "/owner", 404, 403, ""},
           Case{"POST", "/change", 0, 403, ""},
           Case{"GET", "/change", 405, 403, "POST"},
           Case{"GET", "/", 404, 403, ""},
           Case{"get", "/open", 405, 403, "GET, HEAD"},
       }) {
    CAPTURE(method, path);
    for (const bool is_admitted : {true, false}) {
      AdminRequest request{.method = method, .path = path};
      request.host = is_admitted ? "localhost" : "evil.example";
      const auto choice = choose_route(routes, {}, request);
      CHECK(request.is_admitted == is_admitted);
      CHECK((choice.refusal ? choice.refusal->status : 0) == (is_admitted ? admitted : other));
      CHECK((choice.route == nullptr) == choice.refusal.has_value());
      if (!is_admitted || admitted != 405) continue;
      CHECK(choice.refusal->headers.front() == std::pair<std::string, std::string>{"Allow", allow});
    }
  }
}

}  // namespace semel::tests
