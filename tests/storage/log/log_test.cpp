// The log alone: what is appended is read back, and what is not right is noticed.
#include "storage/log/log.hpp"

#include <set>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "storage/log/log_scan.hpp"
#include "storage/log/mark.hpp"
#include "storage/log/mutation_codec.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

using storage::Log;
using storage::Place;
using storage::RecordType;
using storage::ScanReport;
using storage::ScanRules;

namespace {

constexpr std::size_t segment_bytes = std::size_t{64} << 10;
constexpr ScanRules all_sound{7, ~Place{0}, 0, 0};
constexpr ScanRules all_whole{7, ~Place{0}, 0, ~Place{0}};
constexpr ScanRules nothing_sure{7, 0, 0, 0};
const storage::TimeLine line{1'700'000'000'000};

struct LogWorld {
  LogWorld() {
    REQUIRE(log.emplace(disk, Log::Setup{directory, segment_bytes, 7, 1}, crossed).prepare(false));
  }

  Place append(const std::string& key, std::size_t value_bytes = 8) {
    Mutation mutation;
    mutation.version = ++version;
    mutation.key = key;
    const std::string value(value_bytes, 'v');
    mutation.value = value;
    return log->append({&mutation, 1}, line, Timestamp{});
  }
  void prepare() {
    while (log->wants_segment()) REQUIRE(log->prepare(version % 2 != 0));
  }

  const Directory own;
  const std::string directory = own.path();
  storage::Disk disk;
  storage::Signal crossed;
  std::optional<Log> log;
  Version version = 0;
};

ScanReport read(std::string_view bytes, const storage::SegmentHeader& header,
                const ScanRules& rules, std::vector<std::string>& keys) {
  keys.clear();
  return storage::scan(bytes, header, "segment", rules, false,
                       [&](Place, RecordType, Bytes payload) {
                         Mutation mutation;
                         while (!payload.empty()) {
                           REQUIRE(storage::decode(payload, line, Timestamp{}, mutation));
                           keys.emplace_back(mutation.key);
                         }
                       });
}

}  // namespace

TEST_CASE("log: records are read in order of their places", "[storage][log]") {
  LogWorld world;
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back("k" + std::to_string(i));
    const Place end = world.append(expected.back(), static_cast<std::size_t>(i));
    REQUIRE(end == world.log->tail());
  }
  const storage::Segment& segment = *world.log->segment(1);
  std::vector<std::string> keys;
  const ScanReport report = read(segment.view(), segment.header(), all_sound, keys);
  CHECK(keys == expected);
  CHECK(report.records == 100);
  CHECK(report.damage.empty());
  CHECK(report.end == world.log->tail());
  CHECK(world.log->whole() == world.log->tail());
}

