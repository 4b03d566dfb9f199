// What docs/keys.md shows: its blocks of C++ stand here, word for word, and what they say holds.
// tests/tools/readme_test.py compares the two.
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/claims.hpp"
#include "semel/clock.hpp"
#include "semel/patterns/json_key.hpp"
#include "semel/patterns/keys.hpp"
#include "semel/patterns/replay_guard.hpp"
#include "semel/patterns/signed_tokens.hpp"

using namespace semel;

TEST_CASE("keys_page: keys", "[patterns][docs]") {
  const std::string one = semel::composite_key({"a|b", "c"});  // a\|b|c
  const std::string two = semel::composite_key({"a", "b|c"});  // a|b\|c
  const auto fields = semel::split_composite_key(one);         // "a|b" and "c" again
  const auto order = semel::format_key("order:{shop}:{id}", {{"shop", "7:1"}, {"id", "42"}});
  // order:7%3A1:42
  CHECK(one != two);
  CHECK(fields->at(0) == "a|b");
  CHECK(*order == "order:7%3A1:42");
}

TEST_CASE("keys_page: scope", "[patterns][docs]") {
  const semel::Scope scope{.tenant = "acme", .user = "u7", .needs_tenant = true};
  const auto key = semel::scoped_key(scope, "order-42");  // acme|u7|order-42
  const auto no_tenant = semel::scoped_key({.needs_tenant = true}, "order-42");
  // an error: key is empty: the scope needs a tenant
  CHECK(*key == "acme|u7|order-42");
  CHECK(no_tenant.error().message() == "key is empty: the scope needs a tenant");
}

TEST_CASE("keys_page: fingerprints", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  auto orders = engine->claims("orders", semel::Policy{}).value();
  const semel::Scope scope{.tenant = "acme"};
  const std::string body = R"({"sum": 10, "to": "x", "sent": "12:00:01"})";

  const std::vector<semel::Bytes> volatile_members{"/sent"};
  const auto fingerprint = semel::fingerprint_json(scope, body, {.except = volatile_members});
  const auto key = semel::scoped_key(scope, "order-42");
  const auto claim = orders.claim({.key = *key, .fingerprint = *fingerprint});
  // the same order with another sum is a mismatch, sent again a second later it is not
  const auto again = semel::fingerprint_json(scope, R"({"to":"x","sum":1e1,"sent":"12:00:02"})",
                                             {.except = volatile_members});
  const auto other = semel::fingerprint_json(scope, R"({"to":"x","sum":11})");
  CHECK(claim.answer == ClaimAnswer::granted);
  CHECK(orders.claim({.key = *key, .fingerprint = *again}).answer == ClaimAnswer::in_flight);
  CHECK(orders.claim({.key = *key, .fingerprint = *other}).answer == ClaimAnswer::mismatch);
}

TEST_CASE("keys_page: a member of JSON", "[patterns][docs]") {
  const semel::Bytes body = R"({"order": {"id": "A-7", "lines": [1.0, 2]}})";
  const auto id = semel::json_at(body, "/order/id");  // A-7
  const auto text = semel::canonical_json(body);      // {"order":{"id":"A-7","lines":[1,2]}}
  CHECK(*id == "A-7");
  CHECK(*text == R"({"order":{"id":"A-7","lines":[1,2]}})");
}

TEST_CASE("keys_page: time in ids", "[patterns][docs]") {
  const semel::ManualClock clock{semel::Millis{1'000'000}, 1'645'557'742'000};
  const auto engine = semel::Engine::open({.clock = &clock}).value();
  const semel::Bytes id = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";

  semel::Policy policy;
  policy.window = semel::Millis{86'400'000};
  auto messages = engine->claims("messages", policy).value();
  const auto claim = messages.claim({.key = id, .first_sent_unix_ms = semel::first_sent_of(id)});
  CHECK(claim.answer == ClaimAnswer::granted);
}

TEST_CASE("keys_page: signed requests", "[patterns][docs]") {
  const semel::ManualClock clock;
  const auto engine = semel::Engine::open({.clock = &clock}).value();
  const std::int64_t now = clock.unix_ms();

  // the caller
  const std::vector<semel::KeyField> parameters{{"order", "42"}, {"sum", "10"}};
  semel::SignedRequest request{
      .caller = "shop-7", .parameters = parameters, .timestamp_unix_ms = now, .nonce = "9f2c1e"};
  const std::string signature = semel::signature_of(request, "the shop's secret");

  // the server
  semel::ReplayGuardOptions options;
  options.secrets_of = [](semel::Bytes caller) {
    std::vector<std::string> secrets;
    if (caller == "shop-7") secrets = {"the shop's secret", "the one it had before"};
    return secrets;
  };
  auto guard = semel::ReplayGuard::open(*engine, options).value();
  request.signature = signature;
  const auto first = guard.check(request);   // accepted
  const auto second = guard.check(request);  // replayed
  CHECK(first.answer == ReplayAnswer::accepted);
  CHECK(second.answer == ReplayAnswer::replayed);
}

TEST_CASE("keys_page: signed tokens", "[patterns][docs]") {
  const auto engine = semel::Engine::open().value();
  semel::Policy policy;
  policy.unique_ttl = semel::Millis{600'000};
  auto tokens = semel::SignedTokens::open(engine->claims("reset-password", policy).value(),
                                          {.ttl = semel::Millis{300'000},
                                           .secrets = {"32 bytes out of /dev/urandom...."}})
                    .value();
  const auto token = tokens.issue("user-7");  // into the mail; nothing is stored

  const auto mine = tokens.reserve(*token, "user-7");
  if (mine.answer == semel::TokenAnswer::reserved) {
    // .. change the password; if that fails, give_back(*token, mine.epoch) ..
    static_cast<void>(tokens.spend(*token, mine.epoch));
  }
  const auto again = tokens.reserve(*token, "user-7");  // spent
  CHECK(mine.answer == TokenAnswer::reserved);
  CHECK(again.answer == TokenAnswer::spent);
}
