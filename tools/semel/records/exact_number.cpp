#include "tools/semel/records/exact_number.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cstring>

namespace semel::tool {
namespace {

namespace json = boost::json;

constexpr std::int64_t exponent_max = 999'999'999'999'999'999;
constexpr std::size_t digits_max = 20;  // of an integer of 64 bits

/// Keeps the texts of doubles; everything else goes by.
struct LongNumbers {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  using View = json::string_view;
  using Error = json::error_code;
  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error&) { return true; }
  bool on_object_end(std::size_t, Error&) { return true; }
  bool on_array_begin(Error&) { return true; }
  bool on_array_end(std::size_t, Error&) { return true; }
  bool on_key_part(View, std::size_t, Error&) { return true; }
  bool on_key(View, std::size_t, Error&) { return true; }
  bool on_string_part(View, std::size_t, Error&) { return true; }
  bool on_string(View, std::size_t, Error&) { return true; }
  bool on_number_part(View part, Error&) {
    begun.append(part.data(), part.size());
    return true;
  }
  bool on_int64(std::int64_t, View, Error&) { return forget(); }
  bool on_uint64(std::uint64_t, View, Error&) { return forget(); }
  bool on_double(double, View rest, Error&) {
    texts.push_back(begun.append(rest.data(), rest.size()));
    return forget();
  }
  bool on_bool(bool, Error&) { return true; }
  bool on_null(Error&) { return true; }
  bool on_comment_part(View, Error&) { return true; }
  bool on_comment(View, Error&) { return true; }

  bool forget() {
    begun.clear();
    return true;
  }
  std::string begun{};
  std::vector<std::string> texts{};
};

/// digits * 10^exponent, with no zero at either end of the digits; "" is 0.
struct Decimal {
  bool is_negative = false;
  std::string digits{};
  std::int64_t exponent = 0;
};

bool read_decimal(Bytes text, Decimal& number) {
  number.is_negative = text.starts_with('-');
  if (number.is_negative) text.remove_prefix(1);
  const std::size_t mark = text.find_first_of("eE");
  if (mark != Bytes::npos) {
    Bytes exponent = text.substr(mark + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    const char* const end = exponent.data() + exponent.size();
    const auto read = std::from_chars(exponent.data(), end, number.exponent);
    const bool is_far = number.exponent > exponent_max || number.exponent < -exponent_max;
    if (read.ec != std::errc{} || read.ptr != end || is_far) return false;
    text = text.substr(0, mark);
  }
  const std::size_t point = text.find('.');
  number.digits = text.substr(0, point);
  if (point != Bytes::npos) {
    number.digits.append(text.substr(point + 1));
    number.exponent -= static_cast<std::int64_t>(text.size() - point - 1);
  }
  while (number.digits.ends_with('0')) {
    number.digits.pop_back();
    ++number.exponent;
  }
  number.digits.erase(0, number.digits.find_first_not_of('0'));
  if (number.digits.empty()) number = {};
  return true;
}

template <class Number>
void append_tagged(char tag, Number number, KeyBuffer& key) {
  char bytes[1 + sizeof number];
  bytes[0] = tag;
  std::memcpy(bytes + 1, &number, sizeof number);
  key.append({bytes, sizeof bytes});
}

template <class Number>
bool append_if_whole(char tag, const std::string& text, KeyBuffer& key) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end) return false;
  append_tagged(tag, number, key);
  return true;
}

}  // namespace

std::vector<std::string> long_numbers_of(Bytes line) {
  json::basic_parser<LongNumbers> parser{json::parse_options{}};
  json::error_code error;
  static_cast<void>(parser.write_some(false, line.data(), line.size(), error));
  return std::move(parser.handler().texts);
}

bool append_exact_number(Bytes text, KeyBuffer& key) {
  Decimal number;
  if (!read_decimal(text, number)) return false;
  const auto zeros = static_cast<std::uint64_t>(number.exponent);
  if (number.exponent >= 0 && zeros + number.digits.size() <= digits_max) {
    const std::string whole = (number.is_negative ? "-" : "") +
                              (number.digits.empty() ? "0" : number.digits) +
                              std::string(number.exponent > 0 ? zeros : 0, '0');
    if (append_if_whole<std::int64_t>('i', whole, key)) return true;
    if (append_if_whole<std::uint64_t>('u', whole, key)) return true;
  }
  append_tagged(number.is_negative ? 'X' : 'x', number.exponent, key);
  append_tagged('#', static_cast<std::uint64_t>(number.digits.size()), key);
  key.append(number.digits);
  return true;
}

}  // namespace semel::tool
