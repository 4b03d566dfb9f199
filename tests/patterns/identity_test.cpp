// Identity of a call, by the table that every door plays: tests/identity/cases.json.
#include "semel/patterns/identity.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/hex.hpp"
#include "semel/limits.hpp"
#include "semel/patterns/signed_request.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

namespace json = boost::json;

json::object table() {
  std::ifstream file{SEMEL_IDENTITY_CASES};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  REQUIRE_FALSE(text.empty());
  return json::parse(text).as_object();
}

Bytes text_of(const json::value& value) {
  const json::string& text = value.as_string();
  return {text.data(), text.size()};
}

Bytes member(const json::object& object, const char* name) {
  const json::value* const found = object.if_contains(name);
  return found == nullptr ? Bytes{} : text_of(*found);
}

/// What is made of a case. `scope` of {} has nothing to say in C++: it needs both.
Result<std::string> text_of_case(const json::object& each) {
  if (member(each, "kind") == "json") return identity_json(member(each, "json"));
  REQUIRE(member(each, "kind") == "identity");
  CallIdentity call{.operation = member(each, "operation"), .arguments = member(each, "arguments")};
  if (const json::object* const scope = each.at("scope").if_object()) {
    call.scope = {.tenant = member(*scope, "tenant"), .user = member(*scope, "user")};
    call.scope.needs_tenant = call.scope.user.empty();
  }
  return identity_text(call);
}

void check_case(const json::object& each) {
  const Result<std::string> made = text_of_case(each);
  if (each.contains("error")) {
    REQUIRE_FALSE(made.ok());
    CHECK(name_of(made.error().code) == member(each, "error"));
    return;
  }
  REQUIRE(made.ok());
  CHECK(*made == member(each, "canonical"));
  const bool is_call = member(each, "kind") == "identity";
  const Fingerprint sha256 = fingerprint_sha256(
      *made, is_call ? FingerprintAlgorithm::sha256_identity : FingerprintAlgorithm::sha256_json);
  CHECK(base::hex_of(sha256.digest) == member(each, "sha256"));
  CHECK(sha256.algorithm == (is_call ? 9 : 7));
  if (is_call) {
    CHECK(identity_key(*made) == member(each, "key"));
  } else {
    const Fingerprint xxh3 = fingerprint_json(member(each, "json")).value();
    CHECK(xxh3.algorithm == 6);
    CHECK(xxh3.digest == fingerprint_of(Bytes{*made}).digest);
    CHECK(*identity_json(*made) == *made);
  }
}

TEST_CASE("identity: the table of cases", "[patterns][identity][once-again-5][once-again-6]") {
  const json::object all = table();
  REQUIRE(all.at("cases").as_array().size() > 90);
  for (const json::value& each : all.at("cases").as_array()) {
    INFO(member(each.as_object(), "name"));
    check_case(each.as_object());
  }
}

TEST_CASE("identity: what doors make of their values is canonical", "[patterns][identity]") {
  const json::object all = table();
  for (const json::value& each : all.at("values").as_array()) {
    const json::object& value = each.as_object();
    if (!value.contains("json")) continue;
    INFO(member(value, "name"));
    CHECK(identity_json(member(value, "json")).value() == member(value, "json"));
  }
}

TEST_CASE("identity: keys out of formats, by the table", "[patterns][identity][once-again-5]") {
  const json::object all = table();
  for (const json::value& each : all.at("formats").as_array()) {
    const json::object& row = each.as_object();
    INFO(member(row, "format"));
    std::vector<KeyField> fields;
    for (const auto& [name, value] : row.at("fields").as_object()) {
      fields.push_back({{name.data(), name.size()}, value.is_null() ? Bytes{} : text_of(value)});
    }
    const Result<std::string> key = format_key(member(row, "format"), fields);
    if (row.contains("error")) {
      REQUIRE_FALSE(key.ok());
      CHECK(name_of(key.error().code) == member(row, "error"));
    } else {
      CHECK(key.value() == member(row, "key"));
    }
  }
}

TEST_CASE("identity: operation, scope and arguments do not run into each other",
          "[patterns][identity][once-again-5]") {
  const auto text = [](Bytes operation, Bytes tenant, Bytes arguments) {
    return identity_text(
        {.operation = operation, .scope = {.tenant = tenant}, .arguments = arguments});
  };
  CHECK(text("a", "", "[1]").value() != text("a", "", "1").value());
  CHECK(text("a\",null,1", "", "1").value() != text("a", "", "1").value());
  CHECK(text("a", "", "1],[2").error().code == ErrorCode::syntax);
  CHECK(text("a", "\xff", "1").error().code == ErrorCode::syntax);
  CHECK(text("\xff", "", "1").error().code == ErrorCode::syntax);
  CHECK(text("a", "", "").error().code == ErrorCode::syntax);
  CHECK(text(std::string(limits::operation_bytes_max + 1, 'x'), "", "1").error().code ==
        ErrorCode::key_too_long);
  CHECK(identity_text({.operation = "pay"}).value() == R"(["pay",null,{}])");  // as every door
  const CallIdentity nobody{.operation = "a", .scope = {.needs_user = true}};
  CHECK(identity_text(nobody).error().code == ErrorCode::key_empty);
}

TEST_CASE("identity: a number has at most json_places_max places on either side",
          "[patterns][identity][limits]") {
  const std::string zeros(limits::json_places_max - 1, '0');
  CHECK(identity_json("1" + zeros).value() == "1e+" + std::to_string(limits::json_places_max - 1));
  CHECK(identity_json("1" + zeros + "0").error().code == ErrorCode::syntax);
  CHECK(identity_json("0." + zeros + "1").value() ==
        "1e-" + std::to_string(limits::json_places_max));
  CHECK(identity_json("0.0" + zeros + "1").error().code == ErrorCode::syntax);
  CHECK(identity_json("1e2147483648").error().code == ErrorCode::syntax);
  CHECK(identity_json("[0e2147483648,-0.0E-99999999999,1]").value() == "[0,0,1]");
  CHECK(identity_json("[\"0e2147483648\",0e99999999999]").value() == "[\"0e2147483648\",0]");
  CHECK(identity_json("[00e99999999999]").error().code == ErrorCode::syntax);
  CHECK(identity_json("[0.e99999999999]").error().code == ErrorCode::syntax);
  CHECK(canonical_json("0e999999999999").value() == "0");
}

TEST_CASE("identity: a part of a set that counts is in one order", "[patterns][identity]") {
  const std::vector<Bytes> except{"/s/$set/0"};
  CHECK(identity_json(R"({"s":{"$set":[9,3,2]}})", {.except = except}).value() ==
        R"({"s":{"$set":[2,3]}})");
  const std::vector<Bytes> values{"/m/$map/0/1", "/m/$map/1/1"};
  CHECK(identity_json(R"({"m":{"$map":[[2,"x"],[1,"y"]]}})", {.except = values}).value() ==
        R"({"m":{"$map":[[1],[2]]}})");
}

}  // namespace
}  // namespace semel::tests
