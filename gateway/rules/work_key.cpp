#include "gateway/rules/work_key.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "base/hex.hpp"
#include "semel/patterns/identity.hpp"
#include "semel/patterns/signed_request.hpp"

namespace semel::gateway {
namespace {

constexpr std::size_t scope_digits = 32;

Error bad(std::string text) {
  return {ErrorCode::syntax, std::move(text)};
}

Error no_digest() {
  return {ErrorCode::refused, "libcrypto does not compute SHA-256"};
}

/// Appends a part so that two different lists of parts never give the same bytes.
void append_part(std::string& text, std::string_view name, std::string_view value) {
  text.append(std::to_string(name.size())).append(":").append(name);
  text.append(std::to_string(value.size())).append(":").append(value);
}

/// The content of a string of structured fields, `text` begins with its quote.
Result<std::string> quoted_key(std::string_view text) {
  std::string key;
  std::size_t i = 1;
  for (; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] == '\\') {
      ++i;
      const bool is_escape = i < text.size() && (text[i] == '"' || text[i] == '\\');
      if (!is_escape) return bad("Idempotency-Key has a '\\' that escapes nothing");
    }
    key += text[i];
  }
  if (i >= text.size()) return bad("Idempotency-Key has no closing quote");
  if (i + 1 != text.size()) return bad("Idempotency-Key has more behind its closing quote");
  return key;
}

}  // namespace

Result<std::string> parse_idempotency_key(std::string_view value) {
  const std::string_view text = without_blanks(value);
  std::string key{text};
  if (text.starts_with('"')) {
    SEMEL_TRY(inner, quoted_key(text));
    key = std::move(inner);
  } else if (text.find_first_of(" \t,;\"") != std::string_view::npos) {
    return bad("Idempotency-Key has a blank, ',', ';' or '\"' outside of quotes");
  }
  if (key.empty()) return bad("Idempotency-Key is empty");
  if (key.size() > limits::idempotency_key_max) {
    return bad("Idempotency-Key has " + std::to_string(key.size()) + " characters; the limit is " +
               std::to_string(limits::idempotency_key_max));
  }
  if (std::any_of(key.begin(), key.end(), [](char c) { return c < ' ' || c > '~'; })) {
    return bad("Idempotency-Key has a character that is not printable ASCII");
  }
  return key;
}

std::string sha256_hex(std::string_view bytes) {
  std::uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) != 1) return {};
  return base::hex_of(std::span{digest, size});
}

Result<std::string> scope_of(const ScopeParts& scope, const Request& request,
                             std::string_view key_id) {
  std::string text;
  const auto add_header = [&](std::string_view name) -> Status {
    const FieldLookup found = find_field(request.fields, name);
    if (found.repeated) return bad("the header " + std::string{name} + " is there twice");
    if (!found.value || found.value->empty()) {
      return Error{ErrorCode::no_such_key,
                   "the header " + std::string{name} + ", which says whose a key is, is missing"};
    }
    append_part(text, lower_case(name), *found.value);
    return Done{};
  };
  if (scope.authorization) SEMEL_CHECK(add_header("Authorization"));
  for (const std::string& name : scope.headers) SEMEL_CHECK(add_header(name));
  if (scope.key_id) {
    if (key_id.empty()) return Error{ErrorCode::no_such_key, "the request is not signed"};
    append_part(text, "key-id", key_id);
  }
  if (text.empty()) append_part(text, "shared", "");
  std::string digest = sha256_hex(text);
  if (digest.empty()) return no_digest();
  digest.resize(scope_digits);
  return digest;
}

std::string claim_key(std::string_view scope, std::string_view key) {
  return composite_key({scope, key});
}

