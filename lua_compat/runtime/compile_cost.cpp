#include "lua_compat/runtime/compile_cost.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.hpp"

namespace semel::lua {
namespace {

constexpr std::array<std::string_view, 21> keywords{
    "and", "break", "do", "else",   "elseif", "end",  "false", "for",   "function", "if",   "in",
    "nil", "not",   "or", "repeat", "return", "then", "true",  "local", "until",    "while"};

// A function has at most 60 upvalues, and a name is compared with them as well.
constexpr std::size_t upvalues_max = 60;

/// Of "12.5e-3": the digits and the exponent, without its sign. A hexadecimal number is cheap.
std::size_t digits_of(std::string_view text) noexcept {
  if (text.size() > 1 && text[0] == '0' && (text[1] | 0x20) == 'x') return 0;
  std::size_t digits = 0;
  std::size_t at = 0;
  for (; at < text.size() && (text[at] | 0x20) != 'e'; ++at) {
    if (base::is_digit(text[at])) ++digits;
  }
  std::size_t exponent = 0;
  for (; at < text.size(); ++at) {
    if (!base::is_digit(text[at])) continue;
    exponent = std::min<std::size_t>(exponent * 10 + static_cast<std::size_t>(text[at] - '0'), 999);
  }
  return digits + exponent;
}

}  // namespace

void CompileCost::reset() {
  std::vector<Block> blocks = std::move(blocks_);
  blocks.clear();
  *this = CompileCost{};
  blocks_ = std::move(blocks);
}

void CompileCost::word(std::string_view name) {
  after_colon_ = false;
  if (std::find(keywords.begin(), keywords.end(), name) != keywords.end()) return keyword(name);
  if (name == "goto") ++gotos_;
  switch (declares_) {
    case Declares::names:
    case Declares::parameters:
      declare();
      if (declares_ == Declares::names) declares_ = Declares::comma;
      break;
    case Declares::comma:
      declares_ = Declares::no;
      break;
    case Declares::function_name:
    case Declares::no:
      break;
  }
  lookups_ += locals_ + upvalues_max * functions_;
  check();
}

void CompileCost::keyword(std::string_view name) {
  const bool is_local = declares_ == Declares::names && !is_for_;
  if (declares_ != Declares::parameters) declares_ = Declares::no;
  if (name == "and" || name == "or" || name == "elseif" || name == "break") ++branches_;
  if (name == "local" || name == "for") {
    declares_ = Declares::names;
    is_for_ = name == "for";
    if (is_for_) loop_locals_ = 3;  // what the loop keeps for itself
  } else if (name == "function") {
    if (is_local) ++locals_;
    begin(true);
    declares_ = Declares::function_name;
  } else if (name == "do" || name == "if" || name == "repeat") {
    begin(false);
    if (name == "do") locals_ += std::exchange(loop_locals_, 0);
  } else if (name == "end" || name == "until") {
    end();
  } else if ((name == "else" || name == "elseif") && !blocks_.empty()) {
    locals_ = blocks_.back().locals;
  }
  check();
}

void CompileCost::mark(char c) {
  const bool is_pair = c == ':' && after_colon_;
  after_colon_ = c == ':' && !is_pair;
  if (is_pair) ++colons_;
  switch (declares_) {
    case Declares::function_name:
      if (c == '(') declares_ = Declares::parameters;
      break;
    case Declares::parameters:
      if (c == ')') declares_ = Declares::no;
      break;
    case Declares::comma:
      declares_ = c == ',' ? Declares::names : Declares::no;
      break;
    case Declares::names:
    case Declares::no:
      declares_ = Declares::no;
      break;
  }
  check();
}

void CompileCost::number(std::string_view text) {
  after_colon_ = false;
  declares_ = Declares::no;
  if (digits_of(text) > digits_many) ++numbers_;
  check();
}

void CompileCost::begin(bool is_function) {
  blocks_.push_back({.locals = locals_, .is_function = is_function});
  if (is_function) ++functions_;
}

void CompileCost::end() {
  if (blocks_.empty()) return;
  locals_ = blocks_.back().locals;
  if (blocks_.back().is_function) --functions_;
  blocks_.pop_back();
}

void CompileCost::declare() {
  (is_for_ && declares_ == Declares::names ? loop_locals_ : locals_) += 1;
}

void CompileCost::check() {
  if (exceeded_ != nullptr) return;
  static_assert(branches_max == 10'000 && jumps_max == 1'000 && lookups_max == 200'000'000 &&
                numbers_max == 1'000 && digits_many == 50);  // as the texts say
  if (branches_ > branches_max) {
    exceeded_ = "more than 10000 of elseif, and, or, break";
  } else if (gotos_ + colons_ / 2 > jumps_max) {
    exceeded_ = "more than 1000 of goto and labels";
  } else if (numbers_ > numbers_max) {
    exceeded_ = "more than 1000 numbers of more than 50 digits";
  } else if (lookups_ > lookups_max) {
    exceeded_ = "more than 200000000 comparisons of names with locals around them";
  }
}

}  // namespace semel::lua
