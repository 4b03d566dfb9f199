#include "semel/patterns/signed_request.hpp"
#include "base/ascii.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/percent.hpp"

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

}  // namespace semel
