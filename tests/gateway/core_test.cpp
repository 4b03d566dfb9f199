// What the gateway decides, without a socket.
#include <algorithm>
#include <string>
#include <vector>

#include "gateway/core/asked.hpp"
#include "gateway/core/guard.hpp"
#include "gateway/core/reply.hpp"
#include "gateway/core/route_policy.hpp"
#include "semel/engine.hpp"
#include "tests/proofs/random.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace gateway;

Result<std::string> key(std::string_view value) {
  const std::vector<std::string_view> values{value};
  return key_of(values);
}

struct Headers {
  std::vector<std::pair<std::string, std::string>> all{};
  [[nodiscard]] std::vector<std::string_view> operator()(std::string_view name) const {
    std::vector<std::string_view> found;
    for (const auto& [each, value] : all) {
      if (each == name) found.push_back(value);
    }
    return found;
  }
};

RoutePolicy route() {
  return {.name = "orders", .path = "/orders"};
}

}  // namespace

TEST_CASE("gateway: keys are strings of structured fields, or bare words", "[gateway]") {
  CHECK(*key("k") == "k");
  CHECK(*key("\"k\"") == "k");
  CHECK(*key(R"("a\"b\\c")") == "a\"b\\c");
  CHECK(*key("a b") == "a b");
  CHECK(*key(std::string(255, 'k')) == std::string(255, 'k'));
  for (const std::string& wrong :
       {std::string{}, std::string{"\""}, std::string{"\"\""}, std::string{"\"a"},
        std::string{R"("a"b")"}, std::string{R"("a\b")"}, std::string{R"("a\")"},
        std::string(256, 'k'), std::string{"a\tb"}, std::string{"\x7f"}, std::string{"\xc3\xb6"},
        std::string{"a\0b", 3}}) {
    INFO(wrong);
    CHECK(key(wrong).error().code == ErrorCode::bad_option);
  }
  CHECK_FALSE(key_of({}).ok());
  const std::vector<std::string_view> two{"a", "a"};
  CHECK(key_of(two).error().detail == "Idempotency-Key: it was sent 2 times");
}

TEST_CASE("gateway: a key is of one client", "[gateway]") {
  RoutePolicy policy = route();
  Headers headers;
  const auto of_claim = [&] { return claim_key(policy, {.header = headers}, "k"); };
  const std::string nobody = of_claim();
  headers.all = {{"Authorization", "Bearer a"}};
  const std::string one = of_claim();
  headers.all = {{"Authorization", "Bearer b"}, {"Cookie", "x"}};
  const std::string other = of_claim();
  headers.all = {{"X-Api-Key", "Bearer b"}};
  const std::string by_key = of_claim();
  CHECK(nobody != one);
  CHECK(one != other);
  CHECK(by_key != other);
  headers.all = {{"Authorization", "Bearer b"}, {"Cookie", "y"}, {"X-Api-Key", "z"}};
  CHECK(of_claim() == other);
  CHECK(one.find("Bearer") == std::string::npos);
  CHECK(one.ends_with(":k"));
  policy.scope = RoutePolicy::Scope::none;
  CHECK(of_claim() == nobody);
}

TEST_CASE("gateway: the fingerprint has what the route says, each part apart", "[gateway]") {
  RoutePolicy policy = route();
  Headers headers{{{"X-Kind", "a"}}};
  Asked asked{.method = "POST", .path = "/orders", .query = "q", .body = "b", .header = headers};
  const Fingerprint first = fingerprint_of(policy, asked);
  CHECK(fingerprint_of(policy, asked) == first);
  const auto changed = [&](Asked other) { return !(fingerprint_of(policy, other) == first); };
  Asked other = asked;
  other.method = "PATCH";
  CHECK(changed(other));
  other = asked;
  other.path = "/orders/";
  CHECK(changed(other));
  other = asked;
  other.query = "qb";  // what moves from one part to the next is no less a change
  other.body = "";
  CHECK(changed(other));
  other = asked;
  other.body = "c";
  CHECK(changed(other));
  headers.all = {{"X-Kind", "b"}};
  other = asked;
  other.header = headers;
  CHECK_FALSE(changed(other));
  policy.uses_headers = {"X-Kind"};
  CHECK(changed(other));
  policy.uses_query = policy.uses_body = false;
  Asked bare = other;
  bare.query = "";
  bare.body = "";
  CHECK(fingerprint_of(policy, bare) == fingerprint_of(policy, other));
}

TEST_CASE("gateway: a kept reply is read as it was written, or not at all", "[gateway]") {
  Reply reply{.status = 201, .headers = {{"A", "1"}, {"A", ""}, {"Längst", "x:\0y"}}, .body = "b"};
  const std::string bytes = encode(reply);
  const auto read = decode(bytes);
  REQUIRE(read);
  CHECK((read->status == 201 && read->headers == reply.headers && read->body == "b"));
  for (const char* wrong :
       {"", "R", "R1", "R1201", "R1201:", "R199:0:", "R11000:0:", "R1201:1:", "R1201:1:1:a",
        "R1201:1:1:a9:b", "R1201:99999999999999999999:", "R2201:0:"}) {
    INFO(wrong);
    CHECK_FALSE(decode(wrong));
  }
  const std::uint64_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  proofs::Random random{seed};
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = bytes;
    for (std::uint64_t n = random.between(1, 3); n > 0; --n) {
      changed[random.below(changed.size())] = static_cast<char>(random.below(256));
    }
    if (random.chance(1, 4)) changed.resize(random.below(changed.size()));
    if (const auto again = decode(changed))
      CHECK(encode(*decode(encode(*again))) == encode(*again));
  }
}

