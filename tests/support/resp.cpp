#include "tests/support/resp.hpp"

#include <charconv>
#include <utility>

namespace semel::tests {

namespace {

constexpr int depth_max = 16;
constexpr long items_max = 1'000'000;

using Type = RespValue::Type;

std::optional<RespValue> take(std::string_view& bytes, int depth);

std::optional<RespValue> take_bytes(std::string_view& bytes, Type type, long count) {
  if (count < 0) return RespValue{.type = Type::null};
  const auto size = static_cast<std::size_t>(count);
  if (bytes.size() < size + 2) return std::nullopt;
  RespValue value{.type = type, .text = std::string{bytes.substr(0, size)}};
  bytes.remove_prefix(size + 2);
  return value;
}

std::optional<RespValue> take_items(std::string_view& bytes, Type type, long count, int depth) {
  if (count < 0) return RespValue{.type = Type::null};
  if (count > items_max || depth == depth_max) return RespValue{};
  RespValue value{.type = type};
  for (long left = type == Type::map ? 2 * count : count; left > 0; --left) {
    std::optional<RespValue> item = take(bytes, depth + 1);
    if (!item || item->type == Type::broken) return item;
    value.items.push_back(*std::move(item));
  }
  return value;
}

std::optional<RespValue> take(std::string_view& bytes, int depth) {
  const std::size_t end = bytes.find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  if (end == 0) return RespValue{};
  const std::string_view text = bytes.substr(1, end - 1);
  const auto type = static_cast<Type>(bytes.front());
  bytes.remove_prefix(end + 2);
  long count = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool is_count = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
  switch (type) {
    case Type::status:
    case Type::error:
    case Type::integer:
    case Type::null:
    case Type::boolean:
    case Type::number:
    case Type::big_number:
      return RespValue{.type = type, .text = std::string{text}};
    case Type::bulk:
    case Type::verbatim:
      return is_count ? take_bytes(bytes, type, count) : RespValue{};
    case Type::array:
    case Type::map:
    case Type::set:
    case Type::push:
      return is_count ? take_items(bytes, type, count, depth) : RespValue{};
    case Type::broken:
      break;
  }
  return RespValue{};
}

}  // namespace

Words words_in(std::string_view line) {
  Words words;
  std::string word;
  bool is_quoted = false;
  bool any = false;
  for (const char c : line) {
    if (c == '\'') {
      is_quoted = !is_quoted;
      any = true;
    } else if (c == ' ' && !is_quoted) {
      if (any) words.push_back(std::exchange(word, {}));
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) words.push_back(word);
  return words;
}

std::string request_bytes(const Words& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return bytes;
}

std::string printable(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text.append(1, '\\').append(1, c);
    } else if (byte >= 0x20 && byte < 0x7f) {
      text.push_back(c);
    } else {
      text.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
    }
  }
  return text + '"';
}

std::string RespValue::show() const {
  switch (type) {
    case Type::broken:
      return "broken connection";
    case Type::null:
      return "nil";
    case Type::bulk:
    case Type::verbatim:
      return tests::printable(text);
    case Type::array:
    case Type::map:
    case Type::set:
    case Type::push:
      break;
    default:
      return static_cast<char>(type) + text;
  }
  std::string all = "[";
  for (const RespValue& item : items) all.append(all.size() > 1 ? " " : "").append(item.show());
  return all + ']';
}

std::optional<RespValue> take_value(std::string_view& bytes) {
  std::string_view rest = bytes;
  std::optional<RespValue> value = take(rest, 0);
  if (value) bytes = value->type == Type::broken ? std::string_view{} : rest;
  return value;
}

std::vector<std::string> split_values(std::string_view bytes) {
  std::vector<std::string> values;
  while (!bytes.empty()) {
    std::string_view rest = bytes;
    if (!take_value(rest)) rest = {};
    values.emplace_back(bytes.substr(0, bytes.size() - rest.size()));
    bytes = rest;
  }
  return values;
}

}  // namespace semel::tests
