// Which route a request takes, what a status means, and the form of a recorded reply.
#include "gateway/rules/route.hpp"

#include <string>
#include <utility>
#include <vector>

#include "gateway/rules/outcome.hpp"
#include "gateway/rules/recorded_reply.hpp"
#include "tests/support/catch.hpp"

namespace {

using semel::gateway::Meaning;
using semel::gateway::PathPattern;
using semel::gateway::RecordedReply;
using semel::gateway::Route;

bool fits(const char* pattern, const char* path) {
  return PathPattern::parse(pattern).value().fits(path);
}

}  // namespace

TEST_CASE("route: a star is one segment, two are the rest", "[gateway][route]") {
  CHECK(fits("/pay", "/pay"));
  CHECK_FALSE(fits("/pay", "/pay/"));
  CHECK_FALSE(fits("/pay", "/payments"));
  CHECK(fits("/pay*", "/payments"));
  CHECK(fits("/orders/*/lines", "/orders/7/lines"));
  CHECK_FALSE(fits("/orders/*/lines", "/orders//lines"));
  CHECK_FALSE(fits("/orders/*/lines", "/orders/7/8/lines"));
  CHECK(fits("/orders/**", "/orders"));
  CHECK(fits("/orders/**", "/orders/"));
  CHECK(fits("/orders/**", "/orders/7/lines/8"));
  CHECK_FALSE(fits("/orders/**", "/ordersx"));
  CHECK(fits("/**", "/"));
  CHECK(fits("/", "/"));
  CHECK_FALSE(fits("/", "/a"));
}

TEST_CASE("route: patterns that cannot fit are refused", "[gateway][route]") {
  for (const char* const text : {"", "pay", "//", "/a/**/b", "/a*b*", "/a%20", "/a?b"}) {
    INFO(text);
    CHECK_FALSE(PathPattern::parse(text).ok());
  }
  std::string longest;
  for (std::size_t i = 0; i < semel::gateway::limits::path_segments_max; ++i) longest += "/a";
  CHECK(PathPattern::parse(longest).ok());
  CHECK_FALSE(PathPattern::parse(longest + "/a").ok());
}

TEST_CASE("route: a pattern covers those that fit nothing else", "[gateway][route][between-6]") {
  const auto covers = [](const char* wide, const char* narrow) {
    return PathPattern::parse(wide)->covers(*PathPattern::parse(narrow));
  };
  for (const auto& [wide, narrow] : {std::pair{"/**", "/"},
                                     {"/**", "/**"},
                                     {"/**", "/a/*/c/**"},
                                     {"/a/**", "/a"},
                                     {"/a/**", "/a/"},
                                     {"/a/*", "/a/b"},
                                     {"/a/*", "/a/b*"},
                                     {"/a*", "/ab*c"},
                                     {"/*z", "/a*z"},
                                     {"/a", "/a"}}) {
    INFO(wide << " " << narrow);
    CHECK(covers(wide, narrow));
  }
  for (const auto& [wide, narrow] : {std::pair{"/", "/**"},
                                     {"/a", "/a/"},
                                     {"/a/**", "/**"},
                                     {"/a/*", "/a/"},
                                     {"/a/*", "/a/**"},
                                     {"/a/b*", "/a/*"},
                                     {"/ab*", "/a*"},
                                     {"/a/*", "/a/b/c"}}) {
    INFO(wide << " " << narrow);
    CHECK_FALSE(covers(wide, narrow));
  }
}

TEST_CASE("route: the first that fits is taken", "[gateway][route]") {
  std::vector<Route> routes(2);
  routes[0].methods = {"POST"};
  routes[0].path = PathPattern::parse("/pay/**").value();
  routes[1].path = PathPattern::parse("/**").value();
  CHECK(find_route(routes, "POST", "/pay/1") == &routes[0]);
  CHECK(find_route(routes, "GET", "/pay/1") == &routes[1]);
  routes.pop_back();
  CHECK(find_route(routes, "GET", "/pay/1") == nullptr);
}

TEST_CASE("route: what a status means", "[gateway][route]") {
  Route route;
  CHECK(meaning_of_status(route, 201) == Meaning::keep);
  CHECK(meaning_of_status(route, 404) == Meaning::keep);
  CHECK(meaning_of_status(route, 429) == Meaning::release);
  CHECK(meaning_of_status(route, 499) == Meaning::keep);
  CHECK(meaning_of_status(route, 500) == Meaning::in_doubt);
  route.on_5xx = Meaning::keep;
  route.release_statuses = {503};
  CHECK(meaning_of_status(route, 500) == Meaning::keep);
  CHECK(meaning_of_status(route, 503) == Meaning::release);
  CHECK(meaning_of_status(route, 429) == Meaning::keep);
}

TEST_CASE("reply: it comes back as it was recorded", "[gateway][reply]") {
  RecordedReply reply{.status = 201, .fields = {{"Content-Type", "a"}, {"X-Empty", ""}}};
  reply.body = std::string("b\0c\r\n", 5);
  const std::string bytes = encode(reply);
  CHECK(bytes.size() == encoded_bytes(reply));
  const auto back = semel::gateway::decode_reply(bytes);
  REQUIRE(back.ok());
  CHECK(back->status == 201);
  CHECK(back->fields == reply.fields);
  CHECK(back->body == reply.body);
  CHECK_FALSE(back->body_dropped);
}

TEST_CASE("reply: bytes that are no record are refused, wherever they end", "[gateway][reply]") {
  const std::string bytes =
      encode(RecordedReply{.status = 200, .fields = {{"Name", "value"}}, .body = ""});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(semel::gateway::decode_reply(bytes.substr(0, size)).ok());
  }
  std::string other = bytes;
  other[0] = 2;
  CHECK_FALSE(semel::gateway::decode_reply(other).ok());
}

TEST_CASE("problem: its text is JSON, whatever a client sent", "[gateway][problem]") {
  const std::string text =
      semel::gateway::problem_json({semel::gateway::Outcome::key_invalid, "a \"b\" \\ \n \xff"});
  CHECK(text ==
        "{\"type\":\"urn:semel:gateway:key-invalid\",\"title\":\"Idempotency-Key is not valid\","
        "\"status\":400,\"detail\":\"a \\\"b\\\" \\\\ \\u000a ?\"}\n");
}
