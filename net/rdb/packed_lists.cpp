#include "net/rdb/packed_lists.hpp"

#include <charconv>
#include <cstdint>
#include <limits>

namespace semel::net {

namespace {

constexpr unsigned list_end = 255;
constexpr unsigned not_counted = 65'535;

/// Reads from the front; once something was missing, all is zero and `good` false.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) noexcept : rest_(bytes) {}

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }
  std::string_view take(std::size_t count) noexcept {
    if (count > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  /// Of `count` bytes, little-endian.
  std::uint64_t number(std::size_t count) noexcept {
    std::uint64_t value = 0;
    const std::string_view bytes = take(count);
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | byte(bytes[i]);
    return value;
  }
  std::uint64_t big_number(std::size_t count) noexcept {
    std::uint64_t value = 0;
    for (const char each : take(count)) value = value << 8 | byte(each);
    return value;
  }
  /// With the sign in the highest bit.
  std::int64_t signed_number(std::size_t count) noexcept {
    return with_sign(number(count), static_cast<unsigned>(8 * count));
  }
  [[nodiscard]] static std::int64_t with_sign(std::uint64_t value, unsigned bits) noexcept {
    const unsigned unused = 64 - bits;
    return static_cast<std::int64_t>(value << unused) >> unused;
  }

 private:
  static std::uint64_t byte(char value) noexcept { return static_cast<unsigned char>(value); }

  std::string_view rest_;
  bool good_ = true;
};

void add_number(ByteItems& items, std::int64_t number) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  items.add({text, static_cast<std::size_t>(end - text)});
}

/// The item that `first` begins.
bool read_ziplist_item(Cursor& in, unsigned first, ByteItems& items) {
  const auto text = [&](std::uint64_t bytes) {
    if (bytes > in.left()) return false;
    items.add(in.take(bytes));
    return true;
  };
  const auto integer = [&](std::size_t bytes) {
    const std::int64_t number = in.signed_number(bytes);
    if (in.good()) add_number(items, number);
    return in.good();
  };
  if (first < 64) return text(first);
  if (first < 128) return text((first & 63) << 8 | in.number(1));
  switch (first) {
    case 128:
      return text(in.big_number(4));
    case 192:
      return integer(2);
    case 208:
      return integer(4);
    case 224:
      return integer(8);
    case 240:
      return integer(3);
    case 254:
      return integer(1);
    default:
      if (first <= 240 || first == list_end) return false;
      add_number(items, static_cast<std::int64_t>(first - 241));
      return true;
  }
}

/// The item that `first` begins; `bytes` are those of the entry so far.
bool read_listpack_item(Cursor& in, unsigned first, ByteItems& items) {
  const auto text = [&](std::uint64_t bytes) {
    if (bytes > in.left()) return false;
    items.add(in.take(bytes));
    return true;
  };
  const auto integer = [&](std::size_t bytes) {
    const std::int64_t number = in.signed_number(bytes);
    if (in.good()) add_number(items, number);
    return in.good();
  };
  if (first < 0x80) return add_number(items, first), true;
  if (first < 0xc0) return text(first & 0x3f);
  if (first < 0xe0) {
    const std::uint64_t bits = std::uint64_t{first & 0x1f} << 8 | in.number(1);
    if (in.good()) add_number(items, Cursor::with_sign(bits, 13));
    return in.good();
  }
  if (first < 0xf0) return text(std::uint64_t{first & 0x0f} << 8 | in.number(1));
  switch (first) {
    case 0xf0:
      return text(in.number(4));
    case 0xf1:
      return integer(2);
    case 0xf2:
      return integer(3);
    case 0xf3:
      return integer(4);
    case 0xf4:
      return integer(8);
    default:
      return false;
  }
}

/// Behind an entry of `bytes` bytes: their number in groups of seven bits, the highest first, all
/// but that with the top bit set.
bool read_listpack_back(Cursor& in, std::size_t bytes) noexcept {
  std::size_t count = 1;
  if (bytes > 127) count = 2;
  if (bytes >= 16'383) count = 3;
  if (bytes >= 2'097'151) count = 4;
  if (bytes >= 268'435'455) count = 5;
  for (std::size_t i = count; i-- > 0;) {
    const std::uint64_t wanted = (bytes >> (7 * i) & 127) | (i + 1 < count ? 128 : 0);
    if (in.number(1) != wanted) return false;
  }
  return in.good();
}

/// Of a zipmap: the size of the key or value behind it.
std::uint64_t read_zipmap_length(Cursor& in, unsigned first) noexcept {
  return first < 254 ? first : in.number(4);
}

}  // namespace

bool read_ziplist(std::string_view bytes, ByteItems& items) {
  constexpr std::size_t head_bytes = 10;
  constexpr unsigned long_before = 254;
  Cursor in{bytes};
  const std::uint64_t whole = in.number(4);
  const std::uint64_t last = in.number(4);
  const std::uint64_t counted = in.number(2);
  if (!in.good() || whole != bytes.size()) return false;
  const std::size_t begin = items.size();
  std::size_t before = 0;  // bytes of the entry before
  std::size_t place = head_bytes;
  for (;;) {
    const std::size_t at = bytes.size() - in.left();
    const auto first = static_cast<unsigned>(in.number(1));
    if (!in.good()) return false;
    if (first == list_end) break;
    const std::uint64_t said = first == long_before ? in.number(4) : first;
    if (said != before) return false;
    const auto encoding = static_cast<unsigned>(in.number(1));
    if (!in.good() || !read_ziplist_item(in, encoding, items)) return false;
    place = at;
    before = bytes.size() - in.left() - at;
  }
  const std::size_t count = items.size() - begin;
  return in.left() == 0 && last == place && (counted == not_counted || counted == count);
}

bool read_listpack(std::string_view bytes, ByteItems& items) {
  Cursor in{bytes};
  const std::uint64_t whole = in.number(4);
  const std::uint64_t counted = in.number(2);
  if (!in.good() || whole != bytes.size()) return false;
  const std::size_t begin = items.size();
  for (;;) {
    const std::size_t left = in.left();
    const auto first = static_cast<unsigned>(in.number(1));
    if (!in.good()) return false;
    if (first == list_end) break;
    if (!read_listpack_item(in, first, items)) return false;
    if (!read_listpack_back(in, left - in.left())) return false;
  }
  return in.left() == 0 && (counted == not_counted || counted == items.size() - begin);
}

bool read_intset(std::string_view bytes, ByteItems& items) {
  Cursor in{bytes};
  const std::uint64_t width = in.number(4);
  const std::uint64_t count = in.number(4);
  if (!in.good() || (width != 2 && width != 4 && width != 8)) return false;
  if (in.left() % width != 0 || in.left() / width != count) return false;
  std::int64_t before = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t number = in.signed_number(width);
    if (i != 0 && number <= before) return false;
    add_number(items, number);
    before = number;
  }
  return true;
}

bool read_zipmap(std::string_view bytes, ByteItems& items) {
  constexpr unsigned not_all_counted = 254;
  Cursor in{bytes};
  const std::uint64_t counted = in.number(1);
  const std::size_t begin = items.size();
  for (;;) {
    const auto first = static_cast<unsigned>(in.number(1));
    if (!in.good()) return false;
    if (first == list_end) break;
    const std::uint64_t key_bytes = read_zipmap_length(in, first);
    if (key_bytes > in.left()) return false;
    items.add(in.take(key_bytes));
    const auto second = static_cast<unsigned>(in.number(1));
    if (!in.good() || second == list_end) return false;
    const std::uint64_t value_bytes = read_zipmap_length(in, second);
    const std::uint64_t unused = in.number(1);
    if (!in.good() || value_bytes > in.left()) return false;
    items.add(in.take(value_bytes));
    in.take(unused);
    if (!in.good()) return false;
  }
  const std::size_t pairs = (items.size() - begin) / 2;
  return in.left() == 0 && (counted >= not_all_counted || counted == pairs);
}

}  // namespace semel::net
