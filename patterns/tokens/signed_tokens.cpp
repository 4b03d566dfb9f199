#include "semel/patterns/signed_tokens.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "patterns/tokens/base64url.hpp"
#include "patterns/tokens/forward_time.hpp"
#include "patterns/tokens/signed_digests.hpp"
#include "patterns/tokens/token_outcome.hpp"
#include "semel/limits.hpp"
#include "semel/patterns/signed_request.hpp"

namespace semel {

namespace {

constexpr Millis ttl_min{10};
constexpr std::size_t secret_bytes_min = 16;

/// By how much a claim must be remembered longer than its token lives: a millisecond for each of
/// the threads that issue, reserve, spend and look again, whose clocks may differ by it
/// (clock.hpp).
constexpr Millis clocks_apart{4};
/// By how much a token's end may seem too far away, for the same reason.
constexpr Millis issue_apart{2};

constexpr Bytes version = "v1";
constexpr std::size_t id_digits = 22;   // of 16 bytes
constexpr std::size_t mac_digits = 43;  // of 32 bytes

/// The parts of a token. Bytes point into its text.
struct Parts {
  Bytes signed_part;  // all but the signature
  std::int64_t end_unix_ms = 0;
  Bytes id;
  Bytes mac;
};

std::optional<Parts> parts_of(Bytes token) noexcept {
  if (token.size() > limits::signed_token_max) return std::nullopt;
  std::array<Bytes, 4> words;
  Bytes rest = token;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t point = rest.find('.');
    if ((point == Bytes::npos) != (i + 1 == words.size())) return std::nullopt;
    words[i] = rest.substr(0, point);
    rest.remove_prefix(std::min(rest.size(), words[i].size() + 1));
  }
  Parts parts{token.substr(0, token.rfind('.')), 0, words[2], words[3]};
  const Bytes end = words[1];
  const auto [stop, error] =
      std::from_chars(end.data(), end.data() + end.size(), parts.end_unix_ms);
  const bool is_sound = words[0] == version && !end.empty() && error == std::errc{} &&
                        stop == end.data() + end.size() && parts.end_unix_ms >= 0 &&
                        parts.id.size() == id_digits && parts.mac.size() == mac_digits &&
                        parts.id.find_first_not_of(patterns::base64url_digits) == Bytes::npos;
  if (!is_sound) return std::nullopt;
  return parts;
}

Error bad_option(const char* what) {
  return {ErrorCode::bad_option, what};
}

OwnerOutcome unknown() {
  OwnerOutcome outcome;
  outcome.answer = OwnerAnswer::unknown;
  return outcome;
}

Millis remembered(const Policy& policy) {
  return std::max(policy.unique_ttl, policy.result_ttl);
}

Status check_options(const SignedTokensOptions& options, const Policy& policy) {
  if (options.ttl < ttl_min || options.ttl > limits::ttl_max) {
    return bad_option("ttl, allowed 10 ms..ttl_max");
  }
  if (options.secrets.empty()) return bad_option("secrets: at least one is needed");
  for (const std::string& secret : options.secrets) {
    if (secret.size() < secret_bytes_min) return bad_option("secrets, allowed from 16 bytes on");
  }
  if (policy.fail_open) return bad_option("the policy's fail_open, tokens would be used twice");
  if (policy.issued) return bad_option("the policy's issued, tokens are not made known to it");
  if (remembered(policy) < options.ttl) {
    return bad_option("the policy's unique_ttl, allowed from ttl on");
  }
  const bool limits_attempts = policy.attempts_max > 0;
  const bool keeps_failures = policy.on_failure == Policy::OnFailure::keep || limits_attempts;
  if (keeps_failures && policy.failure_ttl < options.ttl) {
    return bad_option("the policy's failure_ttl, allowed from ttl on");
  }
  if (limits_attempts && policy.attempts_ttl < options.ttl) {
    return bad_option("the policy's attempts_ttl, allowed from ttl on");
  }
  return Done{};
}

}  // namespace

class SignedTokens::Impl {
 public:
  Impl(Claims claims, SignedTokensOptions options)
      : claims_(std::move(claims)),
        life_(std::min(options.ttl, remembered(claims_.policy()) - clocks_apart)),
        secrets_(std::move(options.secrets)),
        time_(claims_.engine().clock()) {
    SEMEL_ASSERT(!secrets_.empty());  // check_options()
    SEMEL_ASSERT(life_ > Millis{0});
  }

