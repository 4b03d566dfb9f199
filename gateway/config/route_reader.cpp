#include "base/toml.hpp"  // before anything else

#include "gateway/config/route_reader.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "gateway/rules/head.hpp"
#include "gateway/rules/method.hpp"

namespace semel::gateway {
namespace {

/// The meanings allowed for a missing reply or a lost lease: there is no reply to keep.
void read_failure(TableReader& reader, std::string_view name, Meaning& to) {
  reader.choice(name, to, {{"release", Meaning::release}, {"in-doubt", Meaning::in_doubt}});
}

void read_scope(TableReader& reader, ScopeParts& scope) {
  std::vector<std::string> words;
  if (!reader.texts("scope", words, limits::chosen_headers_max)) return;
  scope = {.authorization = false};
  for (const std::string& word : words) {
    if (word == "authorization") {
      scope.authorization = true;
    } else if (word == "key-id") {
      scope.key_id = true;
    } else if (word == "shared") {
      scope.shared = true;
    } else if (word.starts_with("header:") && word.size() > 7) {
      scope.headers.push_back(word.substr(7));
    } else {
      reader.fail(reader.take("scope"),
                  "scope has '" + word + "'; it has authorization, key-id, header:NAME or shared");
    }
  }
}

void read_fingerprint(TableReader& reader, FingerprintParts& parts) {
  std::vector<std::string> words;
  if (!reader.texts("fingerprint", words, limits::chosen_headers_max)) return;
  parts = {.method = false, .path = false, .query = false, .body = false};
  for (const std::string& word : words) {
    if (word == "method") {
      parts.method = true;
    } else if (word == "path") {
      parts.path = true;
    } else if (word == "query") {
      parts.query = true;
    } else if (word == "body") {
      parts.body = true;
    } else if (word == "json") {
      parts.json = true;
    } else if (word.starts_with("header:") && word.size() > 7) {
      parts.headers.push_back(word.substr(7));
    } else {
      reader.fail(
          reader.take("fingerprint"),
          "fingerprint has '" + word + "'; it has method, path, query, body, json or header:NAME");
    }
  }
}

void read_statuses(TableReader& reader, std::vector<unsigned>& statuses) {
  const toml::node* const node = reader.take("release-statuses");
  if (node == nullptr) return;
  constexpr std::int64_t status_min = 200;
  constexpr std::int64_t status_max = 599;
  constexpr std::size_t count_max = 64;
  const auto* array = node->as_array();
  statuses.clear();
  const bool is_list = array != nullptr && array->size() <= count_max;
  for (std::size_t i = 0; is_list && i < array->size(); ++i) {
    const auto* number = array->get(i)->as_integer();
    if (number == nullptr || number->get() < status_min || number->get() > status_max) break;
    statuses.push_back(static_cast<unsigned>(number->get()));
  }
  if (!is_list || statuses.size() != array->size()) {
    reader.wrong(node, "release-statuses", "is not an array of up to 64 numbers from 200 to 599");
  }
}

void read_signature(TableReader& reader, SignaturePolicy& signature) {
  reader.boolean("signature", signature.is_required);
  reader.texts("signature-keys", signature.keys, limits::signing_keys_max);
  reader.texts("signature-headers", signature.headers, limits::chosen_headers_max);
  reader.duration("signature-window", signature.window, shortest);
  reader.duration("signature-ahead", signature.ahead, Millis{0});
}

void read_methods(TableReader& reader, std::vector<std::string>& methods) {
  if (!reader.texts("methods", methods, limits::methods_max)) return;
  const toml::node* const node = reader.find("methods");
  if (methods.empty()) {
    reader.wrong(node, "methods", "is empty, and fits nothing; without it all methods fit");
  }
  for (const std::string& method : methods) {
    if (!is_served_method(method)) {
      reader.wrong(node, "methods",
                   "has '" + method +
                       "', which no request has: registered methods in capitals, "
                       "without CONNECT and TRACE");
    } else if (std::count(methods.begin(), methods.end(), method) > 1) {
      return reader.fail(node, "methods has '" + method + "' twice");
    }
  }
}

/// Names of fields that may reach the gateway's rules.
void check_names(TableReader& reader, std::string_view setting,
                 const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!name.empty() && is_passed_name(name) && !is_hop_by_hop(name, "")) continue;
    reader.wrong(reader.find(setting), setting,
                 "names the field '" + name +
                     "', which is never looked at: names of letters, "
                     "digits and '-', and none of those for one connection");
  }
}

/// Settings that have an effect on some routes only.
struct Uses {
  bool is_used;
  std::string_view why;  ///< what they need
  std::initializer_list<std::string_view> names;
};

