// Payloads of dumps: the checksum, LZF, packed lists, and what is refused.
#include "net/rdb/dump_reader.hpp"

#include <string>
#include "tests/support/catch.hpp"

#include "net/rdb/lzf.hpp"
#include "net/rdb/packed_lists.hpp"
#include "tests/net/rdb/packed_bytes.hpp"

namespace semel::tests::packed {

using net::ByteItems;
using net::DumpFault;
using net::DumpValue;
using net::read_dump;

namespace {

constexpr std::size_t bytes_max = std::size_t{1} << 20;

Items list_of(const ByteItems& items) {
  Items list;
  for (std::size_t i = 0; i < items.size(); ++i) list.emplace_back(items[i]);
  return list;
}

DumpFault fault_of(const std::string& bytes, std::size_t most = bytes_max) {
  DumpValue value;
  return read_dump(bytes, most, value);
}

const Items samples{"",
                    "a",
                    "0",
                    "12",
                    "13",
                    "-1",
                    "127",
                    "-128",
                    "128",
                    "32767",
                    "-32769",
                    "8388607",
                    "-8388609",
                    "2147483648",
                    "-9223372036854775808",
                    std::string(63, 'x'),
                    std::string(64, 'y'),
                    std::string(300, 'z'),
                    std::string(20'000, 'w'),
                    "end"};

/// Bytes with one of them changed, or without their end, are refused or something else is read, but
/// nothing outside of them: the sanitizers look.
template <class Read>
void damage(const std::string& whole, Read&& read) {
  for (std::size_t size = 0; size < std::min<std::size_t>(whole.size(), 600); ++size) {
    ByteItems items;
    const std::string part = whole.substr(0, size);
    CHECK_FALSE(read(std::string_view{part}, items));
  }
  for (std::size_t at = 0; at < std::min<std::size_t>(whole.size(), 300); ++at) {
    for (const int bits : {1, 0x80, 0xff}) {
      std::string other = whole;
      other[at] = static_cast<char>(other[at] ^ bits);
      ByteItems items;
      static_cast<void>(read(std::string_view{other}, items));
      CHECK(items.bytes() <= 20 * whole.size());
    }
  }
}

}  // namespace

TEST_CASE("dump: the checksum is that of redis-server", "[net][rdb]") {
  CHECK(net::crc64("123456789") == 0xe9c6d914c4b8d9ca);
  CHECK(net::crc64("") == 0);
}

TEST_CASE("dump: LZF bytes are unpacked, and no others", "[net][rdb]") {
  const auto unpack = [](const std::string& from, std::size_t bytes) {
    std::string to{"before"};
    return net::append_unpacked(from, bytes, to) ? to : "refused";
  };
  CHECK(unpack(std::string{"\x02"} + "abc", 3) == "beforeabc");
  const std::string repeats{
      "\x02"
      "abc\x20\x02",
      6};  // three from three back
  CHECK(unpack(repeats, 6) == "beforeabcabc");
  const std::string run{
      "\x00"
      "a\xe0\x01\x00",
      5};  // ten from one back
  CHECK(unpack(run, 11) == "before" + std::string(11, 'a'));
  CHECK(unpack(run, 10) == "refused");
  CHECK(unpack(run, 12) == "refused");
  CHECK(unpack(run.substr(0, 4), 11) == "refused");
  CHECK(unpack(std::string{"\x20\x00", 2}, 3) == "refused");  // nothing is there to be repeated
  CHECK(unpack(std::string{"\x05"} + "abc", 6) == "refused");
  CHECK(unpack("", 0) == "refused");
  CHECK(unpack("\x01"
               "ab",
               std::size_t{1} << 40) == "refused");
}

TEST_CASE("dump: ziplists, zipmaps, intsets and listpacks are read", "[net][rdb]") {
  ByteItems items;
  REQUIRE(net::read_ziplist(ziplist(samples), items));
  CHECK(list_of(items) == samples);
  items = {};
  REQUIRE(net::read_zipmap(zipmap(samples), items));
  CHECK(list_of(items) == samples);
  items = {};
  REQUIRE(net::read_intset(intset({-70'000, -1, 0, 5}, 4), items));
  CHECK(list_of(items) == Items{"-70000", "-1", "0", "5"});
  items = {};
  REQUIRE(net::read_listpack(listpack_of_texts({"a", "", "abc"}), items));
  CHECK(list_of(items) == Items{"a", "", "abc"});
  for (const auto& empty : {ziplist({}), listpack_of_texts({})}) CHECK(empty.size() < 12);
}

TEST_CASE("dump: damaged packed lists are not read beyond their bytes", "[net][rdb]") {
  damage(ziplist(samples), net::read_ziplist);
  damage(zipmap(samples), net::read_zipmap);
  damage(intset({-70'000, -1, 0, 5}, 8), net::read_intset);
  damage(listpack_of_texts({"a", "", "abc", std::string(60, 'b')}), net::read_listpack);
  ByteItems items;
  CHECK_FALSE(net::read_intset(intset({1, 1}, 2), items));
  CHECK_FALSE(net::read_intset(intset({2, 1}, 2), items));
  CHECK_FALSE(net::read_intset(intset({1, 2}, 3), items));
}

TEST_CASE("dump: a payload is taken up to version 12, with its checksum", "[net][rdb]") {
  const std::string value = prefixed("v");
  for (const int version : {1, 6, 10, 11, 12}) {
    CHECK(fault_of(payload(0, value, static_cast<std::uint16_t>(version))) == DumpFault::none);
  }
  CHECK(fault_of(payload(0, value, 13)) == DumpFault::footer);
  const std::string right = payload(0, value);
  for (std::size_t at = 0; at < right.size(); ++at) {
    std::string wrong = right;
    wrong[at] = static_cast<char>(wrong[at] ^ 1);
    CHECK(fault_of(wrong) == DumpFault::footer);
    CHECK(fault_of(right.substr(0, at)) == DumpFault::footer);
  }
}

TEST_CASE("dump: what has no elements, other types and damaged values are refused", "[net][rdb]") {
  for (int type = 0; type < 256; ++type) {
    CHECK(fault_of(payload(static_cast<char>(type), {})) == DumpFault::format);
  }
  for (const int type : {1, 2, 3, 4, 5, 14, 18}) {
    CHECK(fault_of(payload(static_cast<char>(type), length(0))) == DumpFault::format);
  }
  CHECK(fault_of(payload(10, prefixed(ziplist({})))) == DumpFault::format);
  CHECK(fault_of(payload(11, prefixed(intset({}, 2)))) == DumpFault::format);
  CHECK(fault_of(payload(16, prefixed(listpack_of_texts({})))) == DumpFault::format);
  CHECK(fault_of(payload(13, prefixed(ziplist({"a", "1", "b"})))) == DumpFault::format);
  CHECK(fault_of(payload(12, prefixed(ziplist({"a", "no score"})))) == DumpFault::format);
  CHECK(fault_of(payload(12, prefixed(ziplist({"a", "nan"})))) == DumpFault::format);
  CHECK(fault_of(payload(3, length(1) + prefixed("a") + "\xfd")) == DumpFault::format);
  const std::string nan = little(0x7ff8000000000000, 8);
  CHECK(fault_of(payload(5, length(1) + prefixed("a") + nan)) == DumpFault::format);
  CHECK(fault_of(payload(18, length(1) + "\x03" + prefixed("a"))) == DumpFault::format);
  CHECK(fault_of(payload(18, length(1) + "\x01" + prefixed("a"))) == DumpFault::none);
}

TEST_CASE("dump: a count or a length that the payload does not hold takes no memory",
          "[net][rdb]") {
  const std::string huge = "\x81" + std::string(8, '\x7f');
  for (const int number : {0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 16, 17, 18, 20}) {
    const char type = static_cast<char>(number);
    CHECK(fault_of(payload(type, huge)) == DumpFault::format);
    CHECK(fault_of(payload(type, huge + prefixed("a"))) == DumpFault::format);
  }
  // LZF: three bytes that are said to be a gigabyte.
  const std::string lzf = "\xc3" + length(3) + "\x80\x40" + std::string(3, '\0') + "abc";
  CHECK(fault_of(payload(0, lzf)) == DumpFault::format);
}

TEST_CASE("dump: more than may be stored is refused before it is", "[net][rdb]") {
  CHECK(fault_of(payload(0, prefixed(std::string(1'000, 'v'))), 1'000) == DumpFault::none);
  CHECK(fault_of(payload(0, prefixed(std::string(1'001, 'v'))), 1'000) == DumpFault::too_large);
  // Empty elements take room as well.
  CHECK(fault_of(payload(1, length(200) + std::string(200, '\0')), 1'000) == DumpFault::none);
  CHECK(fault_of(payload(1, length(201) + std::string(201, '\0')), 1'000) == DumpFault::too_large);
  const Items empty(201);
  CHECK(fault_of(payload(10, prefixed(ziplist(empty))), 1'000) == DumpFault::too_large);
  // 1,000 bytes of LZF that are 88 times as many.
  std::string run{
      "\x00"
      "a",
      2};
  for (int i = 0; i < 300; ++i) run += std::string{"\xe0\xff\x00", 3};
  const std::string lzf = "\xc3" + length(run.size()) + length(1 + 300 * 264) + run;
  CHECK(fault_of(payload(0, lzf)) == DumpFault::none);
  CHECK(fault_of(payload(0, lzf), 10'000) == DumpFault::too_large);
}

}  // namespace semel::tests::packed
