// Keys, scopes, fingerprints and signatures: what differs must never look alike.
#include "gateway/rules/work_key.hpp"

#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace {

using semel::gateway::Field;
using semel::gateway::FingerprintParts;
using semel::gateway::parse_idempotency_key;
using semel::gateway::Request;
using semel::gateway::ScopeParts;

std::string scope(const ScopeParts& parts, const std::vector<Field>& fields,
                  std::string_view key_id = {}) {
  const auto made = scope_of(parts, Request{.fields = fields}, key_id);
  return made.ok() ? *made : "error: " + made.error().detail;
}

semel::Fingerprint print(const FingerprintParts& parts, const Request& request) {
  return fingerprint_of_request(parts, request).value();
}

}  // namespace

TEST_CASE("key: with quotes and without it is the same", "[gateway][key]") {
  CHECK(*parse_idempotency_key("\"8e03978e-40d5\"") == "8e03978e-40d5");
  CHECK(*parse_idempotency_key(" 8e03978e-40d5 ") == "8e03978e-40d5");
  CHECK(*parse_idempotency_key(R"("a \"b\" \\")") == R"(a "b" \)");
  for (const char* const text : {"", "\"\"", "\"a", "a\"", "\"a\";x=1", "a b", "a,b", "\"a\\b\"",
                                 "\"a\"b", "\x80", "\"\t\"", "\""}) {
    INFO(text);
    CHECK_FALSE(parse_idempotency_key(text).ok());
  }
}

TEST_CASE("key: its limit holds at n and at n + 1", "[gateway][key][limits]") {
  const std::string longest(semel::gateway::limits::idempotency_key_max, 'a');
  CHECK(parse_idempotency_key(longest).ok());
  CHECK_FALSE(parse_idempotency_key(longest + "a").ok());
}

TEST_CASE("scope: two clients never have one, and no value passes for another part",
          "[gateway][scope]") {
  ScopeParts both;
  both.headers = {"X-Tenant"};
  std::set<std::string> seen;
  const std::vector<std::vector<Field>> requests{
      {{"Authorization", "a"}, {"X-Tenant", "b"}},
      {{"Authorization", "b"}, {"X-Tenant", "a"}},
      {{"Authorization", "ab"}, {"X-Tenant", "c"}},
      {{"Authorization", "a"}, {"X-Tenant", "bc"}},
      {{"Authorization", "a8:x-tenant1:b"}, {"X-Tenant", "b"}}};
  for (const auto& fields : requests) seen.insert(scope(both, fields));
  CHECK(seen.size() == requests.size());
  CHECK(scope(both, {{"X-Tenant", "b"}, {"authorization", "a"}}) == scope(both, requests[0]));
  CHECK(scope(both, requests[0]).find('a') != scope(both, requests[0]).find("Authorization"));
  CHECK(scope(both, {{"Authorization", "a"}}).starts_with("error: "));
  CHECK(scope(both, {{"Authorization", ""}, {"X-Tenant", "b"}}).starts_with("error: "));
  CHECK(scope({}, {{"Authorization", "a"}, {"Authorization", "a"}}).starts_with("error: "));
  CHECK(scope({.authorization = false, .key_id = true}, {}).starts_with("error: "));
  CHECK(scope({.authorization = false, .key_id = true}, {}, "k1") !=
        scope({.authorization = false, .key_id = true}, {}, "k2"));
  CHECK(scope({.authorization = false, .shared = true}, {}).size() == 32);
}

TEST_CASE("fingerprint: each part counts, in its own place", "[gateway][fingerprint]") {
  const std::vector<Field> fields{{"X-A", "1"}};
  const Request request{"POST", "/a", "b=1", fields, "body"};
  FingerprintParts parts;
  parts.headers = {"X-A"};
  const auto first = print(parts, request);
  CHECK(print(parts, request) == first);
  const std::vector<Field> other{{"X-A", "2"}};
  CHECK_FALSE(print(parts, {"PUT", "/a", "b=1", fields, "body"}) == first);
  CHECK_FALSE(print(parts, {"POST", "/b", "b=1", fields, "body"}) == first);
  CHECK_FALSE(print(parts, {"POST", "/a", "b=2", fields, "body"}) == first);
  CHECK_FALSE(print(parts, {"POST", "/a", "b=1", other, "body"}) == first);
  CHECK_FALSE(print(parts, {"POST", "/a", "b=1", {}, "body"}) == first);
  CHECK_FALSE(print(parts, {"POST", "/a", "b=1", fields, "bodx"}) == first);
  CHECK_FALSE(print(parts, {"POST", "/ab", "=1", fields, "body"}) == first);
  parts.query = false;
  CHECK(print(parts, request) == print(parts, {"POST", "/a", "b=2", fields, "body"}));
}

TEST_CASE("fingerprint: JSON that says the same is the same", "[gateway][fingerprint]") {
  FingerprintParts parts;
  parts.json = true;
  const auto of = [&](std::string_view body) {
    return fingerprint_of_request(parts, {"POST", "/a", "", {}, body});
  };
  CHECK(*of(R"({"a":1,"b":2})") == *of(R"({ "b": 2.0, "a": 1e0 })"));
  CHECK_FALSE(*of(R"({"a":1})") == *of(R"({"a":2})"));
  CHECK_FALSE(of("{").ok());
  CHECK(of("").ok());
}

TEST_CASE("fingerprint: numbers of JSON are exact, and a body is one value",
          "[gateway][fingerprint][once-again-5]") {
  FingerprintParts parts;
  parts.json = true;
  const auto of = [&](std::string_view body) {
    return fingerprint_of_request(parts, {"POST", "/a", "", {}, body});
  };
  CHECK(of("1")->algorithm == 9);
  CHECK_FALSE(*of(R"({"to":9007199254740993})") == *of(R"({"to":9007199254740992})"));
  CHECK_FALSE(*of("123456789012345.67") == *of("123456789012345.68"));
  CHECK_FALSE(of(R"(1,"x":2)").ok());
  CHECK_FALSE(of("1}").ok());
  parts.headers = {"X-Name"};
  const auto named = [&](std::string_view name) {
    const std::vector<Field> fields{{"X-Name", name}};
    return fingerprint_of_request(parts, {"POST", "/a", "", fields, "1"});
  };
  CHECK(named("\xff").ok());  // a header's bytes need not be UTF-8
  CHECK_FALSE(*named("\xff") == *named("\xfe"));
  CHECK_FALSE(*named("\xff") == *named("/w=="));
}

TEST_CASE("signature: its headers are there once and in their form", "[gateway][signature]") {
  std::vector<Field> fields{{"Semel-Key-Id", "k"},
                            {"Semel-Timestamp", "1700000000"},
                            {"Semel-Nonce", "n"},
                            {"Semel-Signature", "ab"}};
  const auto read = [&] { return semel::gateway::signature_headers(fields); };
  CHECK(read()->timestamp_unix_ms == 1'700'000'000'000);
  fields[1].value = "1700000000123";
  CHECK(read()->timestamp_unix_ms == 1'700'000'000'123);
  for (const char* const time :
       {"", "-170000000", "17000000000", "1700000000x", "99999999999999"}) {
    fields[1].value = time;
    CHECK_FALSE(read().ok());
  }
  fields[1].value = "1700000000";
  fields.push_back({"semel-nonce", "m"});
  CHECK_FALSE(read().ok());
  fields.pop_back();
  fields.erase(fields.begin());
  CHECK_FALSE(read().ok());
}
