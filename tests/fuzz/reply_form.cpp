#include "tests/fuzz/reply_form.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>

namespace semel::tests {
namespace {

bool take_line(std::string_view& bytes, std::string_view& line) {
  const std::size_t end = bytes.find("\r\n");
  if (end == std::string_view::npos) return false;
  line = bytes.substr(0, end);
  bytes.remove_prefix(end + 2);
  return line.find_first_of("\r\n") == std::string_view::npos;
}

bool number_of(std::string_view text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

bool take_bulk(std::string_view& bytes, std::int64_t length) {
  if (length == -1) return true;
  const auto size = static_cast<std::size_t>(length);
  if (length < 0 || bytes.size() < size + 2 || bytes.substr(size, 2) != "\r\n") return false;
  bytes.remove_prefix(size + 2);
  return true;
}

/// Takes a value, or the head of one that has parts: then there are so many `values` more to come.
bool take_value(std::string_view& bytes, std::int64_t& values) {
  std::string_view line;
  std::int64_t number = 0;
  if (!take_line(bytes, line) || line.empty()) return false;
  const char kind = line.front();
  const std::string_view rest = line.substr(1);
  switch (kind) {
    case '+':
    case '-':
    case '(':
      return true;  // scripts may return an empty one of each
    case ',':
      return !rest.empty();
    case ':':
      return number_of(rest, number);
    case '_':
      return rest.empty();
    case '#':
      return rest == "t" || rest == "f";
    case '$':
    case '=':
      return number_of(rest, number) && take_bulk(bytes, number);
    case '*':
    case '~':
    case '>':
    case '%':
      if (!number_of(rest, number) || number < -1) return false;
      if (number > 0) values += kind == '%' ? 2 * number : number;
      return true;
    default:
      return false;
  }
}

}  // namespace

bool is_whole_replies(std::string_view bytes) {
  std::int64_t values = 0;  // that are to come, of what has begun
  while (!bytes.empty()) {
    if (values > 0) --values;
    if (!take_value(bytes, values)) return false;
  }
  return values == 0;
}

}  // namespace semel::tests