TEST_CASE("log: every changed bit of what was written is noticed", "[storage][log]") {
  LogWorld world;
  for (int i = 0; i < 5; ++i) world.append("key" + std::to_string(i));
  const storage::Segment& segment = *world.log->segment(1);
  const std::size_t written = world.log->tail() - segment.begin();
  std::string bytes{segment.view()};
  std::vector<std::string> keys;
  for (std::size_t bit = storage::segment_header_bytes * 8; bit < written * 8; ++bit) {
    char& byte = bytes[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    const ScanReport report = read(bytes, segment.header(), all_sound, keys);
    // Only what fills a record up to eight bytes may change: it says nothing.
    if (report.damage.empty()) CHECK(keys.size() == 5);
    if (report.damage.empty()) CHECK(byte == static_cast<char>(1 << (bit % 8)));
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
  }
}

TEST_CASE("log: what a killed process had begun is passed over, what is missing is noticed",
          "[storage][log]") {
  LogWorld world;
  world.append("first");
  const std::size_t begin = world.log->tail() - world.log->segment(1)->begin();
  world.append("second");
  const std::size_t end = world.log->tail() - world.log->segment(1)->begin();
  world.append("third");
  const storage::Segment& segment = *world.log->segment(1);
  const std::string whole{segment.view()};
  std::vector<std::string> keys;
  std::string bytes = whole;
  SECTION("it had taken the place") {
    bytes.replace(begin, end - begin, end - begin, '\0');
    CHECK(read(bytes, segment.header(), all_sound, keys).damage.empty());
  }
  SECTION("and written the head") {
    bytes.replace(begin + 8, end - begin - 8, end - begin - 8, '\0');
    const ScanReport report = read(bytes, segment.header(), all_sound, keys);
    CHECK(report.damage.empty());
    CHECK(report.unfinished == 1);
  }
  SECTION("and some of the payload") {
    bytes.replace(begin + 8, 8, 8, '\0');
    CHECK(read(bytes, segment.header(), all_sound, keys).damage.empty());
  }
  CHECK(keys == std::vector<std::string>{"first", "third"});
  // Where it is known that all was written, the same is damage.
  const ScanReport report = read(bytes, segment.header(), all_whole, keys);
  REQUIRE(report.damage.size() == 1);
  CHECK(report.damage[0].offset == begin);
}

TEST_CASE("log: behind what was synced a torn record is passed over", "[storage][log]") {
  LogWorld world;
  world.append("first", 2000);
  const std::size_t begin = world.log->tail() - world.log->segment(1)->begin();
  world.append("second", 2000);
  world.append("third", 2000);
  const storage::Segment& segment = *world.log->segment(1);
  std::string bytes{segment.view()};
  bytes.replace((begin + 1023) / 512 * 512, 512, 512, '\0');
  std::vector<std::string> keys;
  const ScanReport tolerant = read(bytes, segment.header(), nothing_sure, keys);
  CHECK(tolerant.damage.empty());
  CHECK(tolerant.bytes_skipped > 0);
  CHECK(keys == std::vector<std::string>{"first", "third"});
  ScanRules synced = nothing_sure;
  synced.sound_to = segment.begin() + begin + 1;
  const ScanReport strict = read(bytes, segment.header(), synced, keys);
  REQUIRE(strict.damage.size() == 1);
  CHECK(strict.damage[0].offset == begin);
}

TEST_CASE("log: bytes that a user stored are never taken for a record", "[storage][log]") {
  LogWorld world;
  world.append("outer");
  const storage::Segment& segment = *world.log->segment(1);
  // A whole record as a value of another, at another place.
  const std::string record{segment.view().substr(storage::segment_header_bytes, 64)};
  Mutation mutation;
  mutation.version = 9;
  mutation.key = "carrier";
  mutation.value = record;
  const std::size_t begin = world.log->tail() - segment.begin();
  REQUIRE(world.log->append({&mutation, 1}, line, Timestamp{}) != 0);
  std::string bytes{segment.view()};
  bytes[begin] = static_cast<char>(bytes[begin] ^ 1);  // its head is lost: what lies inside is seen
  std::vector<std::string> keys;
  CHECK(read(bytes, segment.header(), nothing_sure, keys).records == 1);
  CHECK(keys == std::vector<std::string>{"outer"});
}

TEST_CASE("log: threads that cross from segment to segment leave no gap", "[storage][log][race]") {
  LogWorld world;
  constexpr int thread_count = 4;
  constexpr int each = 2'000;
  std::atomic<int> running{thread_count};
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      Mutation mutation;
      for (int i = 0; i < each; ++i) {
        const std::string key = std::to_string(t) + "." + std::to_string(i);
        const std::string value(static_cast<std::size_t>(i % 97), 'v');
        mutation.version = 1;
        mutation.key = key;
        mutation.value = value;
        static_cast<void>(world.log->append({&mutation, 1}, line, Timestamp{}));
      }
      --running;
    });
  }
  std::set<std::string> found;
  std::vector<std::string> keys;
  std::uint64_t number = 1;
  const auto take = [&] {
    const storage::Segment* const segment = world.log->segment(number);
    if (segment == nullptr || !segment->is_complete()) return false;
    CHECK(read(segment->view(), segment->header(), all_whole, keys).damage.empty());
    found.insert(keys.begin(), keys.end());
    return static_cast<bool>(world.log->release(number++));
  };
  while (running != 0) {
    world.prepare();
    if (!take()) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  world.prepare();
  world.log->close_segment();
  while (take()) {
  }
  CHECK(found.size() == std::size_t{thread_count} * each);
  CHECK(number > 8);
}

