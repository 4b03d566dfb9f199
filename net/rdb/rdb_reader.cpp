#include "net/rdb/rdb_reader.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "net/rdb/crc64.hpp"
#include "net/rdb/dump_bytes.hpp"
#include "net/rdb/rdb_format.hpp"

namespace semel::net {

namespace {

constexpr std::string_view magic = "REDIS";
constexpr std::size_t header_bytes = 9;
constexpr unsigned version_with_sum = 5;
/// Of keys and facts: redis-server has no larger string.
constexpr std::size_t text_bytes_max = std::size_t{1} << 29;

std::string module_name(std::uint64_t id) {
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  constexpr unsigned version_bits = 10;
  constexpr std::size_t name_letters = 9;
  std::string name(name_letters, ' ');
  id >>= version_bits;
  for (std::size_t i = name_letters; i-- > 0; id >>= 6) name[i] = letters[id & 63];
  return name;
}

}  // namespace

void RdbReader::feed(std::string_view bytes) {
  // One move for each piece, and none while one item is longer than pieces.
  buffer_.erase(0, begin_);
  begin_ = 0;
  buffer_.append(bytes);
}

RdbProgress RdbReader::next() {
  item_ = {};
  if (fault_ != RdbFault::none) return RdbProgress::fault;
  while (!is_ended_) {
    if (version_ == 0) {
      if (const auto done = read_header(); version_ == 0) return done;
      continue;
    }
    if (left().empty()) return RdbProgress::more;
    const auto first = static_cast<std::uint8_t>(left().front());
    if (first == rdb_end) return read_end();
    if (!scan_) {
      const ItemShape shape = shape_of(first);
      if (shape == nullptr) return fail(RdbFault::first);
      scan_.emplace(shape, options_.item_bytes_max);
    }
    switch (scan_->scan(left().substr(1))) {
      case ScanResult::more:
        return RdbProgress::more;
      case ScanResult::damaged:
        return fail(RdbFault::damaged, 1 + scan_->place());
      case ScanResult::too_large:
        return fail(RdbFault::large);
      case ScanResult::whole:
        break;
    }
    const RdbProgress done = read_item(first, left().substr(1, scan_->place()));
    if (done == RdbProgress::fault) return done;
    consume(1 + scan_->place());
    scan_.reset();
    if (done == RdbProgress::item) return done;
  }
  return RdbProgress::end;
}

RdbProgress RdbReader::finish() {
  const RdbProgress done = next();
  return done == RdbProgress::more ? fail(RdbFault::cut, left().size()) : done;
}

void RdbReader::consume(std::size_t bytes) noexcept {
  if (version_ >= version_with_sum) sum_ = crc64(left().substr(0, bytes), sum_);
  begin_ += bytes;
  offset_ += bytes;
}

RdbProgress RdbReader::fail(RdbFault fault, std::uint64_t behind) noexcept {
  fault_ = fault;
  fault_offset_ = offset_ + behind;
  return RdbProgress::fault;
}

RdbProgress RdbReader::read_header() noexcept {
  const std::string_view header = left().substr(0, header_bytes);
  if (header.substr(0, magic.size()) != magic.substr(0, header.size())) {
    return fail(RdbFault::header);
  }
  unsigned version = 0;
  for (std::size_t i = magic.size(); i < header.size(); ++i) {
    if (header[i] < '0' || header[i] > '9') return fail(RdbFault::header);
    version = version * 10 + static_cast<unsigned>(header[i] - '0');
  }
  if (header.size() < header_bytes) return RdbProgress::more;
  if (version == 0) return fail(RdbFault::header);
  if (version > rdb_version_read_max) return fail(RdbFault::version);
  version_ = version;
  consume(header_bytes);
  return RdbProgress::more;
}

RdbProgress RdbReader::read_end() noexcept {
  constexpr std::size_t sum_bytes = 8;
  const std::size_t bytes = 1 + (version_ >= version_with_sum ? sum_bytes : 0);
  if (left().size() < bytes) return RdbProgress::more;
  const std::uint64_t written = little_number(left().substr(1, bytes - 1));
  consume(1);
  if (written != 0 && written != sum_) return fail(RdbFault::checksum);
  begin_ += bytes - 1;
  offset_ += bytes - 1;
  is_ended_ = true;
  return RdbProgress::end;
}

RdbProgress RdbReader::show(RdbItem item) noexcept {
  item.offset = offset_;
  item.db = db_;
  item_ = item;
  return RdbProgress::item;
}

RdbProgress RdbReader::read_item(std::uint8_t first, std::string_view bytes) {
  DumpBytes in{bytes, text_bytes_max};
  name_.clear();
  text_.clear();
  switch (first) {
    case rdb_idle:
      idle_s_ = in.length();
      return RdbProgress::more;
    case rdb_frequency:
      frequency_ = in.byte();
      return RdbProgress::more;
    case rdb_end_ms:
      end_ms_ = static_cast<std::int64_t>(little_number(bytes));
      return RdbProgress::more;
    case rdb_end_seconds: {
      constexpr std::int64_t second = 1000;
      end_ms_ = second * static_cast<std::int32_t>(little_number(bytes));
      return RdbProgress::more;
    }
    case rdb_database: {
      const std::uint64_t db = in.length();
      if (db > std::numeric_limits<int>::max()) return fail(RdbFault::damaged, 1);
      db_ = static_cast<int>(db);
      return RdbProgress::more;
    }
    case rdb_sizes: {
      const std::uint64_t keys = in.length();
      return show({.what = RdbItem::What::sizes, .keys = keys, .ends = in.length()});
    }
    case rdb_aux:
      in.string(name_);
      in.string(text_);
      if (!in.good()) return fail(RdbFault::damaged, 1);
      return show({.what = RdbItem::What::fact, .name = name_, .text = text_});
    case rdb_function:
      in.string(text_);
      if (!in.good()) return fail(RdbFault::damaged, 1);
      return show({.what = RdbItem::What::library, .text = text_});
    case rdb_module_aux:
      name_ = module_name(in.length());
      return show({.what = RdbItem::What::module_data, .name = name_});
    default:
      return read_key(first, bytes);
  }
}

RdbProgress RdbReader::read_key(std::uint8_t first, std::string_view bytes) {
  DumpBytes in{bytes, text_bytes_max};
  in.string(text_);
  if (!in.good()) return fail(RdbFault::damaged, 1);
  RdbItem item{.what = RdbItem::What::key,
               .key = text_,
               .type = first,
               .value = in.rest(),
               .end_ms = std::exchange(end_ms_, std::nullopt),
               .idle_s = std::exchange(idle_s_, std::nullopt),
               .frequency = std::exchange(frequency_, std::nullopt)};
  if (first == rdb_module_value) {
    name_ = module_name(in.length());
    item.what = RdbItem::What::module_key;
    item.name = name_;
  }
  return show(item);
}

std::string RdbReader::fault_text() const {
  const std::string at = " at byte " + std::to_string(fault_offset_);
  switch (fault_) {
    case RdbFault::none:
      return {};
    case RdbFault::header:
      return "no RDB file: it does not begin with REDIS and a version";
    case RdbFault::version:
      return "version " + std::string{left().substr(magic.size(), header_bytes - magic.size())} +
             " of RDB files is later than " + std::to_string(rdb_version_read_max);
    case RdbFault::first:
      return "an item of unknown type " +
             std::to_string(static_cast<unsigned char>(left().empty() ? 0 : left().front())) + at;
    case RdbFault::damaged:
      return "damaged" + at;
    case RdbFault::large:
      return "an item of more than " + std::to_string(options_.item_bytes_max) + " bytes" + at;
    case RdbFault::checksum:
      return "the checksum" + at + " is not that of the file";
    case RdbFault::cut:
      return "cut" + at;
  }
  return {};
}

}  // namespace semel::net
