// What is guarded in one reading of a request does not pass unguarded in another.
#include "gateway/rules/route_choice.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace {

using semel::gateway::Field;
using semel::gateway::Guard;
using semel::gateway::Outcome;
using semel::gateway::PathPattern;
using semel::gateway::Route;

Route route(const char* name, const char* path, Guard guard, std::vector<std::string> methods) {
  Route made;
  made.name = name;
  made.path = PathPattern::parse(path).value();
  made.guard = guard;
  made.methods = std::move(methods);
  return made;
}

/// The name of the route, or of the refusal's outcome.
std::string chosen(const std::vector<Route>& routes, const char* method, const char* path,
                   std::vector<Field> fields = {}, const char* query = "") {
  Route otherwise;
  otherwise.name = "default";
  const auto choice = choose_route(routes, otherwise, {method, path, query, fields, {}});
  if (choice.refusal) return std::string{name_of(choice.refusal->outcome)};
  return choice.route->name;
}

const std::vector<Route> shop{
    route("pay", "/payments", Guard::idempotency_key, {"POST"}),
    route("item", "/items/*", Guard::debounce, {"PUT", "GET"}),
    route("all", "/open/**", Guard::pass, {}),
};

}  // namespace

TEST_CASE("choice: the first route that fits, or the default", "[gateway][choice]") {
  CHECK(chosen(shop, "POST", "/payments") == "pay");
  CHECK(chosen(shop, "GET", "/payments") == "default");
  CHECK(chosen(shop, "GET", "/open/x/") == "all");
  CHECK(chosen(shop, "PUT", "/items/7") == "item");
  CHECK(chosen(shop, "HEAD", "/items/7") == "item");  // upstreams run it as GET
  CHECK(chosen(shop, "POST", "/a/../payments") == "bad_request");
}

TEST_CASE("choice: another spelling of a guarded path does not pass",
          "[gateway][choice][between-2]"
          "[between-6]") {
  for (const char* const path : {"/%70ayments", "//payments", "/payments;v=1", "/;a/payments"}) {
    INFO(path);
    CHECK(chosen(shop, "POST", path) == "pay");
  }
  for (const char* const path :
       {"/payments/", "/Payments", "/PAYMENTS/", "//payments//", "/payments/;a", "/%50ayments"}) {
    INFO(path);
    CHECK(chosen(shop, "POST", path) == "bad_request");
    CHECK(chosen(shop, "GET", path) == "default");  // no reading is guarded
  }
  // A server without parameters sees the item ";x", one with them sees "/items/".
  CHECK(chosen(shop, "PUT", "/items/;x") == "bad_request");
  CHECK(chosen(shop, "PUT", "/items/7/") == "bad_request");
  CHECK(chosen(shop, "PUT", "/items/7/8") == "default");
}

TEST_CASE("choice: a route of its own decides about another spelling", "[gateway][choice]") {
  std::vector<Route> routes = shop;
  routes.push_back(route("slash", "/payments/", Guard::idempotency_key, {"POST"}));
  routes.push_back(route("capital", "/Payments", Guard::refuse, {}));
  CHECK(chosen(routes, "POST", "/payments/") == "slash");
  CHECK(chosen(routes, "POST", "/Payments") == "capital");
}

TEST_CASE("choice: a second method is refused where any method is guarded",
          "[gateway][choice][between-2]") {
  for (const char* const name : {"X-HTTP-Method-Override", "x-http-method", "X-METHOD-OVERRIDE"}) {
    const std::vector<Field> fields{{name, "POST"}};
    for (const char* const method : {"GET", "POST", "PUT"}) {
      CHECK(chosen(shop, method, "/payments", fields) == "method_override");
      CHECK(chosen(shop, method, "/Payments/", fields) == "method_override");
    }
    CHECK(chosen(shop, "GET", "/open/x", fields) == "all");
    std::vector<Route> ignoring = shop;
    for (Route& each : ignoring) each.ignores_override = true;
    CHECK(chosen(ignoring, "POST", "/payments", fields) == "pay");
    CHECK(chosen(ignoring, "GET", "/payments", fields) == "default");
  }
}

TEST_CASE("choice: a second method in the query is one as well", "[gateway][choice][between-2]") {
  for (const char* const query :
       {"_method=POST", "a=b&_method=POST", "a;_method=POST", "%5Fmethod=POST", "_METHOD=POST",
        "_method", ".method=POST", "+_method[]=POST", "%20_method%5B=POST", "&&_method=POST"}) {
    INFO(query);
    CHECK(chosen(shop, "GET", "/payments", {}, query) == "method_override");
    CHECK(chosen(shop, "GET", "/open/x", {}, query) == "all");
  }
  for (const char* const query :
       {"", "method=POST", "a=_method=POST", "x_method=POST", "_method2=POST", "%_method", "%5"}) {
    INFO(query);
    CHECK(chosen(shop, "GET", "/payments", {}, query) == "default");
  }
}