TEST_CASE("gateway: problem details are JSON whatever they say", "[gateway]") {
  const Reply reply = problem(409, "in-flight", "a \"b\" \\ \n", "\xff");
  CHECK(reply.body ==
        "{\"type\":\"urn:semel:gateway:in-flight\",\"title\":\"a \\\"b\\\" \\\\ \\u000a\","
        "\"status\":409,\"detail\":\"\\u00ff\"}\n");
}

TEST_CASE("gateway: routes are found by the longest path, whole parts of it", "[gateway]") {
  const auto routes = Routes::make({{.name = "all", .path = "/"},
                                    {.name = "orders", .path = "/orders"},
                                    {.name = "special", .path = "/orders/special/"}});
  REQUIRE(routes.ok());
  const auto name = [&](std::string_view path) {
    const RoutePolicy* const found = routes->find(path);
    return found == nullptr ? std::string{} : found->name;
  };
  CHECK(name("/orders") == "orders");
  CHECK(name("/orders/7") == "orders");
  CHECK(name("/orders-old") == "all");
  CHECK(name("/orders/special") == "orders");
  CHECK(name("/orders/special/1") == "special");
  CHECK(name("/") == "all");
  CHECK(Routes::make({route()})->find("/other") == nullptr);
  CHECK(Routes::make(std::vector<RoutePolicy>(1'025, route())).error().detail ==
        "1025 routes, at most 1024");
}

TEST_CASE("gateway: what becomes of a claim", "[gateway]") {
  ManualClock clock;
  auto engine = *Engine::open({.clock = &clock});
  RoutePolicy policy = route();
  const auto begin = [&](Claims& claims, const std::string& of) {
    return decision_of(policy, claims.claim({.key = of}), false);
  };
  const auto ends = [&](const char* of, Upstream upstream, unsigned status, bool has_reply) {
    Claims claims = *engine->claims(policy.name, policy.claim_policy());
    const Decision first = begin(claims, of);
    REQUIRE(first.what == Decision::What::run);
    const Reply reply{.status = status, .headers = {}, .body = "b"};
    CHECK(
        end_claim(claims, policy, of, first.epoch, upstream, status, has_reply ? &reply : nullptr));
    CHECK_FALSE(end_claim(claims, policy, of, first.epoch + 1, upstream, status, nullptr));
    return begin(claims, of);
  };
  using Why = Decision::Why;
  const Decision kept = ends("a", Upstream::replied, 201, true);
  CHECK(kept.why == Why::replayed);
  CHECK((kept.reply.status == 201 && kept.reply.body == "b"));
  CHECK(ends("b", Upstream::replied, 201, false).why == Why::not_kept);
  CHECK(ends("c", Upstream::not_sent, 0, false).why == Why::granted);
  CHECK(ends("d", Upstream::unknown, 0, false).why == Why::in_doubt);
  CHECK(ends("e", Upstream::replied, 500, true).why == Why::replayed);
  policy.name = "other";
  policy.on_unknown = RoutePolicy::Unknown::release;
  policy.on_server_error = RoutePolicy::ServerError::in_doubt;
  CHECK(ends("d", Upstream::unknown, 0, false).why == Why::granted);
  CHECK(ends("e", Upstream::replied, 500, true).why == Why::in_doubt);
  CHECK(ends("f", Upstream::replied, 499, true).why == Why::replayed);
  policy.name = "third";
  policy.on_server_error = RoutePolicy::ServerError::release;
  CHECK(ends("e", Upstream::replied, 500, true).why == Why::granted);
}

TEST_CASE("gateway: an owner that went silent", "[gateway]") {
  ManualClock clock;
  auto engine = *Engine::open({.clock = &clock});
  for (const bool is_free : {false, true}) {
    RoutePolicy policy = route();
    policy.name = is_free ? "free" : "strict";
    policy.on_unknown = is_free ? RoutePolicy::Unknown::release : RoutePolicy::Unknown::in_doubt;
    Claims claims = *engine->claims(policy.name, policy.claim_policy());
    REQUIRE(claims.claim({.key = "k"}).answer == ClaimAnswer::granted);
    // As long as an upstream may take nobody else gets it.
    clock.advance(policy.timeout);
    CHECK(decision_of(policy, claims.claim({.key = "k"}), false).why == Decision::Why::in_flight);
    clock.advance(Millis{30'000});
    const Decision late = decision_of(policy, claims.claim({.key = "k"}), false);
    CHECK(late.why == (is_free ? Decision::Why::granted : Decision::Why::in_doubt));
  }
}

}  // namespace semel::tests
