#include "net/rdb/listpack_writer.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace semel::net {

namespace {

constexpr bool fits(std::int64_t number, unsigned bits) noexcept {
  const std::int64_t bound = std::int64_t{1} << (bits - 1);
  return number >= -bound && number < bound;
}

}  // namespace

void ListpackWriter::little(std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8) bytes_.push_back(static_cast<char>(value));
}

void ListpackWriter::number(std::int64_t number) {
  const std::size_t begin = bytes_.size();
  const auto bits = static_cast<std::uint64_t>(number);
  if (number >= 0 && number < 128) {
    little(bits, 1);
  } else if (fits(number, 13)) {
    little(0xc0 | (bits >> 8 & 0x1f), 1);
    little(bits, 1);
  } else if (fits(number, 16)) {
    little(0xf1, 1);
    little(bits, 2);
  } else if (fits(number, 24)) {
    little(0xf2, 1);
    little(bits, 3);
  } else if (fits(number, 32)) {
    little(0xf3, 1);
    little(bits, 4);
  } else {
    little(0xf4, 1);
    little(bits, 8);
  }
  end_item(begin);
}

void ListpackWriter::text(std::string_view text) {
  const std::size_t begin = bytes_.size();
  if (text.size() < 64) {
    little(0x80 | text.size(), 1);
  } else if (text.size() < 4096) {
    little(0xe0 | text.size() >> 8, 1);
    little(text.size(), 1);
  } else {
    little(0xf0, 1);
    little(text.size(), 4);
  }
  bytes_.append(text);
  end_item(begin);
}

void ListpackWriter::end_item(std::size_t begin) {
  const std::size_t bytes = bytes_.size() - begin;
  std::size_t count = 1;
  if (bytes > 127) count = 2;
  if (bytes >= 16'383) count = 3;
  if (bytes >= 2'097'151) count = 4;
  if (bytes >= 268'435'455) count = 5;
  for (std::size_t i = count; i-- > 0;) {
    little((bytes >> (7 * i) & 127) | (i + 1 < count ? 128 : 0), 1);
  }
  ++items_;
}

std::string ListpackWriter::take() {
  constexpr std::size_t not_counted = 65'535;
  bytes_.push_back('\xff');
  SEMEL_ASSERT(bytes_.size() <= UINT32_MAX);
  std::uint64_t head = bytes_.size() | std::uint64_t{std::min(items_, not_counted)} << 32;
  for (std::size_t i = 0; i < head_bytes; ++i, head >>= 8) bytes_[i] = static_cast<char>(head);
  return std::move(bytes_);
}

}  // namespace semel::net
