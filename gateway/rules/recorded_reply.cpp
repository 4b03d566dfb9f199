#include "gateway/rules/recorded_reply.hpp"

#include <cstdint>
#include <optional>

namespace semel::gateway {
namespace {

constexpr char form = 1;
constexpr char flag_body_dropped = 1;
constexpr std::size_t head_bytes = 6;
constexpr std::size_t name_length_bytes = 2;
constexpr std::size_t value_length_bytes = 4;

void append_number(std::string& text, std::size_t number, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>((number >> (8 * i)) & 0xFFU);
}

/// Takes bytes from the front; every call fails once there are too few.
class Reader {
 public:
  explicit Reader(std::string_view bytes) noexcept : rest_(bytes) {}
  [[nodiscard]] std::string_view take(std::size_t bytes) noexcept {
    if (bytes > rest_.size()) is_short_ = true;
    const std::string_view taken = is_short_ ? std::string_view{} : rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  [[nodiscard]] std::size_t number(std::size_t bytes) noexcept {
    std::size_t value = 0;
    std::size_t shift = 0;
    for (const char c : take(bytes)) {
      value |= std::size_t{static_cast<unsigned char>(c)} << shift;
      shift += 8;
    }
    return value;
  }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }
  [[nodiscard]] bool is_short() const noexcept { return is_short_; }

 private:
  std::string_view rest_;
  bool is_short_ = false;
};

}  // namespace

std::size_t encoded_bytes(const RecordedReply& reply) noexcept {
  std::size_t bytes = head_bytes + reply.body.size();
  for (const auto& [name, value] : reply.fields) {
    bytes += name_length_bytes + value_length_bytes + name.size() + value.size();
  }
  return bytes;
}

std::string encode(const RecordedReply& reply) {
  std::string text;
  text.reserve(encoded_bytes(reply));
  text += form;
  text += reply.body_dropped ? flag_body_dropped : '\0';
  append_number(text, reply.status, 2);
  append_number(text, reply.fields.size(), 2);
  for (const auto& [name, value] : reply.fields) {
    append_number(text, name.size(), name_length_bytes);
    text += name;
    append_number(text, value.size(), value_length_bytes);
    text += value;
  }
  text += reply.body;
  return text;
}

Result<RecordedReply> decode_reply(std::string_view bytes) {
  const Error damaged{ErrorCode::bad_encoding, "not a recorded reply of this release"};
  Reader reader{bytes};
  if (reader.number(1) != static_cast<std::size_t>(form)) return damaged;
  RecordedReply reply;
  reply.body_dropped = (reader.number(1) & static_cast<std::size_t>(flag_body_dropped)) != 0;
  reply.status = static_cast<unsigned>(reader.number(2));
  const std::size_t count = reader.number(2);
  for (std::size_t i = 0; i < count && !reader.is_short(); ++i) {
    const std::string_view name = reader.take(reader.number(name_length_bytes));
    const std::string_view value = reader.take(reader.number(value_length_bytes));
    reply.fields.emplace_back(name, value);
  }
  constexpr unsigned status_min = 100;
  constexpr unsigned status_max = 999;
  if (reader.is_short() || reply.status < status_min || reply.status > status_max) return damaged;
  reply.body = reader.rest();
  reply.record = bytes;
  return reply;
}

}  // namespace semel::gateway
