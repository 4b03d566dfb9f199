#include "net/resp/resp_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "net/resp/digits.hpp"

namespace semel::net {
namespace {

constexpr std::string_view line_end = "\r\n";

// A short text is put together on the stack and appended in one piece: each append costs more than
// copying it.
constexpr std::size_t small_bytes_max = 64;
constexpr std::size_t head_bytes_max = 1 + number_bytes_max + line_end.size();

char* put_line_end(char* at) noexcept {
  *at++ = '\r';
  *at++ = '\n';
  return at;
}

char* put_line(char* at, std::string_view text) noexcept {
  const std::size_t size = text.size();
  constexpr std::size_t half = 8;
  if (size >= half && size <= 2 * half) {  // two copies that overlap: quicker than a call
    std::memcpy(at, text.data(), half);
    std::memcpy(at + size - half, text.data() + size - half, half);
  } else if (size != 0) {
    std::memcpy(at, text.data(), size);
  }
  return put_line_end(at + size);
}

char* put_head(char* at, char mark, std::int64_t number) noexcept {
  *at++ = mark;
  return put_line_end(put_digits(at, number));
}

std::string_view text_of(std::int64_t number, std::array<char, number_bytes_max>& room) noexcept {
  const char* const end = put_digits(room.data(), number);
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

}  // namespace

std::string text_of(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> room{};
  const auto end = std::to_chars(room.data(), room.data() + room.size(), value).ptr;
  return {room.data(), end};
}

void RespWriter::head(char mark, std::int64_t number) {
  std::array<char, head_bytes_max> room;
  const char* const end = put_head(room.data(), mark, number);
  out_.append(room.data(), static_cast<std::size_t>(end - room.data()));
}

void RespWriter::simple(std::string_view text) {
  if (text.size() > small_bytes_max) {
    out_ += '+';
    out_ += text;
    out_ += line_end;
    return;
  }
  std::array<char, 1 + small_bytes_max + line_end.size()> room;
  room[0] = '+';
  out_.append(room.data(), static_cast<std::size_t>(put_line(room.data() + 1, text) - room.data()));
}

void RespWriter::error(std::string_view text) {
  out_ += '-';
  for (const char c : text) out_ += c == '\r' || c == '\n' ? ' ' : c;
  out_ += line_end;
}

void RespWriter::integer(std::int64_t number) {
  head(':', number);
}

void RespWriter::take_back(std::size_t from) {
  SEMEL_ASSERT(from <= out_.size());
  out_.resize(from);
  if (large_ != nullptr) large_->cut(from);
  is_cut_ = false;
}

std::size_t RespWriter::room() const noexcept {
  const std::size_t used = out_.size() + (large_ == nullptr ? 0 : large_->held());
  return bytes_max_ - std::min(bytes_max_, used);
}

bool RespWriter::is_over(std::size_t more) const noexcept {
  return bytes_max_ != ~std::size_t{0} && more > room();
}

bool RespWriter::take_offer(std::string_view bytes) {
  std::string* const offered = std::exchange(offered_, nullptr);
  if (large_ == nullptr || offered == nullptr || offered->data() != bytes.data()) return false;
  if (!large_->has_met(offered_name_, offered_version_) && is_over(bytes.size())) {
    is_cut_ = true;
    *offered = std::string{};
  } else if (offered_name_.empty()) {
    shared_bulk(large_->share(std::move(*offered)));
  } else {
    shared_bulk(large_->share(offered_name_, offered_version_, *offered));
  }
  return true;
}

void RespWriter::shared_bulk(const SharedBytes& bytes) {
  SEMEL_ASSERT(bytes != nullptr);
  if (large_ == nullptr) return bulk(bytes->view());
  head('$', static_cast<std::int64_t>(bytes->size()));
  large_->add(out_.size(), bytes);
  out_ += line_end;
}

void RespWriter::bulk(std::string_view bytes) {
  if (bytes.size() >= LargeReplies::bytes_min && take_offer(bytes)) return;
  if (is_over(bytes.size())) [[unlikely]] {
    is_cut_ = true;
    return;
  }
  if (bytes.size() <= small_bytes_max) [[likely]] {
    std::array<char, head_bytes_max + small_bytes_max + line_end.size()> room;
    char* const text = put_head(room.data(), '$', static_cast<std::int64_t>(bytes.size()));
    out_.append(room.data(), static_cast<std::size_t>(put_line(text, bytes) - room.data()));
    return;
  }
  head('$', static_cast<std::int64_t>(bytes.size()));
  out_ += bytes;
  out_ += line_end;
}

void RespWriter::bulk_of(std::int64_t number) {
  std::array<char, number_bytes_max> room;
  bulk(text_of(number, room));
}

void RespWriter::null() {
  out_ += is_three() ? "_\r\n" : "$-1\r\n";
}

void RespWriter::null_array() {
  out_ += is_three() ? "_\r\n" : "*-1\r\n";
}

void RespWriter::boolean(bool value) {
  if (!is_three()) return integer(value ? 1 : 0);
  out_ += value ? "#t\r\n" : "#f\r\n";
}

void RespWriter::number(double value) {
  const std::string text = net::text_of(value);
  if (!is_three()) return bulk(text);
  out_ += ',';
  out_ += text;
  out_ += line_end;
}

void RespWriter::verbatim(std::string_view text, std::string_view format) {
  SEMEL_ASSERT(format.size() == 3);  // the protocol has no other length
  if (!is_three()) return bulk(text);
  head('=', static_cast<std::int64_t>(text.size() + format.size() + 1));
  out_ += format;
  out_ += ':';
  out_ += text;
  out_ += line_end;
}

void RespWriter::array(std::size_t count) {
  head('*', static_cast<std::int64_t>(count));
}

void RespWriter::map(std::size_t pairs) {
  is_three() ? head('%', static_cast<std::int64_t>(pairs)) : array(2 * pairs);
}

void RespWriter::set(std::size_t count) {
  is_three() ? head('~', static_cast<std::int64_t>(count)) : array(count);
}

void RespWriter::push(std::size_t count) {
  is_three() ? head('>', static_cast<std::int64_t>(count)) : array(count);
}

}  // namespace semel::net
