#include "net/commands/claim_words.hpp"

#include <limits>
#include <utility>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "net/resp/reply_error.hpp"
#include "net/resp/text.hpp"
#include "semel/claim_fields.hpp"
#include "semel/patterns/semaphore.hpp"
#include "semel/policies.hpp"

namespace semel::net {
namespace {

constexpr std::size_t shown_bytes_max = 64;
constexpr std::string_view claim_word_names = "LEASE, FINGERPRINT, ALGORITHM, CLAIM-ID, FIRST-SENT";
constexpr std::string_view policy_word_names =
    "AS, LEASE, RESULT-TTL, UNIQUE-TTL, SLIDING-MAX, FAILURE-TTL, ATTEMPTS-TTL, WINDOW, AHEAD, "
    "RETRY-AFTER-MAX, ATTEMPTS-MAX, ON-LEASE-END, ON-FAILURE, ON-EXCEPTION, STRICT, FAIL-OPEN, "
    "ISSUED, FAIR";

constexpr int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = base::to_lower(c);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/// 32 hexadecimal digits; with dashes where a UUID has them, if allowed.
bool read_hex(std::string_view word, bool is_uuid, std::array<std::uint8_t, 16>& bytes) noexcept {
  constexpr std::size_t digits = 32;
  constexpr std::size_t uuid_size = 36;
  const bool dashed = is_uuid && word.size() == uuid_size;
  if (!dashed && word.size() != digits) return false;
  std::size_t digit = 0;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (dashed && (i == 8 || i == 13 || i == 18 || i == 23)) {
      if (word[i] != '-') return false;
      continue;
    }
    const int value = hex_value(word[i]);
    if (value < 0) return false;
    std::uint8_t& byte = bytes[digit / 2];
    byte = static_cast<std::uint8_t>(digit % 2 == 0 ? value << 4 : byte | value);
    ++digit;
  }
  return true;
}

/// "ERR LEASE must be 1..10, not '0'".
Error must_be(std::string_view name, std::string_view word, std::string_view allowed) {
  std::string text{"ERR "};
  text.append(name).append(" must be ").append(allowed);
  return reply_error(std::move(text.append(", not ").append(quoted_word(word))));
}

Error no_number(std::string_view name, std::string_view word, std::int64_t least,
                std::int64_t most) {
  return must_be(name, word, std::to_string(least) + ".." + std::to_string(most));
}

std::string_view take(WordSpan& rest) noexcept {
  const std::string_view word = rest.front();
  rest = rest.subspan(1);
  return word;
}

Error no_value(std::string_view name) {
  return reply_error("ERR " + std::string{name} + " needs a value behind it");
}

Status read_fingerprint(std::string_view word, Fingerprint& fingerprint) {
  if (!read_hex(word, false, fingerprint.digest)) {
    return must_be("FINGERPRINT", word, "32 hexadecimal digits");
  }
  if (fingerprint.algorithm == 0) fingerprint.algorithm = 1;
  return Done{};
}

Status read_claim_id(std::string_view word, std::optional<ClaimId>& id) {
  if (read_hex(word, true, id.emplace())) return Done{};
  return must_be("CLAIM-ID", word, "32 hexadecimal digits or a UUID");
}

/// Null: not the option of a label.
const ClaimLabel* label_of(std::string_view word) noexcept {
  for (const ClaimLabel& label : claim_labels) {
    if (is_word(word, label.name)) return &label;
  }
  return nullptr;
}

Status read_label(const ClaimLabel& label, std::string_view value, ClaimRequest& request) {
  if (value.size() > label.bytes_max) {
    return reply_error("ERR " + base::upper_of(label.name) + " must be 0.." +
                       std::to_string(label.bytes_max) + " bytes, not " +
                       std::to_string(value.size()));
  }
  request.*label.given = value;
  return Done{};
}

/// One option with a value.
Status read_claim_value(std::string_view word, std::string_view value, ClaimRequest& request,
                        std::optional<std::uint8_t>& algorithm) {
  std::int64_t number = 0;
  if (is_word(word, "lease")) {
    Millis lease{0};
    SEMEL_CHECK(read_ms("LEASE", value, 1, lease));
    request.lease = lease;
    return Done{};
  }
  if (is_word(word, "fingerprint")) return read_fingerprint(value, request.fingerprint);
  if (is_word(word, "claim-id")) return read_claim_id(value, request.claim_id);
  if (is_word(word, "algorithm")) {
    SEMEL_CHECK(
        read_number("ALGORITHM", value, 1, std::numeric_limits<std::uint8_t>::max(), number));
    algorithm = static_cast<std::uint8_t>(number);
    return Done{};
  }
  if (const ClaimLabel* const label = label_of(word)) return read_label(*label, value, request);
  SEMEL_ASSERT(is_word(word, "first-sent"));
  SEMEL_CHECK(
      read_number("FIRST-SENT", value, 0, std::numeric_limits<std::int64_t>::max(), number));
  request.first_sent_unix_ms = number;
  return Done{};
}

bool has_value(std::string_view word) noexcept {
  return is_word(word, "lease") || is_word(word, "fingerprint") || is_word(word, "claim-id") ||
         label_of(word) != nullptr || is_word(word, "first-sent") || is_word(word, "algorithm");
}

std::string all_claim_word_names() {
  std::string names{claim_word_names};
  for (const ClaimLabel& label : claim_labels)
    names.append(", ").append(base::upper_of(label.name));
  return names.append(", BIND");
}

struct PolicyTime {
  std::string_view word;
  std::string_view name;
  Millis Policy::*field;
  std::int64_t least;
};
constexpr PolicyTime policy_times[] = {
    {"lease", "LEASE", &Policy::lease, 1},
    {"result-ttl", "RESULT-TTL", &Policy::result_ttl, 1},
    {"unique-ttl", "UNIQUE-TTL", &Policy::unique_ttl, 0},
    {"sliding-max", "SLIDING-MAX", &Policy::sliding_max, 0},
    {"failure-ttl", "FAILURE-TTL", &Policy::failure_ttl, 1},
    {"attempts-ttl", "ATTEMPTS-TTL", &Policy::attempts_ttl, 1},
    {"window", "WINDOW", &Policy::window, 0},
    {"ahead", "AHEAD", &Policy::ahead, 0},
    {"retry-after-max", "RETRY-AFTER-MAX", &Policy::retry_after_max, 1},
};

struct PolicyFlag {
  std::string_view word;
  std::string_view name;
  bool Policy::*field;
};
constexpr PolicyFlag policy_flags[] = {
    {"strict", "STRICT", &Policy::strict},
    {"fail-open", "FAIL-OPEN", &Policy::fail_open},
    {"issued", "ISSUED", &Policy::issued},
    {"fair", "FAIR", &Policy::fair},
};

/// AS name: the policy of that name, whatever database it is for.
Status read_policy_name(std::string_view value, Policy& policy) {
  for (const NamedPolicy& each : policies::all) {
    if (value != each.name) continue;
    const std::uint8_t db = policy.db;
    policy = each.policy;
    policy.db = db;
    return Done{};
  }
  std::string names;
  for (const NamedPolicy& each : policies::all) {
    names.append(names.empty() ? "" : ", ").append(each.name);
  }
  return must_be("AS", value, "one of " + names);
}

Status read_policy_choice(std::string_view word, std::string_view value, Policy& policy) {
  if (is_word(word, "on-lease-end")) {
    const bool doubts = is_word(value, "in-doubt");
    if (!doubts && !is_word(value, "retry")) {
      return must_be("ON-LEASE-END", value, "RETRY or IN-DOUBT");
    }
    policy.on_lease_end = doubts ? Policy::OnLeaseEnd::in_doubt : Policy::OnLeaseEnd::retry;
    return Done{};
  }
  if (is_word(word, "on-exception")) {
    if (is_word(value, "release")) return policy.on_exception = Policy::OnFailure::release, Done{};
    if (is_word(value, "keep")) return policy.on_exception = Policy::OnFailure::keep, Done{};
    if (is_word(value, "in-doubt"))
      return policy.on_exception = Policy::OnFailure::in_doubt, Done{};
    return must_be("ON-EXCEPTION", value, "RELEASE, KEEP or IN-DOUBT");
  }
  if (is_word(word, "on-failure")) {
    const bool keeps = is_word(value, "keep");
    if (!keeps && !is_word(value, "release")) {
      return must_be("ON-FAILURE", value, "RELEASE or KEEP");
    }
    policy.on_failure = keeps ? Policy::OnFailure::keep : Policy::OnFailure::release;
    return Done{};
  }
  std::int64_t number = 0;
  SEMEL_CHECK(
      read_number("ATTEMPTS-MAX", value, 0, std::numeric_limits<std::uint32_t>::max(), number));
  policy.attempts_max = static_cast<std::uint32_t>(number);
  return Done{};
}

Status read_policy_word(WordSpan& rest, Policy& policy) {
  const std::string_view word = take(rest);
  for (const PolicyFlag& flag : policy_flags) {
    if (!is_word(word, flag.word)) continue;
    policy.*flag.field = true;
    return Done{};
  }
  for (const PolicyTime& time : policy_times) {
    if (!is_word(word, time.word)) continue;
    if (rest.empty()) return no_value(time.name);
    return read_ms(time.name, take(rest), time.least, policy.*time.field);
  }
  if (!is_word(word, "on-lease-end") && !is_word(word, "on-failure") &&
      !is_word(word, "on-exception") && !is_word(word, "attempts-max")) {
    return reply_error(unknown_word(word, policy_word_names));
  }
  if (rest.empty()) return no_value(word);
  return read_policy_choice(word, take(rest), policy);
}

}  // namespace