/// A setting without effect is an error: its author would believe the route to be guarded.
void check_effects(TableReader& reader, const Route& route) {
  const bool is_claimed = route.is_claimed();
  const bool is_debounce = route.guard == Guard::debounce;
  const bool is_issue = route.guard == Guard::issue_token;
  const bool is_forwarded = route.guard != Guard::refuse && !is_issue;
  const Uses uses[] = {
      {is_claimed,
       "guard = \"idempotency-key\" or \"form-token\"",
       {"keep", "lease", "wait", "on-5xx", "on-timeout", "on-broken", "on-lease-end",
        "release-statuses", "too-large", "record-bytes"}},
      {is_claimed || is_debounce,
       "guard = \"idempotency-key\", \"form-token\" or \"debounce\"",
       {"fingerprint"}},
      {is_claimed || is_debounce || is_issue,
       "guard = \"idempotency-key\", \"form-token\", \"debounce\" or \"issue-token\"",
       {"scope"}},
      {route.guard == Guard::idempotency_key, "guard = \"idempotency-key\"", {"key-required"}},
      {route.guard == Guard::form_token, "guard = \"form-token\"", {"token-header", "token-ttl"}},
      {is_issue, "guard = \"issue-token\"", {"token-route"}},
      {is_debounce, "guard = \"debounce\"", {"debounce"}},
      {route.signature.is_required,
       "signature = true",
       {"signature-keys", "signature-headers", "signature-window", "signature-ahead"}},
      {route.is_buffered(), "a guard, or signature = true", {"body-bytes"}},
      {is_forwarded, "a guard that passes requests on", {"timeout"}},
      {is_forwarded && route.guards(), "a guard, or signature = true", {"method-override"}}};
  for (const Uses& use : uses) {
    for (const std::string_view name : use.names) {
      if (use.is_used || reader.find(name) == nullptr) continue;
      reader.wrong(reader.find(name), name, "has no effect here: it needs " + std::string{use.why});
    }
  }
  if (route.upgrade && route.guards()) {
    reader.wrong(reader.find("upgrade"), "upgrade", "has no effect on a route that guards");
  }
  if (route.signature.is_required && !is_forwarded) {
    reader.wrong(reader.find("signature"), "signature",
                 "has no effect on a route that passes nothing on");
  }
  if (route.fingerprint.json && route.fingerprint.body) {
    reader.wrong(reader.find("fingerprint"), "fingerprint", "has body and json: json is the body");
  }
}

void read_path(TableReader& reader, PathPattern& pattern) {
  std::string path;
  if (!reader.text("path", path)) return reader.fail(nullptr, "a route without path");
  Result<PathPattern> parsed = PathPattern::parse(path);
  if (!parsed) return reader.fail(reader.find("path"), parsed.error().detail);
  pattern = *std::move(parsed);
}

/// False: there is no guard of that name.
bool read_guard(TableReader& reader, Route& route) {
  const bool is_known = reader.choice("guard", route.guard,
                                      {{"pass", Guard::pass},
                                       {"refuse", Guard::refuse},
                                       {"idempotency-key", Guard::idempotency_key},
                                       {"form-token", Guard::form_token},
                                       {"debounce", Guard::debounce},
                                       {"issue-token", Guard::issue_token}});
  reader.boolean("key-required", route.key_required);
  reader.text("token-header", route.token_header);
  reader.text("token-route", route.token_route);
  reader.duration("token-ttl", route.token_ttl, Millis{1'000});
  reader.duration("debounce", route.debounce, shortest);
  reader.choice("method-override", route.ignores_override, {{"refuse", false}, {"ignore", true}});
  read_scope(reader, route.scope);
  read_fingerprint(reader, route.fingerprint);
  read_signature(reader, route.signature);
  check_names(reader, "scope", route.scope.headers);
  check_names(reader, "fingerprint", route.fingerprint.headers);
  check_names(reader, "signature-headers", route.signature.headers);
  check_names(reader, "token-header", {route.token_header});
  return is_known;
}

void read_outcomes(TableReader& reader, Route& route) {
  reader.duration("lease", route.lease, Millis{1'000}, longest_timeout);
  reader.duration("keep", route.keep_for, Millis{1'000});
  reader.duration("wait", route.wait, Millis{0}, longest_timeout);
  reader.duration("timeout", route.timeout, shortest, longest_timeout);
  reader.choice(
      "on-5xx", route.on_5xx,
      {{"keep", Meaning::keep}, {"release", Meaning::release}, {"in-doubt", Meaning::in_doubt}});
  read_failure(reader, "on-timeout", route.on_timeout);
  read_failure(reader, "on-broken", route.on_broken);
  read_failure(reader, "on-lease-end", route.on_lease_end);
  read_statuses(reader, route.release_statuses);
  reader.choice("too-large", route.too_large,
                {{"done", TooLarge::done}, {"in-doubt", TooLarge::in_doubt}});
  reader.bytes("body-bytes", route.body_bytes, 0, limits::body_bytes_max);
  reader.bytes("record-bytes", route.record_bytes, 64, limits::record_bytes_max);
  reader.boolean("upgrade", route.upgrade);
}

}  // namespace

void read_route(TableReader& reader, Route& route) {
  reader.text("name", route.name);
  read_path(reader, route.path);
  read_methods(reader, route.methods);
  const bool is_known = read_guard(reader, route);
  read_outcomes(reader, route);
  if (is_known) check_effects(reader, route);
  reader.finish();
}

}  // namespace semel::gateway
