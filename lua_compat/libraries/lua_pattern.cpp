#include "lua_compat/libraries/lua_pattern.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/assert.hpp"
#include "lua_compat/runtime/budget.hpp"

namespace semel::lua {
namespace {

using Kind = PatternItem::Kind;
using Repeat = PatternItem::Repeat;

constexpr std::uint8_t byte_of(char c) noexcept {
  return static_cast<std::uint8_t>(c);
}
constexpr bool has(const ByteSet& set, std::uint8_t byte) noexcept {
  return (set[byte >> 6] >> (byte & 63) & 1) != 0;
}
constexpr void add(ByteSet& set, std::uint8_t byte) noexcept {
  set[byte >> 6] |= std::uint64_t{1} << (byte & 63);
}
constexpr ByteSet others(ByteSet set) noexcept {
  for (std::uint64_t& word : set) word = ~word;
  return set;
}

/// The classes of the C locale.
constexpr bool is_class(char letter, int c) noexcept {
  const bool lower = c >= 'a' && c <= 'z';
  const bool upper = c >= 'A' && c <= 'Z';
  const bool digit = c >= '0' && c <= '9';
  const bool printed = c > ' ' && c < 127;
  switch (letter) {
    case 'a':
      return lower || upper;
    case 'c':
      return c < ' ' || c == 127;
    case 'd':
      return digit;
    case 'l':
      return lower;
    case 'p':
      return printed && !lower && !upper && !digit;
    case 's':
      return c == ' ' || (c >= '\t' && c <= '\r');
    case 'u':
      return upper;
    case 'w':
      return lower || upper || digit;
    case 'x':
      return digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    default:
      return c == 0;  // z
  }
}

constexpr std::string_view class_letters = "acdlpsuwxz";
using Classes = std::array<ByteSet, class_letters.size()>;

constexpr Classes classes_of(bool complement) noexcept {
  Classes classes{};
  for (std::size_t i = 0; i < classes.size(); ++i) {
    for (int c = 0; c < 128; ++c) {
      if (is_class(class_letters[i], c)) add(classes[i], static_cast<std::uint8_t>(c));
    }
    if (complement) classes[i] = others(classes[i]);
  }
  return classes;
}
constexpr Classes classes = classes_of(false);
constexpr Classes complements = classes_of(true);

/// The character class behind a %, or null if the letter stands for itself.
const ByteSet* class_of(char letter) noexcept {
  const bool is_large = letter >= 'A' && letter <= 'Z';
  const char small = is_large ? static_cast<char>(letter - 'A' + 'a') : letter;
  const std::size_t place = class_letters.find(small);
  if (place == std::string_view::npos) return nullptr;
  return is_large ? &complements[place] : &classes[place];
}

constexpr const char* ends_with_escape = "malformed pattern (ends with '%')";
constexpr const char* missing_bracket = "malformed pattern (missing ']')";

/// Parses a pattern into items.
class Reader {
 public:
  Reader(std::string_view pattern, PatternItem* items, ByteSet* sets) noexcept
      : pattern_(pattern), items_(items), sets_(sets) {}

  void read() noexcept {
    while (at_ < pattern_.size()) {
      PatternItem& item = *new (items_ + count_) PatternItem{};
      item.previous = repeated_;
      ++count_;
      read_item(item);
      if (item.kind == Kind::error) return;
    }
    new (items_ + count_) PatternItem{};
    items_[count_].previous = repeated_;
  }

