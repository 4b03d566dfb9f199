// The example of docs/disk-format.md is read by the code that reads segments.
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/kinds/element_keys.hpp"
#include "engine/object_api/object_calls.hpp"
#include "semel/engine_host.hpp"
#include "semel/semel.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/log/mutation_codec.hpp"

namespace semel::tests {

using namespace storage;

namespace {

std::string page() {
  std::ifstream file{SEMEL_DISK_FORMAT};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// The bytes of the one block that begins with ```hex; "OFFSET: XX XX .." a line, the rest zeros.
std::string documented_segment(std::size_t size) {
  const std::string text = page();
  const std::size_t begin = text.find("```hex\n");
  REQUIRE(begin != std::string::npos);
  std::istringstream lines{text.substr(begin + 7, text.find("```", begin + 7) - begin - 7)};
  std::string segment(size, '\0');
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words{line};
    std::size_t offset = 0;
    words >> offset;
    words.ignore(1);
    unsigned byte = 0;
    while (words >> std::hex >> byte) segment.at(offset++) = static_cast<char>(byte);
  }
  return segment;
}

/// The bytes of the one block that begins with ``` and `kind`.
std::string documented_mutation(const std::string& kind) {
  const std::string text = page();
  const std::string mark = "```" + kind + "\n";
  const std::size_t begin = text.find(mark);
  REQUIRE(begin != std::string::npos);
  const std::size_t bytes_at = begin + mark.size();
  std::istringstream words{text.substr(bytes_at, text.find("```", bytes_at) - bytes_at)};
  std::string bytes;
  unsigned byte = 0;
  while (words >> std::hex >> byte) bytes.push_back(static_cast<char>(byte));
  return bytes;
}

}  // namespace

TEST_CASE("disk format: the example of the page is a segment with two records",
          "[storage][disk_format]") {
  const std::string segment = documented_segment(65'536);
  SegmentHeader header;
  std::memcpy(&header, segment.data(), sizeof header);
  CHECK(header.magic == SegmentHeader::magic_value);
  CHECK(header.number == 3);
  CHECK(header.bytes == 65'536);
  CHECK(header.salt == 0x1122334455667788);
  CHECK(header.storage_id == 0x0102030405060708);
  CHECK(header.base == MutationBase{40, 1'700'000'000'000});
  CHECK(header.digest == header.right_digest());
  CHECK(header.is_valid());

  std::vector<std::string> seen;
  std::vector<RecordType> types;
  const ScanRules all_sound{header.storage_id, std::numeric_limits<LogOffset>::max(), 0, 0};
  const ScanReport report =
      scan(segment, header, "example", all_sound, false, [&](const LogRecord& record) {
        if (seen.empty()) CHECK(record.offset == 200'704);
        CHECK((record.base != nullptr) == (record.type == RecordType::near));
        types.push_back(record.type);
        seen.emplace_back(record.payload);
      });
  CHECK(report.damage.empty());
  CHECK(report.records == 2);
  REQUIRE(types == std::vector<RecordType>{RecordType::near, RecordType::whole});
  Bytes rest = seen[0];
  Mutation mutation;
  REQUIRE(decode(rest, DurableClock{0}, Timestamp{}, mutation, &header.base));
  CHECK(rest.empty());
  CHECK(mutation.type == Mutation::Type::put);
  CHECK(mutation.kind == Kind::string);
  CHECK(mutation.db == 0);
  CHECK(mutation.version == 42);
  CHECK(mutation.due == Timestamp{Millis{1'700'000'060'000}});
  CHECK(mutation.keep_until == mutation.due);
  CHECK(mutation.key == "order:7");
  CHECK(mutation.value == "CONSUMED");
  // And written anew they are the same bytes.
  std::string again(encoded_bytes(mutation, Timestamp{}, MutationForm::near), '\0');
  encode(mutation, DurableClock{0}, Timestamp{}, again.data(), &header.base);
  CHECK(again == seen[0]);

  rest = seen[1];
  REQUIRE(decode(rest, DurableClock{0}, Timestamp{}, mutation));
  CHECK(rest.empty());
  CHECK(mutation.type == Mutation::Type::erase);
  CHECK(mutation.version == Version{1} << 40);
  CHECK(mutation.due == no_end);
  CHECK(mutation.keep_until == Timestamp{Millis{1'700'000'060'000}});
  CHECK(mutation.key == "order:8");
  CHECK_FALSE(is_near(mutation, DurableClock{0}, header.base));
  again.assign(encoded_bytes(mutation, Timestamp{}), '\0');
  encode(mutation, DurableClock{0}, Timestamp{}, again.data());
  CHECK(again == seen[1]);
}

TEST_CASE("disk format: the mutation of the page is a hash", "[storage][disk_format][hash]") {
  const std::string bytes = documented_mutation("mutation");
  Bytes rest = bytes;
  Mutation mutation;
  REQUIRE(decode(rest, DurableClock{0}, Timestamp{}, mutation));
  CHECK(rest.empty());
  CHECK(mutation.kind == Kind::hash);
  CHECK(mutation.db == 0);
  CHECK(mutation.version == 43);
  CHECK(mutation.due == no_end);
  CHECK(mutation.key == "user:7");
  std::string again(encoded_bytes(mutation, Timestamp{}), '\0');
  encode(mutation, DurableClock{0}, Timestamp{}, again.data());
  CHECK(again == bytes);

  // What an engine makes of it, and makes itself.
  auto engine = Engine::open({});
  REQUIRE(engine);
  REQUIRE((*engine)->host().restore(mutation));
  CHECK((*engine)->hashes().hkeys("user:7").value() == std::vector<std::string>{"name", "age"});
  CHECK((*engine)->hashes().hvals("user:7").value() == std::vector<std::string>{"Ann", "41"});
  const FieldValue pairs[] = {{"name", "Ann"}, {"age", "41"}};
  REQUIRE((*engine)->hashes().hset("other", pairs).ok());
  std::string made;
  REQUIRE((*engine)->host().snapshot([&](const Mutation& put) {
    if (put.key == "other") made = put.value;
  }));
  CHECK(made == mutation.value);
}

TEST_CASE("disk format: the set of the page is one", "[storage][disk_format][object]") {
  const std::string bytes = documented_mutation("set");
  Bytes rest = bytes;
  Mutation mutation;
  REQUIRE(decode(rest, DurableClock{0}, Timestamp{}, mutation));
  CHECK(rest.empty());
  CHECK(mutation.kind == Kind::set);
  CHECK(mutation.version == 45);
  CHECK(mutation.due == no_end);
  CHECK(mutation.key == "tags");
  std::string again(encoded_bytes(mutation, Timestamp{}), '\0');
  encode(mutation, DurableClock{0}, Timestamp{}, again.data());
  CHECK(again == bytes);

  // What an engine makes of it, and makes itself.
  auto engine = Engine::open({});
  REQUIRE(engine);
  REQUIRE((*engine)->host().restore(mutation));
  REQUIRE(engine::change_object(**engine, {0, "other"}, Kind::set, [](engine::ObjectEdit& set) {
            set.put(engine::member_key("new"));
            set.put(engine::member_key("7"));
            return ErrorCode::ok;
          }).ok());
  std::string made;
  REQUIRE((*engine)->host().snapshot([&](const Mutation& put) {
    if (put.key == "other") made = put.value;
  }));
  CHECK(made == mutation.value);
}

TEST_CASE("disk format: the namespace of the page is one", "[storage][disk_format][namespaces]") {
  const std::string bytes = documented_mutation("namespace");
  Bytes rest = bytes;
  Mutation mutation;
  REQUIRE(decode(rest, DurableClock{0}, Timestamp{}, mutation));
  CHECK(rest.empty());
  CHECK(mutation.type == Mutation::Type::put);
  CHECK(mutation.kind == Kind::name_space);
  CHECK(mutation.db == 16);
  CHECK(mutation.version == 44);
  CHECK(mutation.due == no_end);
  CHECK(mutation.keep_until == no_end);
  CHECK(mutation.key == "orders");
  std::string again(encoded_bytes(mutation, Timestamp{}), '\0');
  encode(mutation, DurableClock{0}, Timestamp{}, again.data());
  CHECK(again == bytes);

  // What an engine makes of it, and makes itself.
  const Policy orders{.lease = Millis{300'000}, .attempts_max = 16, .db = 1};
  MemoryJournal journal;
  auto engine = Engine::open({.journal = &journal});
  REQUIRE(engine);
  REQUIRE((*engine)->host().restore(mutation));
  CHECK((*engine)->claims("orders", orders).has_value());
  Policy other = orders;
  other.db = 2;
  REQUIRE((*engine)->claims("other", other));
  std::string made;
  journal.replay([&](Ticket, const Mutation& put) { made = put.value; });
  REQUIRE(made.size() == mutation.value.size());
  CHECK(made.substr(2) == mutation.value.substr(2));
  CHECK(made[1] == 2);
}

}  // namespace semel::tests
