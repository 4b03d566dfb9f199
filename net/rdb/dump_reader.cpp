#include "net/rdb/dump_reader.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "net/rdb/crc64.hpp"
#include "net/rdb/lzf.hpp"
#include "net/rdb/packed_lists.hpp"

namespace semel::net {

namespace {

/// What an element of a large object takes at least besides its bytes, so that many empty ones are
/// not more than `bytes_max`.
constexpr std::size_t item_bytes = 5;

std::uint64_t little(std::string_view bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

std::optional<double> score_of_text(std::string_view text) noexcept {
  double score = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), score);
  if (error != std::errc{} || end != text.data() + text.size() || std::isnan(score)) {
    return std::nullopt;
  }
  return score;
}

/// Lengths and strings from the front. After a fault everything is empty.
class DumpReader {
 public:
  DumpReader(std::string_view payload, std::size_t bytes_max) noexcept
      : rest_(payload), room_(bytes_max) {}

  [[nodiscard]] DumpFault fault() const noexcept { return fault_; }
  [[nodiscard]] bool good() const noexcept { return fault_ == DumpFault::none; }
  void fail(DumpFault fault = DumpFault::format) noexcept {
    if (good()) fault_ = fault;
    rest_ = {};
  }
  std::string_view take(std::uint64_t bytes) noexcept {
    if (bytes > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  std::uint8_t byte() noexcept { return static_cast<std::uint8_t>(little(take(1))); }
  double binary_score() noexcept { return std::bit_cast<double>(little(take(sizeof(double)))); }
  /// Of elements: at least one.
  std::uint64_t count() noexcept {
    const std::uint64_t count = length(byte());
    if (good() && count == 0) fail();
    return good() ? count : 0;
  }
  /// Appends a string to `to`.
  void string(std::string& to);
  /// A string that is read at once: valid until the next.
  [[nodiscard]] std::string_view string() {
    scratch_.clear();
    string(scratch_);
    return good() ? std::string_view{scratch_} : std::string_view{};
  }
  void item(ByteItems& items) {
    if (!spend(item_bytes)) return;
    string(items.open());
    items.end_item();
  }

 private:
  enum Encoded : std::uint8_t { of_8_bits = 192, of_16_bits, of_32_bits, packed };

  std::uint64_t length(std::uint8_t first) noexcept;
  void number(std::size_t bytes, std::string& to);
  void unpack(std::string& to);
  /// False: it is too much.
  [[nodiscard]] bool spend(std::uint64_t bytes) noexcept {
    if (bytes > room_) {
      fail(DumpFault::too_large);
      return false;
    }
    room_ -= static_cast<std::size_t>(bytes);
    return true;
  }

  std::string_view rest_;
  std::size_t room_;  // for strings
  DumpFault fault_ = DumpFault::none;
  std::string scratch_;
};

std::uint64_t DumpReader::length(std::uint8_t first) noexcept {
  constexpr std::uint8_t length_of_32_bits = 128;
  constexpr std::uint8_t length_of_64_bits = 129;
  const auto big = [&](std::size_t bytes) {
    std::uint64_t value = 0;
    for (const char each : take(bytes)) value = value << 8 | static_cast<unsigned char>(each);
    return value;
  };
  if (first < 64) return first;
  if (first < 128) return std::uint64_t{first & 63U} << 8 | byte();
  if (first == length_of_32_bits) return big(4);
  if (first == length_of_64_bits) return big(8);
  fail();
  return 0;
}

void DumpReader::string(std::string& to) {
  const std::uint8_t first = byte();
  switch (first) {
    case of_8_bits:
      return number(1, to);
    case of_16_bits:
      return number(2, to);
    case of_32_bits:
      return number(4, to);
    case packed:
      return unpack(to);
    default:
      break;
  }
  const std::string_view bytes = take(length(first));
  if (good() && spend(bytes.size())) to.append(bytes);
}

void DumpReader::number(std::size_t bytes, std::string& to) {
  constexpr unsigned all_bits = 64;
  const unsigned unused = all_bits - static_cast<unsigned>(8 * bytes);
  const std::int64_t value = static_cast<std::int64_t>(little(take(bytes)) << unused) >> unused;
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  const std::string_view digits{text, static_cast<std::size_t>(end - text)};
  if (good() && spend(digits.size())) to.append(digits);
}

void DumpReader::unpack(std::string& to) {
  const std::uint64_t packed_bytes = length(byte());
  const std::uint64_t bytes = length(byte());
  const std::string_view from = take(packed_bytes);
  if (!good()) return;
  if (bytes > lzf_bytes_max(from.size())) return fail();
  if (spend(bytes) && !append_unpacked(from, static_cast<std::size_t>(bytes), to)) fail();
}

// --- values --------------------------------------------------------------------------------------

using PackedList = bool (*)(std::string_view, ByteItems&);

void read_packed(DumpReader& in, PackedList list, ByteItems& items) {
  const std::string_view bytes = in.string();
  if (in.good() && !list(bytes, items)) in.fail();
}

void read_items(DumpReader& in, std::uint64_t each, DumpValue& value) {
  for (std::uint64_t count = in.count(); count > 0 && in.good(); --count) {
    for (std::uint64_t i = 0; i < each && in.good(); ++i) in.item(value.items);
  }
}

void read_quicklist(DumpReader& in, bool has_containers, DumpValue& value) {
  constexpr std::uint64_t plain = 1;
  constexpr std::uint64_t packed = 2;
  for (std::uint64_t count = in.count(); count > 0 && in.good(); --count) {
    const std::uint64_t container = has_containers ? in.byte() : packed;
    if (container == plain) {
      in.item(value.items);
    } else if (container == packed) {
      read_packed(in, has_containers ? read_listpack : read_ziplist, value.items);
    } else {
      in.fail();
    }
  }
}

double text_score(DumpReader& in) {
  constexpr std::uint8_t is_nan = 253;
  constexpr std::uint8_t is_infinite = 254;
  constexpr std::uint8_t is_minus_infinite = 255;
  const std::uint8_t bytes = in.byte();
  if (bytes == is_infinite) return HUGE_VAL;
  if (bytes == is_minus_infinite) return -HUGE_VAL;
  if (bytes != is_nan) {
    if (const auto score = score_of_text(in.take(bytes))) return *score;
  }
  in.fail();
  return 0;
}

void read_scored(DumpReader& in, bool is_binary, DumpValue& value) {
  for (std::uint64_t count = in.count(); count > 0 && in.good(); --count) {
    in.item(value.items);
    const double score = is_binary ? in.binary_score() : text_score(in);
    if (std::isnan(score)) in.fail();
    value.scores.push_back(score);
  }
}

void read_packed_scored(DumpReader& in, PackedList list, DumpValue& value) {
  ByteItems pairs;
  read_packed(in, list, pairs);
  if (pairs.size() % 2 != 0) in.fail();
  for (std::size_t i = 0; in.good() && i < pairs.size(); i += 2) {
    const auto score = score_of_text(pairs[i + 1]);
    if (!score) return in.fail();
    value.items.add(pairs[i]);
    value.scores.push_back(*score);
  }
}

void read_value(DumpReader& in, RdbType type, DumpValue& value) {
  switch (type) {
    case RdbType::string:
      return in.string(value.text);
    case RdbType::list:
    case RdbType::set:
      return read_items(in, 1, value);
    case RdbType::hash:
      return read_items(in, 2, value);
    case RdbType::sorted_set:
      return read_scored(in, false, value);
    case RdbType::sorted_set_2:
      return read_scored(in, true, value);
    case RdbType::hash_zipmap:
      return read_packed(in, read_zipmap, value.items);
    case RdbType::list_ziplist:
    case RdbType::hash_ziplist:
      return read_packed(in, read_ziplist, value.items);
    case RdbType::set_intset:
      return read_packed(in, read_intset, value.items);
    case RdbType::sorted_set_ziplist:
      return read_packed_scored(in, read_ziplist, value);
    case RdbType::sorted_set_listpack:
      return read_packed_scored(in, read_listpack, value);
    case RdbType::list_quicklist:
      return read_quicklist(in, false, value);
    case RdbType::list_quicklist_2:
      return read_quicklist(in, true, value);
    case RdbType::hash_listpack:
    case RdbType::set_listpack:
      return read_packed(in, read_listpack, value.items);
  }
  in.fail();
}

/// None: this is read nowhere.
std::optional<Kind> kind_of(RdbType type) noexcept {
  switch (type) {
    case RdbType::string:
      return Kind::string;
    case RdbType::list:
    case RdbType::list_ziplist:
    case RdbType::list_quicklist:
    case RdbType::list_quicklist_2:
      return Kind::list;
    case RdbType::set:
    case RdbType::set_intset:
    case RdbType::set_listpack:
      return Kind::set;
    case RdbType::sorted_set:
    case RdbType::sorted_set_2:
    case RdbType::sorted_set_ziplist:
    case RdbType::sorted_set_listpack:
      return Kind::sorted_set;
    case RdbType::hash:
    case RdbType::hash_zipmap:
    case RdbType::hash_ziplist:
    case RdbType::hash_listpack:
      return Kind::hash;
  }
  return std::nullopt;
}

bool is_footer_right(std::string_view payload) noexcept {
  if (payload.size() < dump_footer_bytes) return false;
  constexpr std::size_t sum_bytes = 8;
  const std::string_view summed = payload.substr(0, payload.size() - sum_bytes);
  const std::string_view footer = payload.substr(payload.size() - dump_footer_bytes);
  return little(footer.substr(0, 2)) <= rdb_version_read_max &&
         little(footer.substr(2)) == crc64(summed);
}

}  // namespace

DumpFault read_dump(std::string_view payload, std::size_t bytes_max, DumpValue& value) {
  value = {};
  if (!is_footer_right(payload)) return DumpFault::footer;
  DumpReader in{payload.substr(0, payload.size() - dump_footer_bytes), bytes_max};
  const auto type = static_cast<RdbType>(in.byte());
  const auto kind = kind_of(type);
  if (!in.good() || !kind) return DumpFault::format;
  value.kind = *kind;
  read_value(in, type, value);
  if (!in.good()) return in.fault();
  if (*kind == Kind::string) return DumpFault::none;
  const ByteItems& items = value.items;
  const bool is_paired = *kind != Kind::hash || items.size() % 2 == 0;
  if (items.empty() || !is_paired) return DumpFault::format;
  const bool is_large = items.bytes() + items.size() * item_bytes > bytes_max;
  return is_large ? DumpFault::too_large : DumpFault::none;
}

}  // namespace semel::net
