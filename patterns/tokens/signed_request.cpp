#include "semel/patterns/signed_request.hpp"
#include "base/ascii.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/percent.hpp"
#include "semel/limits.hpp"

namespace semel {

namespace {

bool is_unreserved(char c) noexcept {
  return base::is_letter(c) || base::is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

void append_encoded(Bytes bytes, std::string& text) {
  for (const char c : bytes) {
    if (is_unreserved(c)) {
      text += c;
    } else {
      base::append_percent(text, c);
    }
  }
}

std::string text_for_hmac(const SignedRequest& request) {
  std::string text{"semel-request-v1\n"};
  append_encoded(request.caller, text);
  text.append("\n").append(std::to_string(request.timestamp_unix_ms)).append("\n");
  append_encoded(request.nonce, text);
  text.append("\n").append(canonical_parameters(request.parameters));
  return text;
}

std::string text_for_md5(const SignedRequest& request, Bytes secret) {
  const std::string timestamp = std::to_string(request.timestamp_unix_ms);
  std::vector<KeyField> all{request.parameters.begin(), request.parameters.end()};
  if (!request.caller.empty()) all.push_back({"caller", request.caller});
  all.push_back({"nonce", request.nonce});
  all.push_back({"timestamp", timestamp});
  return canonical_parameters(all).append("&key=").append(secret);
}

constexpr std::int64_t last_unix_ms = 253'402'300'799'999;

bool is_reserved(const KeyField& field) noexcept {
  return field.name == "caller" || field.name == "nonce" || field.name == "timestamp";
}

}  // namespace

std::string canonical_parameters(std::span<const KeyField> parameters) {
  std::vector<KeyField> sorted{parameters.begin(), parameters.end()};
  std::sort(sorted.begin(), sorted.end(), [](const KeyField& one, const KeyField& other) {
    return std::tie(one.name, one.value) < std::tie(other.name, other.value);
  });
  std::string text;
  for (const KeyField& field : sorted) {
    if (!text.empty()) text += '&';
    append_encoded(field.name, text);
    text += '=';
    append_encoded(field.value, text);
  }
  return text;
}

std::string signature_of(const SignedRequest& request, Bytes secret, SignatureScheme scheme) {
  if (scheme == SignatureScheme::hmac_sha256) {
    return hmac_sha256_hex(secret, text_for_hmac(request));
  }
  return md5_hex(text_for_md5(request, secret));
}

bool is_well_formed(const SignedRequest& request, SignatureScheme scheme) noexcept {
  if (request.caller.size() > limits::signed_caller_max || request.nonce.empty() ||
      request.nonce.size() > limits::signed_nonce_max || request.timestamp_unix_ms < 0 ||
      request.timestamp_unix_ms > last_unix_ms ||
      request.parameters.size() > limits::signed_parameters_max) {
    return false;
  }
  std::size_t bytes = 0;
  for (const KeyField& field : request.parameters) {
    bytes += field.name.size() + field.value.size();
    if (scheme == SignatureScheme::md5_sorted_parameters && is_reserved(field)) return false;
  }
  return bytes <= limits::signed_bytes_max;
}

bool is_signed_by(const SignedRequest& request, std::span<const std::string> secrets,
                  SignatureScheme scheme) {
  constexpr std::size_t digits_max = 2 * 32 + 1;
  const std::string given = base::lower_of(request.signature.substr(0, digits_max));
  bool is_one = false;
  for (const std::string& secret : secrets) {
    const std::string expected = signature_of(request, secret, scheme);
    const bool is_this =
        !secret.empty() && !expected.empty() && equal_in_constant_time(expected, given);
    is_one = is_one || is_this;
  }
  return is_one;
}

}  // namespace semel
