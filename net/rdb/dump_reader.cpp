#include "net/rdb/dump_reader.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "net/rdb/crc64.hpp"
#include "net/rdb/dump_bytes.hpp"
#include "net/rdb/dump_stream.hpp"
#include "net/rdb/packed_lists.hpp"

namespace semel::net {

namespace {

std::optional<double> score_of_text(std::string_view text) noexcept {
  double score = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), score);
  if (error != std::errc{} || end != text.data() + text.size() || std::isnan(score)) {
    return std::nullopt;
  }
  return score;
}

// --- values --------------------------------------------------------------------------------------

using PackedList = bool (*)(std::string_view, ByteItems&);

void read_packed(DumpBytes& in, PackedList list, ByteItems& items) {
  const std::string_view bytes = in.string();
  if (in.good() && !list(bytes, items)) in.fail();
}

void read_items(DumpBytes& in, std::uint64_t each, DumpValue& value) {
  for (std::uint64_t count = in.count(); count > 0 && in.good(); --count) {
    for (std::uint64_t i = 0; i < each && in.good(); ++i) in.item(value.items);
  }
}

void read_quicklist(DumpBytes& in, bool has_containers, DumpValue& value) {
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

double text_score(DumpBytes& in) {
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

void read_scored(DumpBytes& in, bool is_binary, DumpValue& value) {
  for (std::uint64_t count = in.count(); count > 0 && in.good(); --count) {
    in.item(value.items);
    const double score = is_binary ? in.binary_score() : text_score(in);
    if (std::isnan(score)) in.fail();
    value.scores.push_back(score);
  }
}

void read_packed_scored(DumpBytes& in, PackedList list, DumpValue& value) {
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

/// What the file has behind a type of ends; a number below 0 stands for none.
std::int64_t end_ms(std::uint64_t number) noexcept {
  const auto ms = static_cast<std::int64_t>(number);
  return ms > 0 ? ms : 0;
}

void read_ends(DumpBytes& in, DumpValue& value) {
  constexpr std::size_t ms_bytes = 8;
  const std::uint64_t first = little_number(in.take(ms_bytes));
  for (std::uint64_t count = in.count(); count > 0 && in.good(); --count) {
    const std::uint64_t distance = in.length();  // and 1
    value.ends.push_back(distance == 0 ? 0 : end_ms(first + distance - 1));
    in.item(value.items);
    in.item(value.items);
  }
}

void read_packed_ends(DumpBytes& in, DumpValue& value) {
  constexpr std::size_t ms_bytes = 8;
  static_cast<void>(in.take(ms_bytes));  // each field has its own
  ByteItems triples;
  read_packed(in, read_listpack, triples);
  if (triples.size() % 3 != 0) in.fail();
  for (std::size_t i = 0; in.good() && i < triples.size(); i += 3) {
    const std::string_view text = triples[i + 2];
    std::int64_t ms = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
    if (error != std::errc{} || end != text.data() + text.size() || ms < 0) return in.fail();
    value.items.add(triples[i]);
    value.items.add(triples[i + 1]);
    value.ends.push_back(ms);
  }
}

void read_value(DumpBytes& in, RdbType type, DumpValue& value) {
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
    case RdbType::hash_ends:
      return read_ends(in, value);
    case RdbType::hash_listpack_ends:
      return read_packed_ends(in, value);
    case RdbType::stream:
      return read_stream(in, StreamForm::of_5_0, value);
    case RdbType::stream_2:
      return read_stream(in, StreamForm::of_7_0, value);
    case RdbType::stream_3:
      return read_stream(in, StreamForm::of_7_2, value);
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
    case RdbType::hash_ends:
    case RdbType::hash_listpack_ends:
      return Kind::hash;
    case RdbType::stream:
    case RdbType::stream_2:
    case RdbType::stream_3:
      return Kind::stream;
  }
  return std::nullopt;
}

bool is_footer_right(std::string_view payload) noexcept {
  if (payload.size() < dump_footer_bytes) return false;
  constexpr std::size_t sum_bytes = 8;
  const std::string_view summed = payload.substr(0, payload.size() - sum_bytes);
  const std::string_view footer = payload.substr(payload.size() - dump_footer_bytes);
  return little_number(footer.substr(0, 2)) <= rdb_version_read_max &&
         little_number(footer.substr(2)) == crc64(summed);
}

}  // namespace

std::optional<Kind> kind_of_type(std::uint8_t type) noexcept {
  return kind_of(static_cast<RdbType>(type));
}

DumpFault read_value(std::uint8_t type, std::string_view bytes, std::size_t bytes_max,
                     DumpValue& value) {
  value = {};
  const auto kind = kind_of(static_cast<RdbType>(type));
  if (!kind) return DumpFault::format;
  // A stream is unpacked twice: its nodes, and what they have.
  constexpr std::size_t stream_share = 3;
  const std::size_t room = *kind == Kind::stream ? stream_share * bytes_max : bytes_max;
  DumpBytes in{bytes, room};
  value.kind = *kind;
  read_value(in, static_cast<RdbType>(type), value);
  if (!in.good()) return in.fault();
  if (*kind == Kind::string) return DumpFault::none;
  const ByteItems& items = value.items;
  const bool is_paired = *kind != Kind::hash || items.size() % 2 == 0;
  const bool may_be_empty = *kind == Kind::stream;
  if ((items.empty() && !may_be_empty) || !is_paired) return DumpFault::format;
  const bool is_large = items.bytes() + items.size() * dump_item_bytes > bytes_max;
  return is_large ? DumpFault::too_large : DumpFault::none;
}

DumpFault read_dump(std::string_view payload, std::size_t bytes_max, DumpValue& value) {
  value = {};
  if (!is_footer_right(payload)) return DumpFault::footer;
  payload.remove_suffix(dump_footer_bytes);
  if (payload.empty()) return DumpFault::format;
  const auto type = static_cast<std::uint8_t>(payload.front());
  return read_value(type, payload.substr(1), bytes_max, value);
}

}  // namespace semel::net