std::string quoted_word(std::string_view word) {
  std::string text{"'"};
  text.append(word.substr(0, shown_bytes_max));
  return text.append(word.size() > shown_bytes_max ? "..'" : "'");
}

std::string unknown_word(std::string_view word, std::string_view allowed) {
  return "ERR unknown word " + quoted_word(word) + ", allowed are " + std::string{allowed};
}

Status read_number(std::string_view name, std::string_view word, std::int64_t least,
                   std::int64_t most, std::int64_t& number) {
  const auto read = integer_of(word);
  if (read && *read >= least && *read <= most) {
    number = *read;
    return Done{};
  }
  return no_number(name, word, least, most);
}

Status read_ms(std::string_view name, std::string_view word, std::int64_t least, Millis& ms) {
  std::int64_t number = 0;
  SEMEL_CHECK(read_number(name, word, least, limits::ttl_max.count(), number));
  ms = Millis{number};
  return Done{};
}

Status read_epoch(std::string_view word, Epoch& epoch) {
  const auto read = integer_of(word);
  if (!read || *read < 1)
    return no_number("epoch", word, 1, std::numeric_limits<std::int64_t>::max());
  epoch = static_cast<Epoch>(*read);
  return Done{};
}

Status read_claim_words(WordSpan& rest, bool until_keys, ClaimWords& words) {
  std::optional<std::uint8_t> algorithm;
  while (!rest.empty()) {
    if (until_keys && is_word(rest.front(), "keys")) break;
    const std::string_view word = take(rest);
    if (is_word(word, "bind")) {
      words.binds = true;
      continue;
    }
    if (!has_value(word)) return reply_error(unknown_word(word, all_claim_word_names()));
    if (rest.empty()) return no_value(word);
    SEMEL_CHECK(read_claim_value(word, take(rest), words.request, algorithm));
  }
  if (!algorithm) return Done{};
  if (words.request.fingerprint.algorithm == 0) {
    return reply_error("ERR ALGORITHM needs a FINGERPRINT");
  }
  words.request.fingerprint.algorithm = *algorithm;
  return Done{};
}

