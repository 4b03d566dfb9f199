#include "gateway/store/node_words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/hex.hpp"
#include "semel/patterns/keys.hpp"

namespace semel::gateway {
namespace {

constexpr Millis clock_set_back{60'000};

template <class Value>
using Word = std::pair<std::string_view, Value>;

constexpr std::array<Word<ClaimAnswer>, 12> claim_words{
    {{"granted", ClaimAnswer::granted},
     {"regranted", ClaimAnswer::regranted},
     {"in_flight", ClaimAnswer::in_flight},
     {"replay", ClaimAnswer::replay},
     {"kept_failure", ClaimAnswer::kept_failure},
     {"mismatch", ClaimAnswer::mismatch},
     {"in_doubt", ClaimAnswer::in_doubt},
     {"too_old", ClaimAnswer::too_old},
     {"too_new", ClaimAnswer::too_new},
     {"unknown", ClaimAnswer::unknown},
     {"busy", ClaimAnswer::busy},
     {"unprotected", ClaimAnswer::unprotected}}};
constexpr std::array<Word<OwnerAnswer>, 6> owner_words{{{"ok", OwnerAnswer::ok},
                                                        {"stale_owner", OwnerAnswer::stale_owner},
                                                        {"conflict", OwnerAnswer::conflict},
                                                        {"not_owner", OwnerAnswer::not_owner},
                                                        {"unknown", OwnerAnswer::unknown},
                                                        {"refused", OwnerAnswer::refused}}};

template <class Value, std::size_t count>
std::optional<Value> value_of(const std::array<Word<Value>, count>& words,
                              std::optional<std::string_view> word) {
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](const auto& each) { return each.first == word; });
  return found == words.end() ? std::nullopt : std::optional{found->second};
}

std::optional<std::uint64_t> number_of(std::optional<std::string_view> digits) {
  std::uint64_t number = 0;
  if (!digits) return std::nullopt;
  const char* const end = digits->data() + digits->size();
  const auto [read, error] = std::from_chars(digits->data(), end, number);
  return error == std::errc{} && read == end ? std::optional{number} : std::nullopt;
}

Millis millis_of(std::optional<std::string_view> digits) {
  const auto number = number_of(digits).value_or(0);
  return Millis{static_cast<std::int64_t>(
      std::min<std::uint64_t>(number, static_cast<std::uint64_t>(limits::duration_max.count())))};
}

std::string text_of(Millis time) {
  return std::to_string(time.count());
}

ErrorCode reason_of(std::optional<std::string_view> reason) {
  if (reason == "memory_full") return ErrorCode::memory_full;
  return reason == "waiters_full" ? ErrorCode::waiters_full : ErrorCode::refused;
}

/// The beginning of an array of `count` bulk strings: `words`.
std::string first_of(std::size_t count, std::span<const std::string_view> words) {
  std::string text = "*" + std::to_string(count) + "\r\n";
  std::size_t bytes = text.size();
  constexpr std::size_t length_line_bytes = 16;
  for (const std::string_view word : words) bytes += length_line_bytes + word.size();
  text.reserve(bytes + length_line_bytes);
  for (const std::string_view word : words) {
    text.append("$").append(std::to_string(word.size())).append("\r\n");
    text.append(word).append("\r\n");
  }
  return text;
}

}  // namespace

std::string command_of(std::span<const std::string_view> words) {
  return first_of(words.size(), words);
}

std::string command_before(std::initializer_list<std::string_view> words, std::string_view last) {
  std::string text = first_of(words.size() + 1, std::span{words.begin(), words.size()});
  return text.append("$").append(std::to_string(last.size())).append("\r\n");
}

std::string command_of(std::initializer_list<std::string_view> words) {
  return command_of(std::span{words.begin(), words.size()});
}

std::string claims_name(const Route& route) {
  return std::string{namespace_prefix} + route.name;
}

std::string nonces_name(const Route& route) {
  return std::string{nonce_prefix} + route.name;
}

Millis nonce_lease(const SignaturePolicy& policy) noexcept {
  return policy.window + policy.ahead + clock_set_back;
}

std::vector<NamespaceNeed> namespaces_of(const std::vector<Route>& routes) {
  std::vector<NamespaceNeed> needs;
  for (const Route& route : routes) {
    if (route.is_claimed() || route.guard == Guard::debounce) {
      needs.push_back({&route, claims_name(route), claim_policy(route)});
    }
    if (!route.signature.is_required) continue;
    Policy nonces;
    nonces.lease = nonce_lease(route.signature);
    nonces.attempts_ttl = Millis{1};
    nonces.window = route.signature.window;
    // 0 would mean that it is not checked.
    nonces.ahead = std::max(route.signature.ahead, Millis{1});
    needs.push_back({&route, nonces_name(route), nonces});
  }
  return needs;
}