  int level = 0;
  std::uint32_t open = 0;
  std::uint32_t positions = 0;

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const noexcept {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  static void fail(PatternItem& item, const char* error) noexcept {
    item.kind = Kind::error;
    item.error = error;
  }

  void read_item(PatternItem& item) noexcept {
    switch (peek()) {
      case '(':
        return begin_capture(item);
      case ')':
        return end_capture(item);
      case '$':
        if (at_ + 1 != pattern_.size()) break;
        item.kind = Kind::end_of_subject;
        ++at_;
        return;
      case '%': {
        const char next = peek(1);
        if (next == 'b') return read_balance(item);
        if (next == 'f') return read_frontier(item);
        if (next >= '0' && next <= '9') return read_reference(item, next);
        break;
      }
      default:
        break;
    }
    read_single(item);
    if (item.kind != Kind::error) read_repeat(item);
  }

  void begin_capture(PatternItem& item) noexcept {
    if (level >= Matcher::captures_max) return fail(item, "too many captures");
    const std::uint32_t bit = std::uint32_t{1} << level;
    item.first = static_cast<std::uint8_t>(level++);
    if (peek(1) == ')') {
      item.kind = Kind::capture_position;
      positions |= bit;
      at_ += 2;
      return;
    }
    item.kind = Kind::capture_begin;
    open |= bit;
    ++at_;
  }
  void end_capture(PatternItem& item) noexcept {
    if (open == 0) return fail(item, "invalid pattern capture");
    int last = level - 1;
    while ((open >> last & 1) == 0) --last;
    open &= ~(std::uint32_t{1} << last);
    item.kind = Kind::capture_end;
    item.first = static_cast<std::uint8_t>(last);
    ++at_;
  }
  void read_reference(PatternItem& item, char digit) noexcept {
    const int index = digit - '1';
    if (index < 0 || index >= level || (open >> index & 1) != 0) {
      return fail(item, "invalid capture index");
    }
    item.kind = Kind::back_reference;
    item.first = static_cast<std::uint8_t>(index);
    at_ += 2;
  }
  void read_balance(PatternItem& item) noexcept {
    at_ += 2;
    if (at_ + 2 > pattern_.size()) return fail(item, "unbalanced pattern");
    item.kind = Kind::balance;
    item.first = byte_of(peek());
    item.second = byte_of(peek(1));
    at_ += 2;
  }
  void read_frontier(PatternItem& item) noexcept {
    at_ += 2;
    if (peek() != '[') return fail(item, "missing '[' after '%f' in pattern");
    read_set(item);
    if (item.kind == Kind::set) item.kind = Kind::frontier;
  }

  void read_single(PatternItem& item) noexcept {
    const char c = peek();
    if (c == '[') return read_set(item);
    ++at_;
    if (c == '.') {
      item.kind = Kind::any;
      return;
    }
    item.kind = Kind::byte;
    item.first = byte_of(c);
    if (c != '%') return;
    if (at_ == pattern_.size()) return fail(item, ends_with_escape);
    const char letter = pattern_[at_++];
    item.first = byte_of(letter);
    if (const ByteSet* const set = class_of(letter); set != nullptr) {
      item.kind = Kind::set;
      item.set = set;
    }
  }

  void read_repeat(PatternItem& item) noexcept {
    switch (peek()) {
      case '*':
        item.repeat = Repeat::greedy;
        break;
      case '+':
        item.repeat = Repeat::greedy;
        item.needed = true;
        break;
      case '?':
        item.repeat = Repeat::greedy;
        item.single = true;
        break;
      case '-':
        item.repeat = Repeat::lazy;
        break;
      default:
        return;
    }
    ++at_;
    repeated_ = static_cast<std::uint32_t>(count_);
  }

  /// [set]: a ] in front stands for itself.
  void read_set(PatternItem& item) noexcept {
    ++at_;
    const bool complement = peek() == '^';
    if (complement) ++at_;
    std::size_t close = at_;
    do {
      if (close >= pattern_.size()) return fail(item, missing_bracket);
      close += pattern_[close] == '%' && close + 1 < pattern_.size() ? 2 : 1;
    } while (close >= pattern_.size() || pattern_[close] != ']');
    ByteSet& set = *new (sets_++) ByteSet{};
    while (at_ < close) {
      const char c = pattern_[at_++];
      if (c == '%') {
        const char letter = pattern_[at_++];
        if (const ByteSet* const named = class_of(letter); named != nullptr) {
          for (std::size_t i = 0; i < set.size(); ++i) set[i] |= (*named)[i];
        } else {
          add(set, byte_of(letter));
        }
      } else if (pattern_[at_] == '-' && at_ + 1 < close) {
        for (int b = byte_of(c); b <= byte_of(pattern_[at_ + 1]); ++b) {
          add(set, static_cast<std::uint8_t>(b));
        }
        at_ += 2;
      } else {
        add(set, byte_of(c));
      }
    }
    at_ = close + 1;
    if (complement) set = others(set);
    item.kind = Kind::set;
    item.set = &set;
  }

  std::string_view pattern_;
  PatternItem* items_;
  ByteSet* sets_;
  std::size_t at_ = 0;
  std::size_t count_ = 0;
  std::uint32_t repeated_ = 0;
};

/// 5.1 reads a pattern as a C string.
std::string_view up_to_zero(std::string_view pattern) noexcept {
  return pattern.substr(0, pattern.find('\0'));
}

}  // namespace

std::size_t Matcher::memory_bytes(std::string_view pattern) noexcept {
  const std::string_view text = up_to_zero(pattern);
  const auto sets = static_cast<std::size_t>(std::count(text.begin(), text.end(), '['));
  return (text.size() + 1) * sizeof(PatternItem) + sets * sizeof(ByteSet);
}

void Matcher::prepare(lua_State* state, std::string_view subject, std::string_view pattern,
                      void* memory) {
  const std::string_view text = up_to_zero(pattern);
  SEMEL_ASSERT(memory != nullptr &&
               reinterpret_cast<std::uintptr_t>(memory) % alignof(PatternItem) == 0);
  state_ = state;
  begin_ = subject.data();
  end_ = subject.data() + subject.size();
  items_ = static_cast<PatternItem*>(memory);
  steps_ = 0;
  Reader reader{text, items_, reinterpret_cast<ByteSet*>(items_ + text.size() + 1)};
  reader.read();
  level_ = reader.level;
  open_ = reader.open;
  positions_ = reader.positions;
  SEMEL_ASSERT(level_ <= captures_max);
  count(text.size());
}

void Matcher::pay() {
  const std::uint64_t steps = steps_;
  steps_ = 0;
  charge(state_, steps);
}

bool Matcher::is_in(const PatternItem& item, const char* at) const noexcept {
  if (at == end_) return false;
  switch (item.kind) {
    case Kind::byte:
      return byte_of(*at) == item.first;
    case Kind::any:
      return true;
    default:
      return has(*item.set, byte_of(*at));
  }
}

std::size_t Matcher::run(const PatternItem& item, const char* at) const noexcept {
  const auto left = static_cast<std::size_t>(end_ - at);
  if (item.single) return is_in(item, at) ? 1 : 0;
  if (item.kind == Kind::any) return left;
  std::size_t count = 0;
  if (item.kind == Kind::byte) {
    while (count < left && byte_of(at[count]) == item.first) ++count;
  } else {
    while (count < left && has(*item.set, byte_of(at[count]))) ++count;
  }
  return count;
}

bool Matcher::advance(PatternItem& item, const char*& at) {
  if (item.kind > Kind::set || item.kind < Kind::byte) return advance_special(item, at);
  if (item.repeat == Repeat::lazy) {
    item.at = at;
    return true;
  }
  if (item.repeat == Repeat::once || item.needed) {
    if (!is_in(item, at)) return false;
    ++at;
    if (item.repeat == Repeat::once) return true;
  }
  item.at = at;
  item.count = run(item, at);
  at += item.count;
  count(item.kind == Kind::any ? 1 : item.count);
  return true;
}

bool Matcher::advance_special(const PatternItem& item, const char*& at) {
  switch (item.kind) {
    case Kind::end_of_subject:
      return at == end_;
    case Kind::capture_begin:
    case Kind::capture_position:
      captures_[item.first] = {at, at};
      return true;
    case Kind::capture_end:
      captures_[item.first].end = at;
      return true;
    case Kind::back_reference: {
      const Capture& capture = captures_[item.first];
      // A position capture has no bytes to compare: in 5.1 it never matches.
      if ((positions_ >> item.first & 1) != 0) return false;
      const auto size = static_cast<std::size_t>(capture.end - capture.begin);
      if (size > static_cast<std::size_t>(end_ - at)) return false;
      count(size / 16);
      if (size != 0 && std::memcmp(capture.begin, at, size) != 0) return false;
      at += size;
      return true;
    }
    case Kind::balance: {
      if (at == end_ || byte_of(*at) != item.first) return false;
      std::size_t depth = 1;
      const char* here = at + 1;
      for (; here < end_; ++here) {
        if (byte_of(*here) == item.second) {
          if (--depth == 0) break;
        } else if (byte_of(*here) == item.first) {
          ++depth;
        }
      }
      count(static_cast<std::uint64_t>(here - at));
      if (here >= end_) return false;
      at = here + 1;
      return true;
    }
    case Kind::frontier: {
      const std::uint8_t before = at == begin_ ? 0 : byte_of(at[-1]);
      const std::uint8_t here = at == end_ ? 0 : byte_of(*at);
      return !has(*item.set, before) && has(*item.set, here);
    }
    default:
      luaL_error(state_, "%s", item.error);
      return false;
  }
}

bool Matcher::retry(std::size_t& index, const char*& at) {
  for (std::uint32_t number = items_[index].previous; number != 0;) {
    PatternItem& item = items_[number - 1];
    count(1);
    if (item.repeat == Repeat::greedy) {
      if (item.count > 0) {
        --item.count;
        at = item.at + item.count;
        index = number;
        return true;
      }
    } else if (is_in(item, item.at)) {
      at = ++item.at;
      index = number;
      return true;
    }
    number = item.previous;
  }
  return false;
}

const char* Matcher::match(const char* from) {
  SEMEL_ASSERT(begin_ <= from && from <= end_);
  std::size_t index = 0;
  const char* at = from;
  while (items_[index].kind != Kind::end) {
    count(1);
    if (advance(items_[index], at)) {
      ++index;
    } else if (!retry(index, at)) {
      return nullptr;
    }
  }
  SEMEL_ASSERT(from <= at && at <= end_);
  return at;
}

const char* Matcher::search(const char*& from) {
  const bool begins_with_byte =
      items_[0].kind == Kind::byte && (items_[0].repeat == Repeat::once || items_[0].needed);
  for (;; ++from) {
    if (begins_with_byte) {
      if (from == end_) return nullptr;
      const void* const next =
          std::memchr(from, items_[0].first, static_cast<std::size_t>(end_ - from));
      const char* const found = next == nullptr ? end_ : static_cast<const char*>(next);
      count(static_cast<std::uint64_t>(found - from) / 16);
      if (next == nullptr) return nullptr;
      from = found;
    }
    if (const char* const to = match(from); to != nullptr) return to;
    if (from == end_) return nullptr;
  }
}

void Matcher::push_captures(const char* from, const char* to) const {
  luaL_checkstack(state_, values(), "too many captures");
  for (int i = 0; i < values(); ++i) push_capture(i, from, to);
}

void Matcher::push_capture(int index, const char* from, const char* to) const {
  if (index >= level_) {
    if (index != 0) luaL_error(state_, "invalid capture index");
    lua_pushlstring(state_, from, static_cast<std::size_t>(to - from));
    return;
  }
  const Capture& capture = captures_[index];
  const std::uint32_t bit = std::uint32_t{1} << index;
  if ((open_ & bit) != 0) luaL_error(state_, "unfinished capture");
  if ((positions_ & bit) != 0) {
    lua_pushinteger(state_, capture.begin - begin_ + 1);
    return;
  }
  lua_pushlstring(state_, capture.begin, static_cast<std::size_t>(capture.end - capture.begin));
}

}  // namespace semel::lua