Status read_wait_words(WordSpan words, WaitWords& wait) {
  SEMEL_ASSERT(words.size() >= 4);
  WordSpan rest = words.subspan(4);
  if (Status status = read_ms("timeout-ms", words[1], 0, wait.timeout); !status) return status;
  if (Status status = read_claim_words(rest, false, wait.claim); !status) return status;
  wait.name = words[2];
  wait.claim.request.key = words[3];
  return Done{};
}

Status read_permit_words(WordSpan words, PermitWords& permit) {
  SEMEL_ASSERT(words.size() >= 4);
  std::int64_t permits = 0;
  SEMEL_CHECK(read_number("the number of permits", words[3], 1, limits::permits_max, permits));
  permit.permits = static_cast<std::uint32_t>(permits);
  WordSpan rest = words.subspan(4);
  if (!rest.empty() && is_word(rest.front(), "wait")) {
    rest = rest.subspan(1);
    if (rest.empty()) return no_value("WAIT");
    SEMEL_CHECK(read_ms("WAIT", take(rest), 0, permit.wait.emplace(0)));
  }
  SEMEL_CHECK(read_claim_words(rest, false, permit.claim));
  permit.name = words[1];
  permit.claim.request.key = words[2];
  return Done{};
}

Status read_keys(WordSpan& rest) {
  if (rest.size() < 2) return reply_error("ERR KEYS n key.. is missing");
  rest = rest.subspan(1);
  const std::string_view word = take(rest);
  std::int64_t count = 0;
  SEMEL_CHECK(read_number("the number of keys", word, 1,
                          static_cast<std::int64_t>(limits::batch_max), count));
  if (static_cast<std::size_t>(count) == rest.size()) return Done{};
  return reply_error("ERR " + std::to_string(count) + " keys are announced, " +
                     std::to_string(rest.size()) + " follow");
}

Status read_policy(WordSpan rest, Policy& policy) {
  if (!rest.empty() && is_word(rest.front(), "as")) {
    take(rest);
    if (rest.empty()) return no_value("AS");
    SEMEL_CHECK(read_policy_name(take(rest), policy));
  }
  while (!rest.empty()) {
    SEMEL_CHECK(read_policy_word(rest, policy));
  }
  return Done{};
}

std::string_view word_of(DecisionCall call) noexcept {
  switch (call) {
    case DecisionCall::claim:
      return "claim";
    case DecisionCall::complete:
      return "complete";
    case DecisionCall::fail:
      return "fail";
    case DecisionCall::renew:
      return "renew";
    case DecisionCall::release:
      return "release";
    case DecisionCall::issue:
      return "issue";
    case DecisionCall::forget:
      return "forget";
    case DecisionCall::resolve:
      return "resolve";
    case DecisionCall::ended:
      break;
  }
  return "none";
}

std::string_view word_of(ClaimState state) noexcept {
  switch (state) {
    case ClaimState::absent:
      return "absent";
    case ClaimState::held:
      return "held";
    case ClaimState::done:
      return "done";
    case ClaimState::failed:
      return "failed";
    case ClaimState::in_doubt:
      return "in_doubt";
    case ClaimState::vacant:
      break;
  }
  return "free";
}

}  // namespace semel::net
