#include "net/config/namespaces.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "net/commands/claim_words.hpp"
#include "net/resp/text.hpp"
#include "net/settings/setting_table.hpp"
#include "net/settings/setting_value.hpp"
#include "semel/limits.hpp"

namespace semel::net {
namespace {

constexpr std::array<std::string_view, 9> times{"lease",       "result-ttl",  "unique-ttl",
                                                "sliding-max", "failure-ttl", "attempts-ttl",
                                                "window",      "ahead",       "retry-after-max"};
constexpr std::array<std::string_view, 4> choices{"attempts-max", "on-lease-end", "on-failure",
                                                  "on-exception"};
constexpr std::array<std::string_view, 4> flags{"strict", "fail-open", "issued", "fair"};

template <std::size_t size>
[[nodiscard]] bool is_one_of(std::string_view key,
                             const std::array<std::string_view, size>& names) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

[[nodiscard]] Error option_error(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}

[[nodiscard]] Error unknown_option(std::string_view key) {
  std::vector<std::string_view> all{"as", "db"};
  all.insert(all.end(), times.begin(), times.end());
  all.insert(all.end(), choices.begin(), choices.end());
  all.insert(all.end(), flags.begin(), flags.end());
  std::string text = "unknown option " + quoted_word(key) + " of a namespace";
  const std::string_view nearest = nearest_of(key, all);
  if (!nearest.empty()) text.append(", did you mean '").append(nearest).append("'?");
  return option_error(std::move(text));
}

}  // namespace

Status NamespaceOptions::add(std::string_view key, std::string_view text) {
  if (key == "as") {
    as_ = text;
    return Done{};
  }
  if (key == "db") {
    const auto number = integer_of(text);
    if (!number || *number < 0 || *number >= limits::db_count) {
      return option_error("db must be 0.." + std::to_string(limits::db_count - 1) + ", not " +
                          quoted_word(text));
    }
    db_ = static_cast<std::uint8_t>(*number);
    return Done{};
  }
  if (is_one_of(key, flags)) {
    if (text != "yes" && text != "no") {
      return option_error(std::string{key} + " must be true or false, not " + quoted_word(text));
    }
    if (text == "yes") words_.emplace_back(key);
    return Done{};
  }
  if (is_one_of(key, times)) {
    const auto ms = duration_of(text, "ms");
    if (!ms) {
      return option_error(std::string{key} + " must be milliseconds or a text as \"30s\", not " +
                          quoted_word(text));
    }
    words_.emplace_back(key);
    words_.push_back(std::to_string(*ms));
    return Done{};
  }
  if (!is_one_of(key, choices)) return unknown_option(key);
  words_.emplace_back(key);
  words_.emplace_back(text);
  return Done{};
}

Result<Policy> NamespaceOptions::finish(std::string_view name) const {
  std::vector<std::string_view> words;
  if (!as_.empty()) words = {"as", as_};
  words.insert(words.end(), words_.begin(), words_.end());
  Policy policy;
  policy.db = db_;
  const Status read = read_policy(words, policy);
  if (read) return policy;
  std::string text = read.error().detail;
  constexpr std::string_view prefix = "ERR ";
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
  return option_error("namespace " + quoted_word(name) + ": " + text);
}

}  // namespace semel::net
