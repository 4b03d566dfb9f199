#include "gateway/core/reply.hpp"

#include <charconv>
#include <cstdint>

#include "gateway/core/json_text.hpp"

namespace semel::gateway {
namespace {

constexpr std::string_view form = "R1";  // of the kept bytes; another one is another number
constexpr std::size_t headers_max = 512;

void put(std::string& to, std::string_view text) {
  to += std::to_string(text.size());
  to += ':';
  to += text;
}

/// Takes a number and the byte behind it off the front.
std::optional<std::size_t> take_number(Bytes& from) {
  std::size_t number = 0;
  const auto read = std::from_chars(from.data(), from.data() + from.size(), number);
  const auto digits = static_cast<std::size_t>(read.ptr - from.data());
  if (read.ec != std::errc{} || digits == from.size() || *read.ptr != ':') return std::nullopt;
  from.remove_prefix(digits + 1);
  return number;
}
std::optional<Bytes> take(Bytes& from) {
  const auto size = take_number(from);
  if (!size || *size > from.size()) return std::nullopt;
  const Bytes text = from.substr(0, *size);
  from.remove_prefix(*size);
  return text;
}

}  // namespace

std::string encode(const Reply& reply) {
  std::string bytes{form};
  bytes += std::to_string(reply.status) + ':' + std::to_string(reply.headers.size()) + ':';
  for (const auto& [name, value] : reply.headers) {
    put(bytes, name);
    put(bytes, value);
  }
  return bytes + reply.body;
}

std::optional<Reply> decode(Bytes bytes) {
  if (!bytes.starts_with(form)) return std::nullopt;
  bytes.remove_prefix(form.size());
  Reply reply;
  const auto status = take_number(bytes);
  const auto count = take_number(bytes);
  if (!status || *status < 100 || *status > 999 || !count || *count > headers_max) {
    return std::nullopt;
  }
  reply.status = static_cast<unsigned>(*status);
  for (std::size_t i = 0; i < *count; ++i) {
    const auto name = take(bytes);
    const auto value = take(bytes);
    if (!name || !value) return std::nullopt;
    reply.headers.emplace_back(*name, *value);
  }
  reply.body = bytes;
  return reply;
}

Reply problem(unsigned status, std::string_view type, std::string_view title,
              std::string_view detail) {
  Reply reply{.status = status};
  reply.headers.emplace_back("Content-Type", "application/problem+json");
  reply.body = "{\"type\":\"urn:semel:gateway:" + std::string{type} + "\",\"title\":";
  append_json(reply.body, title);
  reply.body += ",\"status\":" + std::to_string(status);
  if (!detail.empty()) {
    reply.body += ",\"detail\":";
    append_json(reply.body, detail);
  }
  reply.body += "}\n";
  return reply;
}

}  // namespace semel::gateway
