#include "net/rdb/item_scan.hpp"

#include "base/assert.hpp"
#include "net/rdb/dump_bytes.hpp"
#include "net/rdb/rdb_format.hpp"

namespace semel::net {

namespace {

/// Of a loop without rounds: behind its closing bracket.
ItemShape behind_loop(ItemShape inside) noexcept {
  for (int open = 1; open > 0; ++inside) {
    if (*inside == '(') ++open;
    if (*inside == ')') --open;
  }
  return inside;
}

}  // namespace

/// Of a value, its key comes first.
ItemShape shape_of(std::uint8_t first) noexcept {
  switch (first) {
    case rdb_function:
      return "S";
    case rdb_module_aux:
      return "LLLM";
    case rdb_idle:
    case rdb_database:
      return "L";
    case rdb_frequency:
      return "1";
    case rdb_aux:
      return "SS";
    case rdb_sizes:
      return "LL";
    case rdb_end_ms:
      return "8";
    case rdb_end_seconds:
      return "4";
    case rdb_module_value:
      return "SLM";
    default:
      break;
  }
  switch (static_cast<RdbType>(first)) {
    case RdbType::string:
    case RdbType::hash_zipmap:
    case RdbType::list_ziplist:
    case RdbType::set_intset:
    case RdbType::sorted_set_ziplist:
    case RdbType::hash_ziplist:
    case RdbType::hash_listpack:
    case RdbType::sorted_set_listpack:
    case RdbType::set_listpack:
      return "SS";
    case RdbType::list:
    case RdbType::set:
    case RdbType::list_quicklist:
      return "S*(S)";
    case RdbType::sorted_set:
      return "S*(SD)";
    case RdbType::hash:
      return "S*(SS)";
    case RdbType::hash_ends:
      return "S8*(LSS)";
    case RdbType::hash_listpack_ends:
      return "S8S";
    case RdbType::sorted_set_2:
      return "S*(S8)";
    case RdbType::list_quicklist_2:
      return "S*(LS)";
    case RdbType::stream:
      return "S*(SS)LLL*(SLL*(888L)*(S8*(88)))";
    case RdbType::stream_2:
      return "S*(SS)LLLLLLLL*(SLLL*(888L)*(S8*(88)))";
    case RdbType::stream_3:
      return "S*(SS)LLLLLLLL*(SLLL*(888L)*(S88*(88)))";
  }
  return nullptr;
}

ScanResult ItemScan::scan(std::string_view bytes) noexcept {
  while (*next_ != '\0') {
    const ScanResult result = step(bytes.substr(place_));
    if (result != ScanResult::whole) return result;
  }
  return ScanResult::whole;
}

/// One letter, or none of it: `bytes` begin at place_.
ScanResult ItemScan::step(std::string_view bytes) noexcept {
  const char letter = *next_;
  ScanResult result = ScanResult::whole;
  std::size_t head = 0;
  std::uint64_t value = 0;
  switch (letter) {
    case '*':
      return begin_loop(bytes);
    case ')':
      end_loop();
      return ScanResult::whole;
    case 'S':
      result = skip_string(bytes, 0);
      break;
    case 'L':
      result = length(bytes, head, value);
      if (result == ScanResult::whole) result = skip(bytes, head, 0);
      break;
    case 'D':
      result = skip_score(bytes);
      break;
    case 'M': {
      bool is_end = false;
      result = skip_module_part(bytes, is_end);
      if (result == ScanResult::whole && !is_end) return result;
      break;
    }
    default:
      SEMEL_ASSERT(letter >= '1' && letter <= '9');
      result = skip(bytes, static_cast<std::size_t>(letter - '0'), 0);
  }
  if (result == ScanResult::whole) ++next_;
  return result;
}

/// `head` and `rest` bytes, if they are there.
ScanResult ItemScan::skip(std::string_view bytes, std::size_t head, std::uint64_t rest) noexcept {
  if (place_ + head > bytes_max_ || rest > bytes_max_ - place_ - head) return ScanResult::too_large;
  if (head > bytes.size() || rest > bytes.size() - head) return ScanResult::more;
  place_ += head + static_cast<std::size_t>(rest);
  return ScanResult::whole;
}

/// The length that begins at `head`, which is moved behind it.
ScanResult ItemScan::length(std::string_view bytes, std::size_t& head,
                            std::uint64_t& value) const noexcept {
  if (head >= bytes.size()) return ScanResult::more;
  const auto first = static_cast<unsigned char>(bytes[head]);
  std::size_t size = 1;
  if (first >= 64) size = 2;
  if (first >= 128) size = first == 128 ? 5 : 9;
  if (first > 129) return ScanResult::damaged;
  if (size > bytes.size() - head) return ScanResult::more;
  DumpBytes in{bytes.substr(head, size), 0};
  value = in.length();
  head += size;
  return ScanResult::whole;
}

ScanResult ItemScan::skip_string(std::string_view bytes, std::size_t head) noexcept {
  if (head >= bytes.size()) return ScanResult::more;
  switch (static_cast<unsigned char>(bytes[head])) {
    case DumpBytes::of_8_bits:
      return skip(bytes, head + 1, 1);
    case DumpBytes::of_16_bits:
      return skip(bytes, head + 1, 2);
    case DumpBytes::of_32_bits:
      return skip(bytes, head + 1, 4);
    case DumpBytes::packed: {
      std::uint64_t packed = 0;
      std::uint64_t whole = 0;
      ++head;
      if (const auto got = length(bytes, head, packed); got != ScanResult::whole) return got;
      if (const auto got = length(bytes, head, whole); got != ScanResult::whole) return got;
      return skip(bytes, head, packed);
    }
    default: {
      std::uint64_t size = 0;
      if (const auto got = length(bytes, head, size); got != ScanResult::whole) return got;
      return skip(bytes, head, size);
    }
  }
}

ScanResult ItemScan::skip_score(std::string_view bytes) noexcept {
  constexpr unsigned char is_nan = 253;  // and infinities above it
  if (bytes.empty()) return ScanResult::more;
  const auto size = static_cast<unsigned char>(bytes.front());
  return skip(bytes, 1, size >= is_nan ? 0 : size);
}

ScanResult ItemScan::skip_module_part(std::string_view bytes, bool& is_end) noexcept {
  enum Part : std::uint64_t { end, integer, number, of_float, of_double, text };
  std::uint64_t part = 0;
  std::size_t head = 0;
  if (const auto got = length(bytes, head, part); got != ScanResult::whole) return got;
  is_end = part == end;
  switch (part) {
    case end:
      return skip(bytes, head, 0);
    case integer:
    case number:
      if (const auto got = length(bytes, head, part); got != ScanResult::whole) return got;
      return skip(bytes, head, 0);
    case of_float:
      return skip(bytes, head, sizeof(float));
    case of_double:
      return skip(bytes, head, sizeof(double));
    case text:
      return skip_string(bytes, head);
    default:
      return ScanResult::damaged;
  }
}

ScanResult ItemScan::begin_loop(std::string_view bytes) noexcept {
  std::uint64_t rounds = 0;
  std::size_t head = 0;
  if (const auto got = length(bytes, head, rounds); got != ScanResult::whole) return got;
  if (const auto got = skip(bytes, head, 0); got != ScanResult::whole) return got;
  next_ += 2;
  if (rounds == 0) {
    next_ = behind_loop(next_);
    return ScanResult::whole;
  }
  SEMEL_ASSERT(depth_ < depth_max);
  loops_[depth_++] = {.begin = next_, .left = rounds};
  return ScanResult::whole;
}

void ItemScan::end_loop() noexcept {
  Loop& loop = loops_[depth_ - 1];
  if (--loop.left != 0) {
    next_ = loop.begin;
    return;
  }
  ++next_;
  --depth_;
}

}  // namespace semel::net
