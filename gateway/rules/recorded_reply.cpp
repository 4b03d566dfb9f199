#include "gateway/rules/recorded_reply.hpp"

#include <cstdint>

#include "base/coding.hpp"

namespace semel::gateway {
namespace {

constexpr char form = 1;
constexpr char flag_body_dropped = 1;
constexpr std::size_t head_bytes = 6;
using NameLength = std::uint16_t;
using ValueLength = std::uint32_t;

}  // namespace

std::size_t encoded_bytes(const RecordedReply& reply) noexcept {
  std::size_t bytes = head_bytes + reply.body.size();
  for (const auto& [name, value] : reply.fields) {
    bytes += sizeof(NameLength) + sizeof(ValueLength) + name.size() + value.size();
  }
  return bytes;
}

std::string encode(const RecordedReply& reply) {
  std::string text;
  text.reserve(encoded_bytes(reply));
  text += form;
  text += reply.body_dropped ? flag_body_dropped : '\0';
  base::put_fixed(text, static_cast<std::uint16_t>(reply.status));
  base::put_fixed(text, static_cast<std::uint16_t>(reply.fields.size()));
  for (const auto& [name, value] : reply.fields) {
    base::put_fixed(text, static_cast<NameLength>(name.size()));
    text += name;
    base::put_fixed(text, static_cast<ValueLength>(value.size()));
    text += value;
  }
  text += reply.body;
  return text;
}

Result<RecordedReply> decode_reply(std::string_view bytes) {
  const Error damaged{ErrorCode::bad_encoding, "not a recorded reply of this release"};
  base::ByteReader reader{bytes};
  if (reader.fixed<char>() != form) return damaged;
  RecordedReply reply;
  reply.body_dropped = (reader.fixed<char>() & flag_body_dropped) != 0;
  reply.status = reader.fixed<std::uint16_t>();
  const std::size_t count = reader.fixed<std::uint16_t>();
  for (std::size_t i = 0; i < count && reader.is_good(); ++i) {
    const std::string_view name = reader.take(reader.fixed<NameLength>());
    const std::string_view value = reader.take(reader.fixed<ValueLength>());
    reply.fields.emplace_back(name, value);
  }
  constexpr unsigned status_min = 100;
  constexpr unsigned status_max = 999;
  if (!reader.is_good() || reply.status < status_min || reply.status > status_max) return damaged;
  reply.body = reader.rest();
  reply.record = bytes;
  return reply;
}

}  // namespace semel::gateway
