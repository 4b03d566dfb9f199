// Payloads of RESTORE: whatever they are, nothing is read outside of them, what is made of them is
// whole and no larger than was allowed, and what DUMP makes of that is the same again.
//
// Input: the payload without its checksum, which is added: else nothing would come behind it.
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/kinds/stream_keys.hpp"
#include "net/dump/stream_record.hpp"
#include "net/rdb/crc64.hpp"
#include "net/rdb/dump_reader.hpp"
#include "net/rdb/dump_writer.hpp"
#include "tests/fuzz/check.hpp"

namespace semel::tests {
namespace {

using net::DumpFault;
using net::DumpValue;
using net::DumpWriter;
using net::RdbType;

constexpr std::size_t bytes_max = 65'536;

std::string with_checksum(std::string_view bytes) {
  std::string payload{bytes};
  std::uint64_t crc = net::crc64(bytes);
  for (int i = 0; i < 8; ++i, crc >>= 8) payload.push_back(static_cast<char>(crc));
  return payload;
}

RdbType type_of(Kind kind) {
  switch (kind) {
    case Kind::list:
      return RdbType::list;
    case Kind::set:
      return RdbType::set;
    case Kind::sorted_set:
      return RdbType::sorted_set_2;
    case Kind::hash:
      return RdbType::hash;
    default:
      return RdbType::string;
  }
}

std::string written_stream(const DumpValue& value) {
  const std::string record = net::record_of_stream(value);
  check(engine::is_stream_sound(record), "a stream that is not sound");
  DumpWriter to{RdbType::stream_2};
  check(net::write_stream(to, engine::ObjectReader{record, Kind::stream}), "no stream");
  return to.take();
}

std::string written(const DumpValue& value) {
  if (value.kind == Kind::stream) return written_stream(value);
  DumpWriter to{type_of(value.kind)};
  if (value.kind == Kind::string) {
    to.string(value.text);
    return to.take();
  }
  to.count(value.kind == Kind::hash ? value.items.size() / 2 : value.items.size());
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    to.string(value.items[i]);
    if (value.kind == Kind::sorted_set) to.score(value.scores[i]);
  }
  return to.take();
}

void check_whole(const DumpValue& value) {
  const std::size_t items = value.items.size();
  if (value.kind == Kind::string) {
    check(items == 0 && value.text.size() <= bytes_max, "a string that is not one");
    return;
  }
  check(items != 0 || value.kind == Kind::stream, "an object without elements");
  check(value.items.bytes() + items <= bytes_max, "more than was allowed");
  check(value.scores.size() == (value.kind == Kind::sorted_set ? items : 0), "other scores");
  check(value.kind != Kind::hash || items % 2 == 0, "a field without a value");
  for (const double score : value.scores) check(!std::isnan(score), "NaN as a score");
}

void check_alike(const DumpValue& one, const DumpValue& other) {
  check(one.stream.last == other.stream.last, "another last id");
  check(one.stream.entries.size() == other.stream.entries.size(), "other entries");
  check(one.stream.groups.size() == other.stream.groups.size(), "other groups");
  check(one.kind == other.kind && one.text == other.text, "another value");
  check(one.items.size() == other.items.size(), "other elements");
  for (std::size_t i = 0; i < one.items.size(); ++i) {
    check(one.items[i] == other.items[i], "another element");
  }
  check(one.scores == other.scores, "another score");
}

}  // namespace
}  // namespace semel::tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::tests;
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  DumpValue value;
  check(semel::net::read_dump(bytes, bytes_max, value) != DumpFault::none || size > 10,
        "less than a footer is taken");
  if (semel::net::read_dump(with_checksum(bytes), bytes_max, value) != DumpFault::none) return 0;
  check_whole(value);
  DumpValue again;
  check(semel::net::read_dump(written(value), bytes_max, again) == DumpFault::none,
        "what is written is refused");
  check_alike(value, again);
  return 0;
}