namespace {

/// A text of the head: a string, or bytes if it is not UTF-8.
std::string json_text(std::string_view text) {
  std::string json = json_string(text);
  if (identity_json(json).ok()) return json;
  std::string base64((text.size() + 2) / 3 * 4 + 1, '\0');  // and the NUL that libcrypto writes
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(base64.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  base64.resize(static_cast<std::size_t>(size));
  return "{\"$bytes\":\"" + base64 + "\"}";
}

void append_member(std::string& json, std::string_view name, std::string_view value) {
  json.append(json.empty() ? "{" : ",").append(json_string(name)).append(":").append(value);
}

std::string values_of(std::string_view name, const Request& request) {
  std::string list;
  for (const Field& field : request.fields) {  // each of them, in their order
    if (!equal_names(field.name, name)) continue;
    list.append(list.empty() ? "[" : ",").append(json_text(field.value));
  }
  return list.empty() ? "[]" : list + "]";
}

}  // namespace

Result<Fingerprint> fingerprint_of_request(const FingerprintParts& parts, const Request& request) {
  std::string arguments;
  if (parts.method) append_member(arguments, "method", json_text(request.method));
  if (parts.path) append_member(arguments, "path", json_text(request.path));
  if (parts.query) append_member(arguments, "query", json_text(request.query));
  for (const std::string& name : parts.headers) {
    append_member(arguments, "header:" + lower_case(name), values_of(name, request));
  }
  if (parts.json && !request.body.empty()) {
    // Parsed on its own first: the body must be one value of JSON, not a piece of the text around
    // it.
    Result<std::string> canonical = identity_json(request.body);
    if (!canonical) return bad("the body: " + canonical.error().message());
    append_member(arguments, "json", *canonical);
  } else if (parts.body || parts.json) {
    append_member(arguments, "body-sha256", json_string(sha256_hex(request.body)));
  }
  arguments += arguments.empty() ? "null" : "}";
  SEMEL_TRY(text, identity_text({.operation = "http", .arguments = arguments}));
  const Fingerprint made = fingerprint_sha256(text, FingerprintAlgorithm::sha256_identity);
  if (made.algorithm == 0) return no_digest();
  return made;
}

SignedParts::SignedParts(const SignaturePolicy& policy, const Request& request) {
  owned_.reserve(policy.headers.size() + 1);
  owned_.emplace_back("body-sha256", sha256_hex(request.body));
  for (const std::string& name : policy.headers) {
    std::string value;
    for (const Field& field : request.fields) {
      if (!equal_names(field.name, name)) continue;
      if (!value.empty()) value += ", ";
      value += field.value;
    }
    owned_.emplace_back("header:" + lower_case(name), std::move(value));
  }
  fields_.push_back({"method", request.method});
  fields_.push_back({"path", request.path});
  fields_.push_back({"query", request.query});
  for (const auto& [name, value] : owned_) fields_.push_back({name, value});
}

Result<SignatureHeaders> signature_headers(Fields fields) {
  SignatureHeaders made;
  std::string_view time;
  const std::pair<std::string_view, std::string_view*> wanted[] = {
      {"Semel-Key-Id", &made.key_id},
      {"Semel-Timestamp", &time},
      {"Semel-Nonce", &made.nonce},
      {"Semel-Signature", &made.signature}};
  for (const auto& [name, to] : wanted) {
    const FieldLookup found = find_field(fields, name);
    if (!found.value || found.value->empty() || found.repeated) {
      return bad("the header " + std::string{name} + " must be there once");
    }
    *to = *found.value;
  }
  constexpr std::size_t seconds_digits = 10;
  constexpr std::size_t milliseconds_digits = 13;
  constexpr std::int64_t second_ms = 1000;
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(time.data(), time.data() + time.size(), number);
  const bool is_number = error == std::errc{} && end == time.data() + time.size() && number >= 0;
  if (!is_number || (time.size() != seconds_digits && time.size() != milliseconds_digits)) {
    return bad("Semel-Timestamp is neither 10 digits of seconds nor 13 of milliseconds since 1970");
  }
  made.timestamp_unix_ms = time.size() == seconds_digits ? number * second_ms : number;
  return made;
}

}  // namespace semel::gateway
