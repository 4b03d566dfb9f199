#include "gateway/core/asked.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>

#include "base/hex.hpp"

namespace semel::gateway {
namespace {

/// SHA-256 over parts, each behind its length, so that no two lists of parts are one text.
class Digester {
 public:
  Digester() : context_(EVP_MD_CTX_new()) {
    if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
      throw std::bad_alloc{};
    }
  }
  void add(std::string_view part) {
    const std::string size = std::to_string(part.size()) + ':';
    EVP_DigestUpdate(context_.get(), size.data(), size.size());
    EVP_DigestUpdate(context_.get(), part.data(), part.size());
  }
  [[nodiscard]] std::array<std::uint8_t, 16> finish() {
    unsigned char all[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), all, &size);
    std::array<std::uint8_t, 16> cut{};
    std::copy_n(all, cut.size(), cut.begin());
    return cut;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

Error bad_key(std::string what) {
  return {ErrorCode::bad_option, "Idempotency-Key: " + std::move(what)};
}

/// The text of "..." of structured fields (RFC 8941). None: it is not one alone.
std::optional<std::string> unquoted(std::string_view value) {
  std::string text;
  for (std::size_t i = 1; i + 1 < value.size(); ++i) {
    if (value[i] == '"') return std::nullopt;
    if (value[i] == '\\') {
      ++i;
      if (i + 1 >= value.size() || (value[i] != '"' && value[i] != '\\')) return std::nullopt;
    }
    text += value[i];
  }
  return text;
}

}  // namespace

Result<std::string> key_of(std::span<const std::string_view> values) {
  if (values.size() != 1) return bad_key("it was sent " + std::to_string(values.size()) + " times");
  const std::string_view value = values.front();
  std::string key{value};
  if (value.starts_with('"')) {
    auto text = value.size() >= 2 && value.ends_with('"') ? unquoted(value) : std::nullopt;
    if (!text) return bad_key("its quotes do not fit");
    key = *std::move(text);
  }
  if (key.empty()) return bad_key("it is empty");
  if (key.size() > limits::key_bytes_max) {
    return bad_key("it has " + std::to_string(key.size()) + " characters, at most " +
                   std::to_string(limits::key_bytes_max));
  }
  const bool is_visible =
      std::all_of(key.begin(), key.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!is_visible) return bad_key("it has characters that are not visible ASCII");
  return key;
}

std::string claim_key(const RoutePolicy& route, const Asked& asked, std::string_view key) {
  Digester who;
  switch (route.scope) {
    case RoutePolicy::Scope::none:
      break;
    case RoutePolicy::Scope::credential:
      // Not cookies: one that changes between two tries would make them two clients.
      for (const char* header : {"Authorization", "X-Api-Key"}) {
        const auto values = asked.header(header);
        if (values.empty()) continue;
        who.add(header);
        for (const std::string_view value : values) who.add(value);
        break;
      }
      break;
    case RoutePolicy::Scope::header:
      for (const std::string_view value : asked.header(route.scope_header)) who.add(value);
  }
  const auto digest = who.finish();
  return base::hex_of(digest) + ':' + std::string{key};
}

Fingerprint fingerprint_of(const RoutePolicy& route, const Asked& asked) {
  Digester all;
  all.add(asked.method);
  all.add(asked.path);
  if (route.uses_query) all.add(asked.query);
  if (route.uses_body) all.add(asked.body);
  for (const std::string& header : route.uses_headers) {
    const auto values = asked.header(header);
    all.add(std::to_string(values.size()));
    for (const std::string_view value : values) all.add(value);
  }
  Fingerprint made;
  made.algorithm = 2;
  made.digest = all.finish();
  return made;
}

}  // namespace semel::gateway
