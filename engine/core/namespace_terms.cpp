#include "engine/core/namespace_terms.hpp"

#include <algorithm>
#include <utility>

#include "base/ascii.hpp"
#include "base/coding.hpp"

namespace semel::engine {
namespace {

using Number = std::int64_t;

/// One term of a policy: a time, a number or a choice among words.
struct Term {
  std::string_view name;
  Number (*get)(const Policy&);
  Number least;
  Number most;
  std::string_view words[3] = {};  ///< of a choice
};

constexpr Number time_most = limits::ttl_max.count();
constexpr Number no_limit = std::int64_t{1} << 32;

template <Millis Policy::*field>
Number time_of(const Policy& policy) {
  return (policy.*field).count();
}
template <auto field>
Number number_of(const Policy& policy) {
  return static_cast<Number>(policy.*field);
}

// The times are written down in this order.
constexpr Term times[] = {
    {"lease", time_of<&Policy::lease>, 1, time_most},
    {"result_ttl", time_of<&Policy::result_ttl>, 1, time_most},
    {"unique_ttl", time_of<&Policy::unique_ttl>, 0, time_most},
    {"failure_ttl", time_of<&Policy::failure_ttl>, 1, time_most},
    {"attempts_ttl", time_of<&Policy::attempts_ttl>, 1, time_most},
    {"window", time_of<&Policy::window>, 0, time_most},
    {"ahead", time_of<&Policy::ahead>, 0, time_most},
    {"retry_after_max", time_of<&Policy::retry_after_max>, 1, time_most},
};
constexpr Term others[] = {
    {"sliding_max", time_of<&Policy::sliding_max>, 0, time_most},
    {"attempts_max", number_of<&Policy::attempts_max>, 0, no_limit},
    {"on_lease_end", number_of<&Policy::on_lease_end>, 0, 1, {"retry", "in_doubt"}},
    {"on_failure", number_of<&Policy::on_failure>, 0, 1, {"release", "keep"}},
    {"on_exception", number_of<&Policy::on_exception>, 0, 2, {"release", "keep", "in_doubt"}},
    {"strict", number_of<&Policy::strict>, 0, 1, {"no", "yes"}},
    {"fail_open", number_of<&Policy::fail_open>, 0, 1, {"no", "yes"}},
    {"issued", number_of<&Policy::issued>, 0, 1, {"no", "yes"}},
    {"fair", number_of<&Policy::fair>, 0, 1, {"no", "yes"}},
    {"db", number_of<&Policy::db>, 0, limits::db_count - 1},
};

template <class Visit>
void for_each_term(Visit&& visit) {
  for (const Term& term : times) visit(term);
  for (const Term& term : others) visit(term);
}

[[nodiscard]] std::string text_of(const Term& term, const Policy& policy) {
  const Number number = term.get(policy);
  const std::string_view word =
      term.words[static_cast<std::size_t>(std::clamp<Number>(number, 0, 2))];
  return term.words[0].empty() ? std::to_string(number) : std::string{word};
}

constexpr std::uint8_t form = 1;
enum PolicyFlag : std::uint8_t {
  flag_strict = 1,
  flag_fail_open = 2,
  flag_issued = 4,
  flag_fair = 8,
  flag_sliding = 16,  ///< sliding_max follows the other times
};

}  // namespace

bool is_namespace_name(Bytes name) noexcept {
  if (name.empty() || name.size() > limits::namespace_name_max) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return base::is_letter(c) || base::is_digit(c) || c == '_' || c == '.' || c == '-';
  });
}

Status check_namespace_name(Bytes name) {
  if (is_namespace_name(name)) return Done{};
  std::string detail{"name of "};
  detail.append(std::to_string(name.size())).append(" bytes, allowed 1..");
  detail.append(std::to_string(limits::namespace_name_max)).append(" of [A-Za-z0-9_.-]");
  return Error{ErrorCode::bad_namespace, std::move(detail)};
}

