#include "net/follow/absolute_ends.hpp"

#include "base/checked.hpp"
#include "net/resp/text.hpp"

namespace semel::net {

namespace {

constexpr std::int64_t second_ms = 1'000;

}  // namespace

std::span<const std::string_view> AbsoluteEnds::rewrite(std::span<const std::string_view> words,
                                                        std::int64_t unix_ms) {
  if (words.size() < 3) return words;
  const std::string_view name = words[0];
  const auto rewritten = [&](auto&& with) -> std::span<const std::string_view> {
    unix_ms_ = unix_ms;
    words_.assign(words.begin(), words.end());
    return with() ? std::span<const std::string_view>{words_} : words;
  };
  if (is_word(name, "set")) return rewritten([this] { return rewrite_options(3); });
  if (is_word(name, "getex")) return rewritten([this] { return rewrite_options(2); });
  if (is_word(name, "expire")) return rewritten([this] { return rewrite_expire(second_ms); });
  if (is_word(name, "pexpire")) return rewritten([this] { return rewrite_expire(1); });
  if (is_word(name, "setex")) return rewritten([this] { return rewrite_setex(second_ms); });
  if (is_word(name, "psetex")) return rewritten([this] { return rewrite_setex(1); });
  if (is_word(name, "restore")) return rewritten([this] { return rewrite_restore(); });
  return words;
}

bool AbsoluteEnds::make_end(std::string_view amount, std::int64_t unit_ms) {
  const auto number = integer_of(amount);
  if (!number) return false;
  const auto ms = base::checked_mul(*number, unit_ms);
  const auto when = ms ? base::checked_add(*ms, unix_ms_) : std::nullopt;
  if (when) end_ = std::to_string(*when);
  return when.has_value();
}

bool AbsoluteEnds::rewrite_expire(std::int64_t unit_ms) {
  if (!make_end(words_[2], unit_ms)) return false;
  words_[0] = "PEXPIREAT";
  words_[2] = end_;
  return true;
}

bool AbsoluteEnds::rewrite_setex(std::int64_t unit_ms) {
  if (words_.size() != 4 || !make_end(words_[2], unit_ms)) return false;
  const std::string_view value = words_[3];
  words_[0] = "SET";
  words_[2] = value;
  words_[3] = "PXAT";
  words_.push_back(end_);
  return true;
}

bool AbsoluteEnds::rewrite_options(std::size_t from) {
  for (std::size_t i = from; i + 1 < words_.size(); ++i) {
    const bool in_seconds = is_word(words_[i], "ex");
    if (!in_seconds && !is_word(words_[i], "px")) continue;
    if (!make_end(words_[i + 1], in_seconds ? second_ms : 1)) return false;
    words_[i] = "PXAT";
    words_[i + 1] = end_;
    return true;
  }
  return false;
}

bool AbsoluteEnds::rewrite_restore() {
  if (words_.size() < 4 || words_[2] == "0") return false;
  for (std::size_t i = 4; i < words_.size(); ++i) {
    if (is_word(words_[i], "absttl")) return false;
  }
  if (!make_end(words_[2], 1)) return false;
  words_[2] = end_;
  words_.push_back("ABSTTL");
  return true;
}

}  // namespace semel::net
