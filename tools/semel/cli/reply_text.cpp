#include "tools/semel/cli/reply_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <string_view>

#include "net/admin/escape.hpp"

namespace semel::tool {

namespace {

bool is_utf8(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const std::size_t length = net::utf8_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

bool is_printable(std::string_view bytes) noexcept {
  return is_utf8(bytes) && std::all_of(bytes.begin(), bytes.end(), [](char each) {
           const auto byte = static_cast<unsigned char>(each);
           return byte >= 0x20 && byte != 0x7f;
         });
}

std::string in_quotes(std::string_view bytes) {
  std::string text{'"'};
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\') {
      text += '\\';
      text += each;
    } else if (byte < 0x20 || byte >= 0x7f) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += each;
    }
  }
  return text += '"';
}

std::string shown(std::string_view bytes) {
  return !bytes.empty() && is_printable(bytes) ? std::string{bytes} : in_quotes(bytes);
}

/// Texts of several lines, as INFO has, stay lines.
bool is_page(std::string_view bytes) noexcept {
  return bytes.find('\n') != std::string_view::npos &&
         std::all_of(bytes.begin(), bytes.end(), [](char each) {
           const auto byte = static_cast<unsigned char>(each);
           return byte == '\n' || byte == '\r' || byte == '\t' || (byte >= 0x20 && byte < 0x7f);
         });
}

bool has_items(const Reply& reply) noexcept {
  return !reply.items.empty();
}

void append(const Reply& reply, std::size_t indent, std::string& to);

/// Behind its key or number: on the same line, or, if it has items, indented on the next ones.
void append_item(const Reply& item, std::size_t indent, std::string& to) {
  if (has_items(item)) {
    to += '\n';
    append(item, indent + 2, to);
  } else {
    to += ' ';
    append(item, 0, to);
  }
}

void append_map(const Reply& reply, std::size_t indent, std::string& to) {
  if (!has_items(reply)) to += "(empty)";
  for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    if (i != 0) to += '\n';
    to.append(indent, ' ');
    append(reply.items[i], 0, to);
    to += ':';
    append_item(reply.items[i + 1], indent, to);
  }
}

void append_list(const Reply& reply, std::size_t indent, std::string& to) {
  if (!has_items(reply)) to += "(empty)";
  for (std::size_t i = 0; i < reply.items.size(); ++i) {
    if (i != 0) to += '\n';
    to.append(indent, ' ');
    to += fmt::format("{})", i + 1);
    append_item(reply.items[i], indent, to);
  }
}

void append(const Reply& reply, std::size_t indent, std::string& to) {
  using Type = Reply::Type;
  switch (reply.type) {
    case Type::simple:
      to += reply.text;
      break;
    case Type::error:
      to += "(error) " + reply.text;
      break;
    case Type::integer:
      to += std::to_string(reply.integer);
      break;
    case Type::bulk:
      to += is_page(reply.text) ? reply.text : shown(reply.text);
      break;
    case Type::null:
      to += "(nil)";
      break;
    case Type::number:
      to += fmt::format("{}", reply.number);
      break;
    case Type::boolean:
      to += reply.integer != 0 ? "true" : "false";
      break;
    case Type::array:
    case Type::set:
    case Type::push:
      append_list(reply, indent, to);
      break;
    case Type::map:
      append_map(reply, indent, to);
      break;
  }
}

boost::json::string json_text(std::string_view bytes) {
  if (is_utf8(bytes)) return boost::json::string{bytes};
  boost::json::string text;
  for (const char each : bytes) {  // U+0000 to U+00FF
    const auto byte = static_cast<unsigned char>(each);
    if (byte < 0x80) {
      text.push_back(each);
    } else {
      text.push_back(static_cast<char>(0xc0 | byte >> 6));
      text.push_back(static_cast<char>(0x80 | (byte & 0x3f)));
    }
  }
  return text;
}

bool is_text(const Reply& reply) noexcept {
  return reply.type == Reply::Type::simple || reply.type == Reply::Type::bulk;
}

boost::json::value json_value(const Reply& reply);

boost::json::value json_map(const Reply& reply) {
  bool all_text = true;
  for (std::size_t i = 0; i < reply.items.size(); i += 2) all_text &= is_text(reply.items[i]);
  if (all_text) {
    boost::json::object object;
    for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2) {
      object.insert_or_assign(json_text(reply.items[i].text), json_value(reply.items[i + 1]));
    }
    return object;
  }
  boost::json::array pairs;
  for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    pairs.push_back(boost::json::array{json_value(reply.items[i]), json_value(reply.items[i + 1])});
  }
  return pairs;
}

boost::json::value json_value(const Reply& reply) {
  using Type = Reply::Type;
  switch (reply.type) {
    case Type::simple:
    case Type::bulk:
      return json_text(reply.text);
    case Type::error:
      return boost::json::object{{"error", json_text(reply.text)}};
    case Type::integer:
      return reply.integer;
    case Type::null:
      return nullptr;
    case Type::number:
      if (!std::isfinite(reply.number)) return boost::json::string{fmt::format("{}", reply.number)};
      return reply.number;
    case Type::boolean:
      return reply.integer != 0;
    case Type::map:
      return json_map(reply);
    case Type::array:
    case Type::set:
    case Type::push:
      break;
  }
  boost::json::array items;
  for (const Reply& item : reply.items) items.push_back(json_value(item));
  return items;
}

}  // namespace

std::string reply_text(const Reply& reply) {
  std::string text;
  append(reply, 0, text);
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

std::string reply_json(const Reply& reply) {
  return boost::json::serialize(json_value(reply));
}

}  // namespace semel::tool
