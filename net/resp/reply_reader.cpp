#include "net/resp/reply_reader.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/assert.hpp"

namespace semel::net {
namespace {

constexpr int depth_max = 32;  // of nested arrays; the replies of commands nest three at most

std::optional<std::string_view> take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + 2);
  return line;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Reply> take(std::string_view& bytes, int depth);

std::optional<Reply> take_bytes(std::string_view& bytes, std::string_view line, std::size_t skip) {
  const auto size = number_of(line);
  if (!size) return std::nullopt;
  if (*size < 0) return Reply{};
  const auto length = static_cast<std::size_t>(*size);
  if (length < skip || bytes.size() < length + 2) return std::nullopt;
  Reply reply{.type = Reply::Type::bulk, .text = std::string{bytes.substr(skip, length - skip)}};
  bytes.remove_prefix(length + 2);
  return reply;
}

std::optional<Reply> take_items(std::string_view& bytes, std::string_view line, Reply::Type type,
                                int depth) {
  const auto count = number_of(line);
  if (!count || depth == 0) return std::nullopt;
  if (*count < 0) return Reply{};
  Reply reply{.type = type};
  for (std::int64_t left = type == Reply::Type::map ? *count * 2 : *count; left > 0; --left) {
    auto item = take(bytes, depth - 1);
    if (!item) return std::nullopt;
    reply.items.push_back(std::move(*item));
  }
  return reply;
}

std::optional<Reply> take_number(std::string_view line) {
  Reply reply{.type = Reply::Type::number, .text = std::string{line}};
  if (line == "inf" || line == "-inf") {
    reply.number = std::numeric_limits<double>::infinity() * (line[0] == '-' ? -1 : 1);
  } else if (line == "nan") {
    reply.number = std::nan("");
  } else {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), reply.number);
    if (error != std::errc{} || end != line.data() + line.size()) return std::nullopt;
  }
  return reply;
}

std::optional<Reply> take(std::string_view& bytes, int depth) {
  constexpr std::size_t format_bytes = 4;  // "txt:"
  const auto whole = take_line(bytes);
  if (!whole || whole->empty()) return std::nullopt;
  const std::string_view line = whole->substr(1);
  switch (whole->front()) {
    case '+':
      return Reply{.type = Reply::Type::simple, .text = std::string{line}};
    case '-':
      return Reply{.type = Reply::Type::error, .text = std::string{line}};
    case ':': {
      const auto number = number_of(line);
      if (!number) return std::nullopt;
      return Reply{.type = Reply::Type::integer, .integer = *number};
    }
    case '$':
      return take_bytes(bytes, line, 0);
    case '=':
      return take_bytes(bytes, line, format_bytes);
    case '(':
      return Reply{.type = Reply::Type::bulk, .text = std::string{line}};
    case '_':
      return Reply{};
    case '#':
      return Reply{.type = Reply::Type::boolean, .integer = line == "t" ? 1 : 0};
    case ',':
      return take_number(line);
    case '*':
      return take_items(bytes, line, Reply::Type::array, depth);
    case '%':
      return take_items(bytes, line, Reply::Type::map, depth);
    case '~':
      return take_items(bytes, line, Reply::Type::set, depth);
    case '>':
      return take_items(bytes, line, Reply::Type::push, depth);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Reply> take_reply(std::string_view& bytes) {
  std::string_view rest = bytes;
  auto reply = take(rest, depth_max);
  if (!reply) return reply;
  SEMEL_ASSERT(rest.size() < bytes.size());  // else a caller that takes all replies would not end
  bytes = rest;
  return reply;
}

}  // namespace semel::net

namespace semel {
namespace {

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    constexpr std::string_view digits = "0123456789abcdef";
    if (c == '"' || c == '\\') {
      quoted.append(1, '\\').append(1, c);
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\r') {
      quoted += "\\r";
    } else if (c >= ' ' && c <= '~') {
      quoted += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      quoted.append("\\x").append(1, digits[byte >> 4U]).append(1, digits[byte & 15U]);
    }
  }
  return quoted + '"';
}

std::string list_of(const Reply& reply, char open, char close) {
  std::string text{open};
  for (const Reply& item : reply.items) {
    if (text.size() > 1) text += ", ";
    text += to_text(item);
  }
  return text + close;
}

}  // namespace

std::string to_text(const Reply& reply) {
  switch (reply.type) {
    case Reply::Type::simple:
    case Reply::Type::number:
      return reply.text;
    case Reply::Type::error:
      return "(error) " + reply.text;
    case Reply::Type::integer:
      return "(integer) " + std::to_string(reply.integer);
    case Reply::Type::bulk:
      return in_quotes(reply.text);
    case Reply::Type::null:
      return "(nil)";
    case Reply::Type::boolean:
      return reply.integer != 0 ? "(true)" : "(false)";
    case Reply::Type::array:
      return list_of(reply, '[', ']');
    case Reply::Type::map:
    case Reply::Type::set:
      return list_of(reply, '{', '}');
    case Reply::Type::push:
      return list_of(reply, '<', '>');
  }
  return {};
}

}  // namespace semel
