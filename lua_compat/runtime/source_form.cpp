#include "lua_compat/runtime/source_form.hpp"

#include <algorithm>
#include <array>

#include "base/ascii.hpp"
#include "base/assert.hpp"

namespace semel::lua {
namespace {

constexpr bool is_name(char c) noexcept {
  // As in LuaJIT, each byte that is not ASCII is part of a name.
  return base::is_digit(c) || base::is_letter(c) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
constexpr bool is_line_end(char c) noexcept {
  return c == '\n' || c == '\r';
}

constexpr std::array<std::string_view, 9> libraries{
    "redis", "server", "cjson", "string", "table", "math", "struct", "cmsgpack", "bit"};
constexpr std::array<std::string_view, 2> functions{"error", "tonumber"};
// Library functions that may return another number of results than one.
constexpr std::array<std::string_view, 17> many_results{
    "find",    "match",    "gmatch", "gfind",      "gsub",         "byte",
    "modf",    "frexp",    "unpack", "unpack_one", "unpack_limit", "remove",
    "foreach", "foreachi", "insert", "sort",       "log"};

template <std::size_t size>
bool has(const std::array<std::string_view, size>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string_view SourceForm::of(std::string_view source, Main main) {
  reset(source, main);
  const char first = at(0);
  if (first == '\x1b' || first == '#' || first == '\xef') edits_.push_back({0, ' '});
  while (malformed_.what == nullptr && step()) {
  }
  end_return(0);
  for (const Return& back : nested_) {
    if (renames_library_) break;
    edits_.push_back({back.begin, '('});
    edits_.push_back({back.call_end, ')'});
  }
  return edits_.empty() ? source_ : edited();
}

void SourceForm::reset(std::string_view source, Main main) {
  source_ = source;
  main_ = main;
  here_ = 0;
  line_ = 1;
  token_end_ = 0;
  brackets_ = 0;
  functions_ = 0;
  cost_.reset();
  registering_ = Registering::no;
  registering_table_ = 0;
  after_local_ = false;
  renames_library_ = false;
  malformed_ = {};
  blocks_.clear();
  returns_.clear();
  nested_.clear();
  edits_.clear();
}

bool SourceForm::step() {
  if (here_ >= source_.size()) return false;
  const char c = at(here_);
  std::size_t level = 0;
  if (is_line_end(c)) {
    const char other = c == '\n' ? '\r' : '\n';
    here_ += at(here_ + 1) == other ? 2 : 1;
    ++line_;
  } else if (c == ' ' || c == '\t' || c == '\v' || c == '\f') {
    ++here_;
  } else if (c == '-' && at(here_ + 1) == '-') {
    here_ += 2;
    if (long_bracket(level)) return skip_long(level);
    skip_line();
  } else if (c == '[' && long_bracket(level)) {
    const std::size_t begin = here_;
    if (!skip_long(level)) return false;
    token("\"", begin);
  } else if (c == '"' || c == '\'') {
    return skip_text(c);
  } else if (base::is_digit(c) || (c == '.' && base::is_digit(at(here_ + 1)))) {
    skip_number();
  } else if (is_name(c)) {
    skip_name();
  } else {
    skip_mark();
  }
  return true;
}

void SourceForm::skip_line() {
  while (here_ < source_.size() && !is_line_end(at(here_))) ++here_;
}

bool SourceForm::long_bracket(std::size_t& level) const {
  if (at(here_) != '[') return false;
  std::size_t end = here_ + 1;
  while (at(end) == '=') ++end;
  level = end - here_ - 1;
  return at(end) == '[';
}

bool SourceForm::skip_long(std::size_t level) {
  here_ += level + 2;
  while (here_ < source_.size()) {
    const char c = at(here_);
    if (c == ']') {
      std::size_t end = here_ + 1;
      while (at(end) == '=') ++end;
      if (end - here_ - 1 == level && at(end) == ']') {
        here_ = end + 1;
        return true;
      }
      here_ = end;
      continue;
    }
    if (is_line_end(c)) {
      const char other = c == '\n' ? '\r' : '\n';
      if (at(here_ + 1) == other) ++here_;
      ++line_;
    }
    ++here_;
  }
  return false;
}

bool SourceForm::skip_text(char quote) {
  const std::size_t begin = here_++;
  while (here_ < source_.size()) {
    const char c = at(here_);
    if (c == quote) {
      ++here_;
      token("\"", begin);
      return true;
    }
    if (is_line_end(c)) return false;
    if (c != '\\') {
      ++here_;
      continue;
    }
    const char escaped = at(here_ + 1);
    if (is_line_end(escaped)) {
      const char other = escaped == '\n' ? '\r' : '\n';
      here_ += at(here_ + 2) == other ? 3 : 2;
      ++line_;
      continue;
    }
    constexpr std::string_view known = "abfnrtv\\\"'";
    if (here_ + 1 < source_.size() && !base::is_digit(escaped) &&
        known.find(escaped) == std::string_view::npos)
      edits_.push_back({here_, '\0'});
    here_ += 2;
  }
  return false;
}

void SourceForm::skip_number() {
  const std::size_t begin = here_;
  while (base::is_digit(at(here_)) || at(here_) == '.') ++here_;
  if (at(here_) == 'e' || at(here_) == 'E') {
    ++here_;
    if (at(here_) == '+' || at(here_) == '-') ++here_;
  }
  while (is_name(at(here_))) ++here_;
  const std::string_view number = source_.substr(begin, here_ - begin);
  constexpr std::string_view foreign = "iIlL";
  const bool binary = number.size() > 1 && number[0] == '0' && (number[1] | 0x20) == 'b';
  if (binary || foreign.find(number.back()) != std::string_view::npos)
    malformed_ = {"malformed number", number, line_};
  const bool hexadecimal = number.size() > 1 && number[0] == '0' && (number[1] | 0x20) == 'x';
  if (hexadecimal && at(here_) == '.') edits_.push_back({here_, ' '});
  cost_.number(number);
  check_cost(number);
  token("0", begin);
}

void SourceForm::skip_name() {
  const std::size_t begin = here_;
  while (is_name(at(here_))) ++here_;
  word(source_.substr(begin, here_ - begin), begin);
}

void SourceForm::skip_mark() {
  const std::size_t begin = here_++;
  cost_.mark(source_[begin]);
  check_cost(source_.substr(begin, 1));
  token(source_.substr(begin, 1), begin);
}

void SourceForm::check_cost(std::string_view near) {
  if (cost_.exceeded() == nullptr || malformed_.what != nullptr) return;
  malformed_ = {cost_.exceeded(), near, line_};
}

void SourceForm::word(std::string_view name, std::size_t begin) {
  cost_.word(name);
  check_cost(name);
  const bool was_local = after_local_;
  after_local_ = name == "local";
  if (was_local && (has(libraries, name) || has(functions, name))) renames_library_ = true;
  if (name == "end" || name == "until") {
    close_block();
    token_end_ = here_;
    return;
  }
  if (name == "else" || name == "elseif") end_return(blocks_.size());
  const Registering before = registering_;
  token(name, begin);
  if (name == "function") {
    const bool is_callback = before == Registering::comma || before == Registering::key;
    blocks_.push_back({.is_function = true, .is_in_callback = is_callback});
    ++functions_;
  } else if (name == "do" || name == "if" || name == "repeat") {
    blocks_.push_back({.is_function = false, .is_in_callback = is_in_callback()});
  } else if (name == "return") {
    returns_.push_back({.begin = here_, .blocks = blocks_.size(), .brackets = brackets_});
  }
}

void SourceForm::close_block() {
  end_return(blocks_.size());
  if (blocks_.empty()) return;
  SEMEL_ASSERT(!blocks_.back().is_function || functions_ > 0);
  if (blocks_.back().is_function) --functions_;
  blocks_.pop_back();
}

/// redis.register_function('name', function .., or with { .. callback = function ..
void SourceForm::follow_registering(std::string_view text) {
  const Registering before = registering_;
  registering_ = Registering::no;
  if (text == "redis" || text == "server") {
    registering_ = Registering::library;
  } else if (text == "." && before == Registering::library) {
    registering_ = Registering::dot;
  } else if (text == "register_function" && before == Registering::dot) {
    registering_ = Registering::name;
  } else if (text == "(" && before == Registering::name) {
    registering_ = Registering::call;
  } else if (text == "\"" && before == Registering::call) {
    registering_ = Registering::text;
  } else if (text == "," && before == Registering::text) {
    registering_ = Registering::comma;
  } else if (text == "{" && (before == Registering::name || before == Registering::call)) {
    registering_table_ = brackets_ + 1;
  } else if (text == "callback" && registering_table_ != 0 && registering_table_ == brackets_) {
    registering_ = Registering::table;
  } else if (text == "=" && before == Registering::table) {
    registering_ = Registering::key;
  } else if (text == "}" && brackets_ + 1 == registering_table_) {
    registering_table_ = 0;
  }
}

bool SourceForm::is_in_callback() const {
  return !blocks_.empty() && blocks_.back().is_in_callback;
}

void SourceForm::token(std::string_view text, std::size_t begin) {
  const bool opens = text == "(" || text == "{" || text == "[";
  const bool closes = text == ")" || text == "}" || text == "]";
  if (text == ";") end_return(blocks_.size());
  if (closes && brackets_ > 0) --brackets_;
  follow_registering(text);
  if (!returns_.empty() && returns_.back().blocks == blocks_.size()) {
    Return& back = returns_.back();
    if (back.is_empty) {
      back.is_empty = false;
      back.begin = begin;
    }
    if (back.brackets == brackets_) {
      if (text == ",") back.has_comma = true;
      // name ( .. )  or  name . name ( .. ), and nothing behind it.
      const bool named = is_name(text.front()) && !base::is_digit(text.front());
      if (back.words == 0 && named) {
        back.root = text;
      } else if (back.words == 1 && text == ".") {
      } else if (back.words == 2 && named) {
        back.name = text;
      } else if ((back.words == 1 || back.words == 3) && text == "(") {
        back.is_call = true;
        back.words = 3;
      } else if (back.words == 4 && text == ")") {
        back.call_end = here_;
      } else {
        back.is_call = false;
        back.words = 9;
      }
      ++back.words;
    }
  }
  if (opens) ++brackets_;
  token_end_ = here_;
}

bool SourceForm::has_one_result(const Return& back) const {
  if (!back.is_call || back.words != 5 || back.call_end != token_end_) return false;
  if (back.name.empty()) return has(functions, back.root);
  return has(libraries, back.root) && !has(many_results, back.name);
}

void SourceForm::end_return(std::size_t blocks) {
  // The compiler reports brackets that were opened inside and never closed.
  while (!returns_.empty() && returns_.back().blocks >= blocks) {
    Return& back = returns_.back();
    if (main_ != Main::as_it_is && back.blocks == blocks && !back.is_empty && !back.has_comma) {
      if (main_ == Main::first_result && functions_ == 0) {
        edits_.push_back({back.begin, '('});
        edits_.push_back({token_end_, ')'});
      } else if (is_in_callback()) {
        nested_.push_back(back);
        nested_.back().call_end = token_end_;
      } else if (has_one_result(back)) {
        nested_.push_back(back);
      }
    }
    returns_.pop_back();
  }
}

std::string_view SourceForm::edited() {
  std::stable_sort(edits_.begin(), edits_.end(),
                   [](const Edit& one, const Edit& other) { return one.at < other.at; });
  out_.clear();
  std::size_t copied = 0;
  for (const Edit& edit : edits_) {
    SEMEL_ASSERT(copied <= edit.at && edit.at <= source_.size());
    out_ += source_.substr(copied, edit.at - copied);
    copied = edit.at;
    if (edit.insert == '\0')
      ++copied;
    else
      out_ += edit.insert;
  }
  out_ += source_.substr(copied);
  return out_;
}

}  // namespace semel::lua
