// RDB files: an item is one thing of the file, a piece a part of its bytes as it arrives.
#include "net/rdb/rdb_reader.hpp"

#include <map>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/rdb/crc64.hpp"
#include "net/rdb/dump_reader.hpp"
#include "tests/net/rdb/packed_bytes.hpp"

namespace semel::tests::packed {

using net::RdbFault;
using net::RdbItem;
using net::RdbProgress;
using net::RdbReader;

namespace {

std::string with_sum(const std::string& file) {
  return file + little(net::crc64(file), 8);
}

/// Everything that a reader shows of an item.
std::string show(const RdbItem& item) {
  const auto number = [](const auto& optional) {
    return optional ? std::to_string(static_cast<std::int64_t>(*optional)) : std::string{"-"};
  };
  return std::to_string(static_cast<int>(item.what)) + " " + std::to_string(item.db) + " " +
         std::string{item.name} + "|" + std::string{item.text} + "|" + std::string{item.key} + "|" +
         std::to_string(item.type) + "|" + std::string{item.value} + "|" + number(item.end_ms) +
         "|" + number(item.idle_s) + "|" + number(item.frequency) + "|" +
         std::to_string(item.keys) + "/" + std::to_string(item.ends) + "@" +
         std::to_string(item.offset);
}

struct Read {
  std::vector<std::string> items{};
  RdbFault fault = RdbFault::none;
  std::uint64_t offset = 0;
  std::string rest{};
  friend bool operator==(const Read&, const Read&) = default;
};

/// In pieces of `piece_bytes`.
Read read(const std::string& file, std::size_t piece_bytes, net::RdbOptions options = {}) {
  RdbReader reader{options};
  Read read;
  const auto take = [&] {
    RdbProgress progress = reader.next();
    for (; progress == RdbProgress::item; progress = reader.next()) {
      read.items.push_back(show(reader.item()));
    }
    return progress;
  };
  RdbProgress progress = RdbProgress::more;
  for (std::size_t at = 0; at < file.size() && progress != RdbProgress::fault; at += piece_bytes) {
    reader.feed(file.substr(at, piece_bytes));
    progress = take();
  }
  if (progress == RdbProgress::more) progress = reader.finish();
  read.fault = reader.fault();
  read.offset = reader.fault_offset();
  if (progress == RdbProgress::end) read.rest = reader.rest();
  return read;
}

std::string fact(const std::string& name, const std::string& value) {
  return "\xfa" + prefixed(name) + prefixed(value);
}

std::string raw_id(std::uint64_t ms, std::uint64_t seq) {
  std::string bytes = little(seq, 8) + little(ms, 8);
  return {bytes.rbegin(), bytes.rend()};
}

/// A stream of 7.2 with two groups, one of which has two consumers.
std::string stream() {
  const std::string pending = length(2) + raw_id(5, 1) + little(1000, 8) + length(3) +
                              raw_id(5, 2) + little(2000, 8) + length(1);
  const std::string consumers = length(2) + prefixed("a") + little(7, 8) + little(8, 8) +
                                length(1) + raw_id(5, 2) + prefixed("b") + little(7, 8) +
                                little(8, 8) + length(1) + raw_id(5, 1);
  return length(0) + length(0) + length(5) + length(2) + length(0) + length(0) + length(5) +
         length(2) + length(9) + length(2) + prefixed("g") + length(5) + length(2) + length(2) +
         pending + consumers + prefixed("h") + length(0) + length(0) + length(0) + length(0) +
         length(0);
}

/// One item of each kind.
std::string whole_file() {
  const std::string module = "\x02" + length(70'000) + "\x01" + length(3) + std::string{"\x03"} +
                             "abcd" + "\x04" + "abcdefgh" + "\x05" + prefixed("text") +
                             std::string(1, '\0');
  const std::string module_id = "\x81" + std::string{"\x81\xb6\x9c\x6d\x97\x65\x9c\x01", 8};
  std::string file = "REDIS0011" + fact("redis-ver", "7.2.0") + fact("bits", "\xc0\x40");
  file += "\xf5" + prefixed("#!lua name=x\n");
  file += "\xf7" + module_id + length(2) + length(1) + module;
  file += "\xfe" + length(3) + "\xfb" + length(9) + length(2);
  file += "\xfc" + little(1'700'000'000'123, 8) + "\xf8" + length(77) + std::string(1, '\0') +
          prefixed("s") + prefixed("v");
  file += "\xfd" + little(1'700'000'000, 4) + "\xf9\x09" + std::string(1, '\0') + "\xc1\x39\x30" +
          prefixed("numeric key");
  file += "\x01" + prefixed("list") + length(2) + prefixed("a") + prefixed(std::string(70, 'b'));
  file += "\x03" + prefixed("zset") + length(3) + prefixed("a") + std::string{"\x03"} + "1.5" +
          prefixed("b") + "\xfe" + prefixed("c") + "\xff";
  file += "\x05" + prefixed("zset2") + length(1) + prefixed("a") + std::string(8, '\x01');
  file += "\x12" + prefixed("quick") + length(2) + "\x01" + prefixed("plain") + "\x02" +
          prefixed(listpack_of_texts({"x", "y"}));
  file += "\xfe" + length(0);
  file += "\x07" + prefixed("tree") + module_id + module;
  file += "\x15" + prefixed("stream") + stream();
  file += "\x04" + prefixed("") + length(1) + prefixed("f") + prefixed("v");
  return with_sum(file + "\xff");
}

}  // namespace

TEST_CASE("rdb: a file in pieces of any size has the same items", "[net][rdb]") {
  const std::string file = whole_file();
  const Read whole = read(file, file.size());
  CHECK(whole.fault == RdbFault::none);
  REQUIRE(whole.items.size() == 14);
  CHECK(whole.items[0] == "0 0 redis-ver|7.2.0||0||-|-|-|0/0@9");
  CHECK(whole.items[2] == "3 0 |#!lua name=x\n||0||-|-|-|0/0@" + std::to_string(9 + 17 + 9));
  CHECK(whole.items[4].substr(0, 6) == "1 3 ||");
  CHECK(whole.items[5].substr(0, 35) == "2 3 ||s|0|\x01v|1700000000123|77|-|0/0");
  CHECK(whole.items[6].substr(0, 13) == "2 3 ||12345|0");
  CHECK(whole.items[6].find("|1700000000000|-|9|") != std::string::npos);
  CHECK(whole.items[7].find("|-|-|-|") != std::string::npos);  // an end is of one key only
  CHECK(whole.items[11].substr(0, 4) == "4 0 ");
  for (std::size_t piece = 1; piece < 80; ++piece) CHECK(read(file, piece) == whole);
  Read behind = read(file + "*1\r\n", 7);
  CHECK(behind.rest == "*1\r\n");
  behind.rest.clear();
  CHECK(behind == whole);
}

TEST_CASE("rdb: a cut file is refused at every byte, where it ends", "[net][rdb]") {
  const std::string file = whole_file();
  for (std::size_t size = 0; size < file.size(); ++size) {
    const Read part = read(file.substr(0, size), 13);
    CHECK(part.fault == RdbFault::cut);
    CHECK(part.offset == size);
  }
}

TEST_CASE("rdb: a changed byte is refused, or the checksum is not that of the file", "[net][rdb]") {
  const std::string file = whole_file();
  std::mt19937_64 random{Catch::rngSeed()};
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string changed = file;
    changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ (1 + random() % 255));
    INFO("byte " << at);
    const Read one = read(changed, changed.size());
    CHECK(read(changed, 1) == one);
    // A lower version has another end or none; a checksum of 0 is not compared.
    if (at < 5 || at > 8) CHECK(one.fault != RdbFault::none);
  }
}

TEST_CASE("rdb: versions, unknown items and a file without a checksum", "[net][rdb]") {
  const std::string body = std::string(1, '\0') + prefixed("k") + prefixed("v") + "\xff";
  CHECK(read("REDIS0013" + body, 99).fault == RdbFault::version);
  CHECK(read("REDIS0000" + body, 99).fault == RdbFault::header);
  CHECK(read("REDIX0009" + body, 99).fault == RdbFault::header);
  CHECK(read("RX", 99).fault == RdbFault::header);
  CHECK(read("REDIS00x9" + body, 1).fault == RdbFault::header);
  for (const char* version : {"0001", "0002", "0003", "0004"}) {
    CHECK(read(std::string{"REDIS"} + version + body, 3).items.size() == 1);
    CHECK(read(std::string{"REDIS"} + version + body, 3).fault == RdbFault::none);
  }
  CHECK(read("REDIS0005" + body, 3).fault == RdbFault::cut);
  CHECK(read("REDIS0009" + body + std::string(8, '\0'), 3).fault == RdbFault::none);
  CHECK(read("REDIS0009" + body + "\x01" + std::string(7, '\0'), 3).fault == RdbFault::checksum);
  for (const unsigned first : {6U, 8U, 22U, 100U, 244U, 246U}) {
    const Read unknown = read(std::string{"REDIS0009"} + static_cast<char>(first) + "abcdefg", 2);
    CHECK(unknown.fault == RdbFault::first);
    CHECK(unknown.offset == 9);
  }
}

TEST_CASE("rdb: lengths that the file does not have take no memory", "[net][rdb]") {
  const std::string head = "REDIS0009";
  const std::string huge = "\x81" + std::string(8, '\x7f');
  const net::RdbOptions options{.item_bytes_max = 1000};
  CHECK(read(head + "\xfa" + huge, 99, options).fault == RdbFault::large);
  CHECK(read(head + std::string(1, '\0') + prefixed("k") + huge, 99, options).fault ==
        RdbFault::large);
  // So many elements are just not there.
  CHECK(read(head + "\x01" + prefixed("k") + huge, 99, options).fault == RdbFault::cut);
  CHECK(read(head + "\x15" + prefixed("k") + huge + huge, 99, options).fault == RdbFault::large);
  CHECK(read(head + "\xfe" + huge, 99, options).fault == RdbFault::damaged);
  const auto item = [&](std::size_t bytes) {
    const std::string body =
        std::string(1, '\0') + prefixed("k") + prefixed(std::string(bytes, 'x'));
    return read(head + body + "\xff" + std::string(8, '\0'), 50, options);
  };
  CHECK(item(996).fault == RdbFault::none);  // 2 of the key, 2 of the length
  CHECK(item(997).fault == RdbFault::large);
  CHECK(item(997).offset == head.size());
}

}  // namespace semel::tests::packed