  Result<std::string> issue(Bytes subject) {
    std::array<std::uint8_t, 16> id;
    if (getentropy(id.data(), id.size()) != 0) return bad_option("the system gives no randomness");
    std::string token{version};
    token.append(".").append(std::to_string(time_.unix_ms() + life_.count()));
    token.append(".").append(patterns::base64url(id));
    const std::string mac = mac_of(token, subject, secrets_.front());
    if (mac.empty()) return bad_option("libcrypto gives no signature");
    token.append(".").append(mac);
    SEMEL_ASSERT(token.size() <= limits::signed_token_max);  // or parts_of() refuses it
    return token;
  }

  TokenOutcome reserve(Bytes token, Bytes subject, const TokenReservation& reservation) {
    const auto parts = parts_of(token);
    if (!parts || !is_signed(*parts, subject)) return {.answer = TokenAnswer::unknown};
    const std::int64_t left = parts->end_unix_ms - time_.unix_ms();
    if (left <= 0) return {.answer = TokenAnswer::expired};
    if (const Millis more = Millis{left} - life_ - issue_apart; more > Millis{0}) {
      // The record of its use would end before the token does.
      return {.answer = TokenAnswer::busy, .retry_after = more, .error = ErrorCode::invalid_expire};
    }
    TokenOutcome outcome = patterns::token_outcome(claims_.claim({.key = parts->id,
                                                                  .lease = reservation.lease,
                                                                  .claim_id = reservation.claim_id,
                                                                  .owner = reservation.owner}));
    if (outcome.answer == TokenAnswer::reserved && time_.unix_ms() >= parts->end_unix_ms) {
      // This thread may have paused for so long that the use of the token is forgotten.
      static_cast<void>(claims_.release({.key = parts->id, .epoch = outcome.epoch}));
      return {.answer = TokenAnswer::expired};
    }
    return outcome;
  }

  /// The key of the claim. An epoch is known only to a caller whose signature was checked.
  [[nodiscard]] static std::optional<Bytes> key_of(Bytes token) {
    const auto parts = parts_of(token);
    return parts ? std::optional{parts->id} : std::nullopt;
  }

  [[nodiscard]] Claims& claims() noexcept { return claims_; }

 private:
  /// Names cannot hold a line's end, so the subject begins where it seems to.
  [[nodiscard]] std::string mac_of(Bytes signed_part, Bytes subject, Bytes secret) const {
    std::string text{"semel-token-v1\n"};
    text.append(claims_.name()).append("\n").append(signed_part).append("\n").append(subject);
    const auto mac = patterns::hmac_sha256(secret, text);
    return mac ? patterns::base64url(*mac) : std::string{};
  }

  [[nodiscard]] bool is_signed(const Parts& parts, Bytes subject) const {
    bool is_one = false;
    for (const std::string& secret : secrets_) {
      const bool is_this =
          equal_in_constant_time(mac_of(parts.signed_part, subject, secret), parts.mac);
      is_one = is_one || is_this;
    }
    return is_one;
  }

  Claims claims_;
  const Millis life_;
  const std::vector<std::string> secrets_;
  patterns::ForwardTime time_;
};

SignedTokens::SignedTokens(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
SignedTokens::~SignedTokens() = default;
SignedTokens::SignedTokens(SignedTokens&&) noexcept = default;
SignedTokens& SignedTokens::operator=(SignedTokens&&) noexcept = default;

Result<SignedTokens> SignedTokens::open(Claims claims, SignedTokensOptions options) {
  SEMEL_CHECK(check_options(options, claims.policy()));
  return SignedTokens{std::make_unique<Impl>(std::move(claims), std::move(options))};
}

Result<std::string> SignedTokens::issue(Bytes subject) {
  return impl_->issue(subject);
}

TokenOutcome SignedTokens::reserve(Bytes token, Bytes subject,
                                   const TokenReservation& reservation) {
  return impl_->reserve(token, subject, reservation);
}

OwnerOutcome SignedTokens::spend(Bytes token, Epoch epoch, Bytes result) {
  const auto key = Impl::key_of(token);
  if (!key) return unknown();
  return impl_->claims().complete(
      {.key = *key, .epoch = epoch, .payload = result, .keeping = ResultKeeping::optional});
}

OwnerOutcome SignedTokens::give_back(Bytes token, Epoch epoch) {
  const auto key = Impl::key_of(token);
  if (!key) return unknown();
  return impl_->claims().fail(
      {.key = *key, .epoch = epoch, .on_failure = Policy::OnFailure::release});
}

}  // namespace semel
