// RDB files: whatever the bytes are, nothing is read outside of them, what is shown does not depend
// on the pieces in which they arrive, and values are no larger than was allowed.
//
// Input: u8 bytes of a piece, 0: all at once | the file without REDIS and its version.
#include <cstdint>
#include <string>
#include <string_view>

#include "net/rdb/crc64.hpp"
#include "net/rdb/dump_reader.hpp"
#include "net/rdb/rdb_reader.hpp"
#include "tests/fuzz/check.hpp"

namespace semel::tests {
namespace {

using net::DumpFault;
using net::DumpValue;
using net::RdbItem;
using net::RdbProgress;
using net::RdbReader;

constexpr std::size_t bytes_max = 65'536;

struct Seen {
  std::uint64_t items = 0;
  std::uint64_t sum = 0;
  net::RdbFault fault = net::RdbFault::none;
  std::uint64_t offset = 0;
};

void check_value(const RdbItem& item) {
  DumpValue value;
  if (net::read_value(item.type, item.value, bytes_max, value) != DumpFault::none) return;
  check(value.items.bytes() + value.items.size() <= bytes_max, "more than was allowed");
  check(value.text.size() <= bytes_max, "a larger string than was allowed");
  std::size_t parts = 0;
  for (const auto& entry : value.stream.entries) parts += entry.parts;
  check(value.kind != Kind::stream || parts == value.items.size(), "parts of no entry");
  for (const auto& group : value.stream.groups) {
    for (const auto& pending : group.pending) {
      check(pending.consumer < group.consumers.size(), "pending with nobody");
    }
  }
}

Seen read(std::string_view file, std::size_t piece, bool with_values) {
  RdbReader reader{{.item_bytes_max = bytes_max}};
  Seen seen;
  RdbProgress progress = RdbProgress::more;
  const auto take = [&] {
    while ((progress = reader.next()) == RdbProgress::item) {
      const RdbItem& item = reader.item();
      ++seen.items;
      for (const std::string_view part : {item.name, item.text, item.key, item.value}) {
        seen.sum = net::crc64(part, seen.sum + item.offset);
      }
      if (with_values && item.what == RdbItem::What::key) check_value(item);
    }
  };
  for (std::size_t at = 0; at < file.size() && progress == RdbProgress::more; at += piece) {
    reader.feed(file.substr(at, piece));
    take();
  }
  if (progress == RdbProgress::more) progress = reader.finish();
  check(reader.offset() <= file.size(), "more was read than there is");
  seen.fault = reader.fault();
  seen.offset = reader.fault_offset();
  check((progress == RdbProgress::fault) == !reader.fault_text().empty(), "a fault without text");
  return seen;
}

}  // namespace
}  // namespace semel::tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::tests;
  if (size == 0) return 0;
  const std::string file =
      "REDIS0011" + std::string{reinterpret_cast<const char*>(data) + 1, size - 1};
  const Seen whole = read(file, file.size(), true);
  const Seen pieces = read(file, data[0] == 0 ? 1 : data[0], false);
  check(whole.items == pieces.items && whole.sum == pieces.sum, "other items in pieces");
  check(whole.fault == pieces.fault && whole.offset == pieces.offset, "another fault in pieces");
  return 0;
}