Status check_policy(const Policy& policy) {
  std::string detail;
  for_each_term([&](const Term& term) {
    const Number value = term.get(policy);
    if (!detail.empty() || (value >= term.least && value <= term.most)) return;
    detail.append("Policy::").append(term.name).append(" = ").append(std::to_string(value));
    detail.append(", allowed ").append(std::to_string(term.least));
    detail.append("..").append(std::to_string(term.most));
  });
  const Millis window = std::max(policy.unique_ttl, policy.result_ttl);
  if (detail.empty() && policy.sliding_max != Millis{0} && policy.sliding_max < window) {
    detail = "Policy::sliding_max = " + std::to_string(policy.sliding_max.count()) +
             ", allowed 0, or at least the longer of result_ttl and unique_ttl, " +
             std::to_string(window.count());
  }
  if (detail.empty()) return Done{};
  return Error{ErrorCode::bad_option, std::move(detail)};
}

[[gnu::cold]] std::string differences(const Policy& before, const Policy& after) {
  std::string text;
  for_each_term([&](const Term& term) {
    if (term.get(before) == term.get(after)) return;
    if (!text.empty()) text += ", ";
    text.append(term.name).append(" ").append(text_of(term, before));
    text.append(" -> ").append(text_of(term, after));
  });
  return text;
}

std::string what_is_forgotten(const Policy& before, const Policy& after) {
  if (before.db != after.db) {
    return "its claims live in database " + std::to_string(before.db) + ", not " +
           std::to_string(after.db) + ": they would be forgotten";
  }
  if (before.issued && !after.issued) {
    return "its keys are issued, and what was spent or never issued would be free";
  }
  if (before.on_lease_end == Policy::OnLeaseEnd::in_doubt &&
      after.on_lease_end == Policy::OnLeaseEnd::retry) {
    return "its claims are in doubt after their lease, and would be free without a decision";
  }
  return {};
}

std::string encode_policy(const Policy& policy) {
  std::string bytes;
  bytes.push_back(static_cast<char>(form));
  bytes.push_back(static_cast<char>(policy.db));
  unsigned flags = 0;
  if (policy.strict) flags |= flag_strict;
  if (policy.fail_open) flags |= flag_fail_open;
  if (policy.issued) flags |= flag_issued;
  if (policy.fair) flags |= flag_fair;
  if (policy.sliding_max != Millis{0}) flags |= flag_sliding;
  bytes.push_back(static_cast<char>(flags));
  bytes.push_back(static_cast<char>(policy.on_lease_end));
  bytes.push_back(static_cast<char>(policy.on_failure));
  bytes.push_back(static_cast<char>(policy.on_exception));
  base::put_varint(bytes, policy.attempts_max);
  for (const Term& time : times)
    base::put_varint(bytes, static_cast<std::uint64_t>(time.get(policy)));
  if (policy.sliding_max != Millis{0})
    base::put_varint(bytes, static_cast<std::uint64_t>(policy.sliding_max.count()));
  return bytes;
}

std::optional<Policy> decode_policy(Bytes bytes) {
  base::ByteReader reader{bytes};
  if (reader.fixed<std::uint8_t>() != form) return std::nullopt;
  Policy policy;
  policy.db = reader.fixed<std::uint8_t>();
  const std::uint8_t flags = reader.fixed<std::uint8_t>();
  constexpr unsigned known = flag_strict | flag_fail_open | flag_issued | flag_fair | flag_sliding;
  if (flags > known) return std::nullopt;
  policy.strict = (flags & flag_strict) != 0;
  policy.fail_open = (flags & flag_fail_open) != 0;
  policy.issued = (flags & flag_issued) != 0;
  policy.fair = (flags & flag_fair) != 0;
  policy.on_lease_end = static_cast<Policy::OnLeaseEnd>(reader.fixed<std::uint8_t>());
  policy.on_failure = static_cast<Policy::OnFailure>(reader.fixed<std::uint8_t>());
  policy.on_exception = static_cast<Policy::OnFailure>(reader.fixed<std::uint8_t>());
  policy.attempts_max = static_cast<std::uint32_t>(reader.varint());
  for (Millis Policy::*const time :
       {&Policy::lease, &Policy::result_ttl, &Policy::unique_ttl, &Policy::failure_ttl,
        &Policy::attempts_ttl, &Policy::window, &Policy::ahead, &Policy::retry_after_max}) {
    policy.*time = Millis{static_cast<std::int64_t>(reader.varint())};
  }
  if ((flags & flag_sliding) != 0) {
    policy.sliding_max = Millis{static_cast<std::int64_t>(reader.varint())};
    if (policy.sliding_max == Millis{0}) return std::nullopt;
  }
  if (!reader.is_at_end() || !check_policy(policy)) return std::nullopt;
  return policy;
}

}  // namespace semel::engine