TEST_CASE("log: a group larger than a record may be is put together again", "[storage][log]") {
  LogWorld world;
  world.prepare();
  std::vector<Mutation> group(40);
  const std::string value(1'000, 'v');
  std::vector<std::string> names;
  for (std::size_t i = 0; i < group.size(); ++i) names.push_back("k" + std::to_string(i));
  for (std::size_t i = 0; i < group.size(); ++i) {
    group[i].version = i + 1;
    group[i].key = names[i];
    group[i].value = value;
  }
  REQUIRE(world.log->append(group, line, Timestamp{}) != 0);
  storage::PartCollector parts;
  std::optional<std::string> found;
  std::size_t part_count = 0;
  const storage::Segment& segment = *world.log->segment(1);
  static_cast<void>(storage::scan(segment.view(), segment.header(), "segment", all_whole, false,
                                  [&](Place, RecordType type, Bytes payload) {
                                    REQUIRE(type == RecordType::part);
                                    ++part_count;
                                    CHECK_FALSE(found);
                                    found = parts.add(payload);
                                  }));
  CHECK(part_count > 1);
  REQUIRE(found);
  Bytes rest{*found};
  Mutation mutation;
  std::size_t count = 0;
  while (!rest.empty()) {
    REQUIRE(storage::decode(rest, line, Timestamp{}, mutation));
    CHECK(mutation.key == names[count++]);
  }
  CHECK(count == group.size());
  CHECK(parts.unfinished() == 0);
}

TEST_CASE("log: no new work is taken when the reserve is all that is left", "[storage][log]") {
  LogWorld world;
  world.prepare();
  std::uint64_t appended = 0;
  while (world.log->accepts()) {
    world.append("k", 1'000);
    world.prepare();
    ++appended;
  }
  const std::size_t used = world.log->tail() - world.log->oldest() * segment_bytes;
  CHECK(used > segment_bytes * (Log::segment_count - 2));
  CHECK(used <= segment_bytes * (Log::segment_count - 1) + 8'000);
  // What was under way still fits.
  for (int i = 0; i < 30; ++i) CHECK(world.append("k", 1'000) != 0);
  REQUIRE(world.log->release(1));
  world.prepare();
  CHECK(appended > 0);
}

TEST_CASE("log: a segment that is used again holds nothing of what it held", "[storage][log]") {
  LogWorld world;
  world.prepare();
  while (world.log->number_of(world.log->tail()) < 3) world.append("old", 1'000);
  REQUIRE(world.log->release(2));
  const auto names = [&] { return storage::list_directory(world.directory).value(); };
  const std::vector<std::string> before = names();
  const std::uint64_t next = world.log->number_of(world.log->room());
  REQUIRE(world.log->prepare(false));
  CHECK(names().size() == before.size());
  CHECK(names().back() == storage::segment_name(next * segment_bytes));
  CHECK(world.log->file_bytes() == before.size() * segment_bytes);

  const storage::Segment& again = *world.log->segment(next);
  std::vector<std::string> keys;
  const ScanReport report = read(again.view(), again.header(), all_sound, keys);
  CHECK(report.damage.empty());
  CHECK(keys.empty());
  const auto file = storage::SegmentFile::open(again.path());
  REQUIRE(file);
  CHECK_FALSE(file->check_header(next, 7));
  CHECK(file->holds_nothing());
  world.log->remove_unused();
  CHECK(names().size() == 1);  // that which is written
}

TEST_CASE("mark: the newer of two right slots counts", "[storage][mark]") {
  LogWorld world;
  const std::string path = world.directory + "/mark";
  {
    auto mark = storage::Mark::open(world.disk, path);
    REQUIRE(mark);
    storage::MarkContent content;
    CHECK((*mark)->read(content) == storage::Mark::Found::empty);
    for (Place tail = 1; tail <= 5; ++tail) {
      content.tail = tail;
      (*mark)->write(content);
    }
  }
  const auto damage = [&](std::size_t offset) {
    std::FILE* const file = std::fopen(path.c_str(), "r+b");
    REQUIRE(std::fseek(file, static_cast<long>(offset), SEEK_SET) == 0);
    REQUIRE(std::fputc('x', file) != EOF);
    REQUIRE(std::fclose(file) == 0);
  };
  const auto found = [&](storage::MarkContent& content) {
    auto mark = storage::Mark::open(world.disk, path);
    REQUIRE(mark);
    return (*mark)->read(content);
  };
  storage::MarkContent content;
  REQUIRE(found(content) == storage::Mark::Found::content);
  CHECK(content.tail == 5);
  damage(4096 + 20);  // the fifth was written to the second slot
  REQUIRE(found(content) == storage::Mark::Found::content);
  CHECK(content.tail == 4);
  damage(20);
  CHECK(found(content) == storage::Mark::Found::damaged);
}

}  // namespace semel::tests
