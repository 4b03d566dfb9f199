// The fields of commands as bytes, written and read by one description: put each field to a
// FieldWriter or a FieldReader in the same order.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "semel/limits.hpp"
#include "semel/types.hpp"

namespace semel::replication {

/// Of a list: as many as an atomic section has keys. Of fields of a hash no more are set at once.
inline constexpr std::size_t items_max = limits::section_keys_max;

/// Of a real number as text.
inline constexpr std::size_t real_bytes_max = 64;

/// Numbers take seven bits a byte, the lowest first; signed ones in zigzag. Remembers whether a
/// FieldReader would refuse one of the values; the others are written all the same.
class FieldWriter {
 public:
  explicit FieldWriter(std::string& to) noexcept : to_(to) {}

  void number(std::uint64_t value) {
    for (; value >= 128; value >>= 7) to_.push_back(static_cast<char>(value | 128));
    to_.push_back(static_cast<char>(value));
  }
  void number(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  /// At most `largest`.
  void small(std::uint8_t value, std::uint8_t largest) {
    if (value > largest) fail();
    to_.push_back(static_cast<char>(value));
  }
  void flag(bool value) { to_.push_back(value ? 1 : 0); }
  void bytes(Bytes value) {
    number(std::uint64_t{value.size()});
    to_.append(value);
  }
  /// Exact: every bit of the value comes back, on machines that have such numbers. Not by printf:
  /// services of one group may have set other locales, and none but its own reads 0x1,8p+0.
  void real(long double value) {
    char text[real_bytes_max];
    char* at = text;
    if (std::signbit(value)) *at++ = '-';
    if (std::isfinite(value)) {
      *at++ = '0';
      *at++ = 'x';
    }
    const long double plain = std::signbit(value) ? -value : value;
    const auto end = std::to_chars(at, text + sizeof text, plain, std::chars_format::hex);
    bytes({text, static_cast<std::size_t>(end.ptr - text)});
  }
  template <class Array>
  void array(const Array& value) {
    to_.append(reinterpret_cast<const char*>(value.data()), value.size());
  }
  /// At most items_max.
  [[nodiscard]] std::size_t count(std::size_t size) {
    if (size > items_max) fail();
    number(std::uint64_t{size});
    return size;
  }
  void fail() noexcept { is_good_ = false; }
  [[nodiscard]] bool is_good() const noexcept { return is_good_; }

 private:
  std::string& to_;
  bool is_good_ = true;
};

/// Remembers the first field that cannot be read; those behind it are left as they are.
class FieldReader {
 public:
  explicit FieldReader(Bytes from) noexcept : from_(from) {}

  void number(std::uint64_t& value) noexcept {
    std::uint64_t found = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const Bytes part = take(1);
      if (part.empty()) return;
      const auto byte = static_cast<unsigned char>(part[0]);
      if (shift == 63 && byte > 1) return fail();
      found |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) {
        value = found;
        return;
      }
    }
    fail();
  }
  void number(std::int64_t& value) noexcept {
    std::uint64_t found = 0;
    number(found);
    if (is_good_) value = static_cast<std::int64_t>((found >> 1) ^ (0 - (found & 1)));
  }
  /// At most `largest`.
  void small(std::uint8_t& value, std::uint8_t largest) noexcept {
    const Bytes part = take(1);
    if (part.empty()) return;
    const auto found = static_cast<std::uint8_t>(part[0]);
    if (found > largest) return fail();
    value = found;
  }
  void flag(bool& value) noexcept {
    std::uint8_t found = value ? 1 : 0;
    small(found, 1);
    value = found != 0;
  }
  void bytes(Bytes& value) noexcept {
    std::uint64_t size = 0;
    number(size);
    if (!is_good_) return;
    value = take(size);
  }
  void real(long double& value) {
    Bytes text;
    bytes(text);
    if (!is_good_ || text.size() >= real_bytes_max) return fail();
    // libstdc++ 12 reads on behind the end, up to a zero.
    char ended[real_bytes_max] = {};
    std::copy(text.begin(), text.end(), ended);
    text = {ended, text.size()};
    const bool is_negative = text.starts_with('-');
    if (is_negative) text.remove_prefix(1);
    if (text.starts_with("0x")) text.remove_prefix(2);
    long double found = 0;
    const char* const last = text.data() + text.size();
    const auto end = std::from_chars(text.data(), last, found, std::chars_format::hex);
    // The writer writes neither a second sign nor a number that is out of range here.
    if (end.ec != std::errc{} || end.ptr != last || text.starts_with('-')) return fail();
    value = is_negative ? -found : found;
  }
  template <class Array>
  void array(Array& value) noexcept {
    const Bytes part = take(value.size());
    if (part.size() == value.size()) std::copy(part.begin(), part.end(), value.begin());
  }
  /// Of items that have a byte each at least: more than there are bytes, or than items_max, is
  /// damage, not a reason to take memory.
  [[nodiscard]] std::size_t count(std::size_t) noexcept {
    std::uint64_t size = 0;
    number(size);
    if (size > from_.size() || size > items_max) fail();
    return is_good_ ? size : 0;
  }
  void fail() noexcept { is_good_ = false; }
  [[nodiscard]] bool is_good() const noexcept { return is_good_; }
  [[nodiscard]] Bytes rest() const noexcept { return from_; }

 private:
  [[nodiscard]] Bytes take(std::uint64_t count) noexcept {
    if (!is_good_ || count > from_.size()) {
      fail();
      return {};
    }
    const Bytes part = from_.substr(0, count);
    from_.remove_prefix(count);
    return part;
  }

  Bytes from_;
  bool is_good_ = true;
};

// --- shared by both directions: Fields is a FieldWriter or a FieldReader ------------------------

template <class Fields, class Choice>
void choice(Fields& fields, Choice& value, Choice last) {
  auto number = static_cast<std::uint8_t>(value);
  fields.small(number, static_cast<std::uint8_t>(last));
  value = static_cast<Choice>(number);
}

template <class Fields, class Span>
void millis(Fields& fields, Span& value) {
  std::int64_t number = value.count();
  fields.number(number);
  value = Millis{number};
}

/// `put(fields, value)` writes or reads the value if there is one.
template <class Fields, class Value, class Put>
void perhaps(Fields& fields, std::optional<Value>& value, Put&& put) {
  bool is_there = value.has_value();
  fields.flag(is_there);
  if (!is_there) return value.reset();
  if (!value) value.emplace();
  put(fields, *value);
}

template <class Fields, class Item, class Put>
void list(Fields& fields, std::vector<Item>& items, Put&& put) {
  const std::size_t count = fields.count(items.size());
  if constexpr (std::is_same_v<Fields, FieldReader>) {
    // Once for a usual list; of a long one the count may be damage.
    constexpr std::size_t usual = 16;
    items.reserve(std::min(count, usual));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Fields, FieldReader>) {
      if (!fields.is_good()) return;
      items.emplace_back();
    }
    put(fields, items[i]);
  }
}

}  // namespace semel::replication