std::string namespace_command(std::string_view verb, const NamespaceNeed& need) {
  const Policy& policy = need.policy;
  const auto on_failure = [](Policy::OnFailure what) -> std::string_view {
    if (what == Policy::OnFailure::keep) return "KEEP";
    return what == Policy::OnFailure::in_doubt ? "IN-DOUBT" : "RELEASE";
  };
  const std::pair<std::string_view, std::string> numbers[] = {
      {"LEASE", text_of(policy.lease)},
      {"RESULT-TTL", text_of(policy.result_ttl)},
      {"UNIQUE-TTL", text_of(policy.unique_ttl)},
      {"FAILURE-TTL", text_of(policy.failure_ttl)},
      {"ATTEMPTS-TTL", text_of(policy.attempts_ttl)},
      {"WINDOW", text_of(policy.window)},
      {"AHEAD", text_of(policy.ahead)},
      {"RETRY-AFTER-MAX", text_of(policy.retry_after_max)},
      {"ATTEMPTS-MAX", std::to_string(policy.attempts_max)}};
  std::vector<std::string_view> words{"SEMEL.NAMESPACE", verb, need.name};
  for (const auto& [name, number] : numbers) words.insert(words.end(), {name, number});
  const bool is_retried = policy.on_lease_end == Policy::OnLeaseEnd::retry;
  words.insert(words.end(),
               {"ON-LEASE-END", is_retried ? std::string_view{"RETRY"} : "IN-DOUBT", "ON-FAILURE",
                on_failure(policy.on_failure), "ON-EXCEPTION", on_failure(policy.on_exception)});
  if (policy.strict) words.emplace_back("STRICT");
  if (policy.fail_open) words.emplace_back("FAIL-OPEN");
  if (policy.issued) words.emplace_back("ISSUED");
  if (policy.fair) words.emplace_back("FAIR");
  return command_of(words);
}

bool has_other_terms(const NodeReply& reply) noexcept {
  return reply.is_error() && reply.text.find("declared with other terms") != std::string::npos;
}

std::string claim_command(const Work& work, const ClaimId& id) {
  const std::string name = claims_name(*work.route);
  const std::string id_text = base::hex_of(id);
  const std::string print = base::hex_of(work.fingerprint.digest);
  const std::string algorithm = std::to_string(work.fingerprint.algorithm);
  std::vector<std::string_view> words{"SEMEL.CLAIM", name,    work.key,   "CLAIM-ID",
                                      id_text,       "OWNER", owner_label};
  const std::string lease = text_of(claim_policy(*work.route).lease);
  words.insert(words.end(), {"LEASE", lease});
  if (work.fingerprint.algorithm != 0) {
    words.insert(words.end(), {"FINGERPRINT", print, "ALGORITHM", algorithm});
  }
  return command_of(words);
}

std::string nonce_command(const Route& route, const SignatureHeaders& headers, const ClaimId& id) {
  const std::string name = nonces_name(route);
  const std::string key = composite_key({headers.key_id, headers.nonce});
  const std::string id_text = base::hex_of(id);
  const std::string sent = std::to_string(headers.timestamp_unix_ms);
  const std::string lease = text_of(nonce_lease(route.signature));
  return command_of({"SEMEL.CLAIM", name, key, "CLAIM-ID", id_text, "FIRST-SENT", sent, "LEASE",
                     lease, "OWNER", owner_label});
}

std::string_view error_word(std::string_view error) noexcept {
  constexpr std::size_t longest = 16;
  const std::string_view word = error.substr(0, error.find(' '));
  const bool is_word =
      !word.empty() && word.size() <= longest &&
      std::all_of(word.begin(), word.end(), [](char each) { return each >= 'A' && each <= 'Z'; });
  return is_word ? word : "ERR";
}

Advice advice_of(const NodeReply& reply) noexcept {
  if (!reply.is_error()) return Advice::final_answer;
  const std::string_view text = reply.text;
  const std::string_view word = text.substr(0, text.find(' '));
  for (const std::string_view each :
       {"MOVED", "CLUSTERDOWN", "READONLY", "MASTERDOWN", "LOADING", "NOAUTH"}) {
    if (word == each) return Advice::elsewhere;
  }
  if (word == "TRYAGAIN") return Advice::unknown;
  return word == "BUSY" ? Advice::ask_again : Advice::final_answer;
}

std::string_view moved_to(std::string_view error) noexcept {
  if (!error.starts_with("MOVED ")) return {};
  const std::size_t blank = error.rfind(' ');
  return error.substr(blank + 1);
}

std::optional<ClaimOutcome> claim_outcome_of(const NodeReply& reply) {
  const auto answer = value_of(claim_words, reply.field("outcome"));
  if (reply.kind != NodeReply::Kind::array || !answer) return std::nullopt;
  ClaimOutcome outcome;
  outcome.answer = *answer;
  const bool is_granted = *answer == ClaimAnswer::granted || *answer == ClaimAnswer::regranted;
  const auto epoch = number_of(reply.field("epoch"));
  if (is_granted && (!epoch || *epoch == 0)) return std::nullopt;
  outcome.epoch = epoch.value_or(0);
  outcome.takeover = reply.field("takeover") == "1";
  outcome.result_expired = reply.field("result_expired") == "1";
  outcome.poison = reply.field("poison") == "1";
  outcome.remaining = millis_of(reply.field("remaining_ms"));
  outcome.retry_after = millis_of(reply.field("retry_after_ms"));
  outcome.owner = reply.field("owner").value_or("");
  const auto result = reply.field(*answer == ClaimAnswer::kept_failure ? "failure" : "result");
  outcome.result = result.value_or("");
  if (*answer == ClaimAnswer::busy) outcome.error = reason_of(reply.field("reason"));
  return outcome;
}

std::optional<OwnerOutcome> owner_outcome_of(const NodeReply& reply) {
  const auto answer = value_of(owner_words, reply.field("outcome"));
  if (reply.kind != NodeReply::Kind::array || !answer) return std::nullopt;
  OwnerOutcome outcome;
  outcome.answer = *answer;
  outcome.late = reply.field("late") == "1";
  const auto result = reply.field("result");
  outcome.has_result = result.has_value();
  outcome.result = result.value_or("");
  return outcome;
}

}  // namespace semel::gateway
