// The log alone: what is appended is read back, and what is not right is noticed.
#include "storage/journal/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "storage/log/checkpoint.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/log/mutation_codec.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

using storage::Log;
using storage::LogExtent;
using storage::LogOffset;
using storage::RecordType;
using storage::ScanReport;
using storage::ScanRules;
using storage::Segment;

namespace {

constexpr std::size_t segment_bytes = std::size_t{64} << 10;
constexpr ScanRules all_sound{7, ~LogOffset{0}, 0, 0};
constexpr ScanRules all_whole{7, ~LogOffset{0}, 0, ~LogOffset{0}};
constexpr ScanRules nothing_sure{7, 0, 0, 0};
const storage::DurableClock line{1'700'000'000'000};

/// Knows the descriptors of the files that it made, and can refuse to remove files.
class WatchedDisk final : public storage::Disk {
 public:
  [[nodiscard]] Result<int> create(const std::string& path, std::size_t bytes) override {
    SEMEL_TRY(descriptor, Disk::create(path, bytes));
    descriptors.push_back(descriptor);
    return descriptor;
  }
  [[nodiscard]] Status remove(const std::string& path) override {
    if (refuses) return Error{ErrorCode::storage_failed, path};
    return Disk::remove(path);
  }
  std::vector<int> descriptors;
  bool refuses = false;
};

struct LogFixture {
  explicit LogFixture(Segment::Access access = Segment::Access::mapped) {
    Log::Setup setup{directory, segment_bytes, 7, 1};
    setup.access = access;
    REQUIRE(log.emplace(disk, setup, crossed).segments().prepare(false));
  }

  LogOffset append(const std::string& key, std::size_t value_bytes = 8) {
    Mutation mutation;
    mutation.version = ++version;
    mutation.key = key;
    const std::string value(value_bytes, 'v');
    mutation.value = value;
    return log->append({&mutation, 1}, line, Timestamp{});
  }
  void prepare() {
    while (log->segments().wants_segment()) REQUIRE(log->segments().prepare(version % 2 != 0));
  }

  const Directory own;
  const std::string directory = own.path();
  WatchedDisk disk;
  storage::Signal crossed;
  std::optional<Log> log;
  Version version = 0;
};

ScanReport read(std::string_view bytes, const storage::SegmentHeader& header,
                const ScanRules& rules, std::vector<std::string>& keys) {
  keys.clear();
  return storage::scan(
      bytes, header, "segment", rules, false, [&](const storage::LogRecord& record) {
        Mutation mutation;
        Bytes payload = record.payload;
        while (!payload.empty()) {
          REQUIRE(storage::decode(payload, line, Timestamp{}, mutation, record.base));
          keys.emplace_back(mutation.key);
        }
      });
}

}  // namespace

TEST_CASE("log: records are read in order of their places", "[storage][log]") {
  LogFixture fixture;
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back("k" + std::to_string(i));
    const LogOffset end = fixture.append(expected.back(), static_cast<std::size_t>(i));
    REQUIRE(end == fixture.log->tail());
  }
  const storage::Segment& segment = *fixture.log->segments().segment(1);
  std::vector<std::string> keys;
  const ScanReport report = read(segment.view(), segment.header(), all_sound, keys);
  CHECK(keys == expected);
  CHECK(report.records == 100);
  CHECK(report.damage.empty());
  CHECK(report.end == fixture.log->tail());
  CHECK(fixture.log->written().whole() == fixture.log->tail());
}

TEST_CASE("log: every changed bit of what was written is noticed", "[storage][log]") {
  LogFixture fixture;
  for (int i = 0; i < 5; ++i) fixture.append("key" + std::to_string(i));
  const storage::Segment& segment = *fixture.log->segments().segment(1);
  const std::size_t written = fixture.log->tail() - segment.begin();
  std::string bytes{segment.view()};
  std::vector<std::string> keys;
  for (std::size_t bit = storage::segment_header_bytes * 8; bit < written * 8; ++bit) {
    char& byte = bytes[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    CHECK_FALSE(read(bytes, segment.header(), all_sound, keys).damage.empty());
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
  }
}

TEST_CASE("log: what a killed process had begun is passed over, what is missing is noticed",
          "[storage][log]") {
  LogFixture fixture;
  fixture.append("first");
  const std::size_t begin = fixture.log->tail() - fixture.log->segments().segment(1)->begin();
  fixture.append("second");
  const std::size_t end = fixture.log->tail() - fixture.log->segments().segment(1)->begin();
  fixture.append("third");
  const storage::Segment& segment = *fixture.log->segments().segment(1);
  const std::string whole{segment.view()};
  std::vector<std::string> keys;
  std::string bytes = whole;
  SECTION("it had taken the place") {
    bytes.replace(begin, end - begin, end - begin, '\0');
    CHECK(read(bytes, segment.header(), all_sound, keys).damage.empty());
  }
  SECTION("and written the head") {
    bytes.replace(begin + 4, end - begin - 4, end - begin - 4, '\0');
    const ScanReport report = read(bytes, segment.header(), all_sound, keys);
    CHECK(report.damage.empty());
    CHECK(report.unfinished == 1);
  }
  SECTION("and some of the payload") {
    bytes.replace(begin + 4, 4, 4, '\0');
    CHECK(read(bytes, segment.header(), all_sound, keys).damage.empty());
  }
  CHECK(keys == std::vector<std::string>{"first", "third"});
  // Where it is known that all was written, the same is damage.
  const ScanReport report = read(bytes, segment.header(), all_whole, keys);
  REQUIRE(report.damage.size() == 1);
  CHECK(report.damage[0].offset == begin);
}

TEST_CASE("log: behind what was synced a torn record is passed over", "[storage][log]") {
  LogFixture fixture;
  fixture.append("first", 2000);
  const std::size_t begin = fixture.log->tail() - fixture.log->segments().segment(1)->begin();
  fixture.append("second", 2000);
  fixture.append("third", 2000);
  const storage::Segment& segment = *fixture.log->segments().segment(1);
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
  LogFixture fixture;
  fixture.append("outer");
  const storage::Segment& segment = *fixture.log->segments().segment(1);
  // A whole record as a value of another, at another place.
  const std::string record{
      segment.view().substr(storage::segment_header_bytes,
                            fixture.log->tail() - segment.begin() - storage::segment_header_bytes)};
  Mutation mutation;
  mutation.version = 9;
  mutation.key = "carrier";
  mutation.value = record;
  const std::size_t begin = fixture.log->tail() - segment.begin();
  REQUIRE(fixture.log->append({&mutation, 1}, line, Timestamp{}) != 0);
  std::string bytes{segment.view()};
  bytes[begin] = static_cast<char>(bytes[begin] ^ 1);  // its head is lost: what lies inside is seen
  std::vector<std::string> keys;
  CHECK(read(bytes, segment.header(), nothing_sure, keys).records == 1);
  CHECK(keys == std::vector<std::string>{"outer"});
}

TEST_CASE("log: threads that cross from segment to segment leave no gap", "[storage][log][race]") {
  // As after a load, over and over: more segments are made than a quiet time keeps.
  const bool takes_back = GENERATE(false, true);
  LogFixture fixture;
  constexpr int thread_count = 4;
  constexpr int each = 2'000;
  std::atomic<int> running{thread_count};
  std::atomic<int> refused{0};
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
        if (fixture.log->append({&mutation, 1}, line, Timestamp{}) == 0) ++refused;
      }
      --running;
    });
  }
  std::set<std::string> found;
  std::vector<std::string> keys;
  std::uint64_t number = 1;
  const auto take = [&] {
    const storage::Segment* const segment = fixture.log->segments().segment(number);
    if (segment == nullptr || !segment->is_complete()) return false;
    CHECK(read(segment->view(), segment->header(), all_whole, keys).damage.empty());
    found.insert(keys.begin(), keys.end());
    return static_cast<bool>(fixture.log->segments().release(number++));
  };
  while (running != 0) {
    fixture.log->segments().expect(takes_back ? 8 : 0);
    fixture.prepare();
    fixture.log->segments().expect(0);
    if (takes_back) fixture.log->segments().take_back();
    if (!take()) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(refused == 0);
  fixture.prepare();
  fixture.log->close_segment();
  while (take()) {
  }
  CHECK(found.size() == std::size_t{thread_count} * each);
  CHECK(number > 8);
}

TEST_CASE("log: segments that nobody wrote are taken back, and made again", "[storage][log]") {
  LogFixture fixture;
  for (int round = 0; round < 3; ++round) {
    fixture.append("k" + std::to_string(round));
    fixture.log->segments().expect(0);
    fixture.prepare();
    const LogOffset quiet = fixture.log->extent().room();
    fixture.log->segments().expect(8);
    fixture.prepare();
    CHECK(fixture.log->extent().room() > quiet);
    fixture.log->segments().expect(0);
    const LogOffset ready = fixture.log->extent().room();
    fixture.disk.refuses = true;
    fixture.log->segments().take_back();
    CHECK(fixture.log->extent().room() == ready);
    CHECK(fixture.log->segments().segment(fixture.log->extent().number_of(ready) - 1) != nullptr);
    fixture.disk.refuses = false;
    fixture.log->segments().take_back();
    CHECK(fixture.log->extent().room() == quiet);
    CHECK(fixture.log->segments().segment(fixture.log->extent().number_of(quiet)) == nullptr);
    CHECK(storage::list_directory(fixture.directory).value().size() ==
          fixture.log->segments().file_bytes() / segment_bytes);
  }
  std::vector<std::string> keys;
  const storage::Segment& segment = *fixture.log->segments().segment(1);
  CHECK(read(segment.view(), segment.header(), all_sound, keys).damage.empty());
  CHECK(keys == std::vector<std::string>{"k0", "k1", "k2"});
}

TEST_CASE("log: a group larger than a record may be is put together again", "[storage][log]") {
  LogFixture fixture;
  fixture.prepare();
  std::vector<Mutation> group(40);
  const std::string value(1'000, 'v');
  std::vector<std::string> names;
  for (std::size_t i = 0; i < group.size(); ++i) names.push_back("k" + std::to_string(i));
  for (std::size_t i = 0; i < group.size(); ++i) {
    group[i].version = i + 1;
    group[i].key = names[i];
    group[i].value = value;
  }
  REQUIRE(fixture.log->append(group, line, Timestamp{}) != 0);
  storage::PartCollector parts;
  std::optional<std::string> found;
  std::size_t part_count = 0;
  const storage::Segment& segment = *fixture.log->segments().segment(1);
  static_cast<void>(storage::scan(segment.view(), segment.header(), "segment", all_whole, false,
                                  [&](const storage::LogRecord& record) {
                                    REQUIRE(record.type == RecordType::part);
                                    ++part_count;
                                    CHECK_FALSE(found);
                                    found = parts.add(record.payload);
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

TEST_CASE("log: writers find as many segments as were expected while none is made",
          "[storage][log]") {
  LogFixture fixture;
  const std::uint64_t expected = GENERATE(0U, 3U, 8U, 100U);
  fixture.log->segments().expect(expected);
  fixture.prepare();
  CHECK(fixture.log->segments().is_ahead());
  const std::uint64_t first = fixture.log->extent().number_of(fixture.log->tail());
  while (fixture.log->extent().accepts()) fixture.append("k", 1'000);
  const std::uint64_t filled = fixture.log->extent().number_of(fixture.log->tail()) - first;
  CHECK(filled >= std::min<std::uint64_t>(expected, LogExtent::segment_count / 2 - 1));
  CHECK(filled <= std::max<std::uint64_t>(3, std::min(expected + 1, LogExtent::segment_count / 2)));
  CHECK_FALSE(fixture.log->segments().is_ahead());
}

TEST_CASE("log: no new work is taken when the reserve is all that is left", "[storage][log]") {
  LogFixture fixture;
  fixture.prepare();
  std::uint64_t appended = 0;
  while (fixture.log->extent().accepts()) {
    fixture.append("k", 1'000);
    fixture.prepare();
    ++appended;
  }
  const std::size_t used = fixture.log->tail() - fixture.log->extent().oldest() * segment_bytes;
  CHECK(used > segment_bytes * (LogExtent::segment_count - 2));
  CHECK(used <= segment_bytes * (LogExtent::segment_count - 1) + 8'000);
  // What was under way still fits.
  for (int i = 0; i < 30; ++i) CHECK(fixture.append("k", 1'000) != 0);
  REQUIRE(fixture.log->segments().release(1));
  fixture.prepare();
  CHECK(appended > 0);
}

TEST_CASE("log: what must exist ends with the segments that were made", "[storage][log]") {
  LogExtent extent{segment_bytes, 3};
  CHECK(extent.used() == 3 * segment_bytes);
  extent.note_made(3);
  CHECK(extent.used() == 3 * segment_bytes);
  static_cast<void>(extent.reserve(1'000));
  CHECK(extent.used() == extent.begin_of(3) + 1'000);
  static_cast<void>(extent.reserve(segment_bytes));  // its writer waits for the next one
  CHECK(extent.used() == extent.end_of(3));
  extent.note_made(4);
  CHECK(extent.used() == extent.begin_of(3) + 1'000 + segment_bytes);
}

TEST_CASE("log: a segment that is used again holds nothing of what it held", "[storage][log]") {
  LogFixture fixture;
  fixture.prepare();
  while (fixture.log->extent().number_of(fixture.log->tail()) < 3) fixture.append("old", 1'000);
  REQUIRE(fixture.log->segments().release(2));
  const auto names = [&] { return storage::list_directory(fixture.directory).value(); };
  const std::vector<std::string> before = names();
  const std::uint64_t next = fixture.log->extent().number_of(fixture.log->extent().room());
  REQUIRE(fixture.log->segments().prepare(false));
  CHECK(names().size() == before.size());
  CHECK(names().back() == storage::segment_name(next * segment_bytes));
  CHECK(fixture.log->segments().file_bytes() == before.size() * segment_bytes);

  const storage::Segment& again = *fixture.log->segments().segment(next);
  std::vector<std::string> keys;
  const ScanReport report = read(again.view(), again.header(), all_sound, keys);
  CHECK(report.damage.empty());
  CHECK(keys.empty());
  const auto file = storage::SegmentFile::open(again.path());
  REQUIRE(file);
  CHECK_FALSE(file->check_header(next, 7));
  CHECK(file->holds_nothing());
  fixture.log->segments().remove_unused();
  CHECK(names().size() == 1);  // that which is written
}

TEST_CASE("mark: the newer of two right slots counts", "[storage][mark]") {
  LogFixture fixture;
  const std::string path = fixture.directory + "/mark";
  {
    auto mark = storage::Checkpoint::open(fixture.disk, path);
    REQUIRE(mark);
    storage::CheckpointContent content;
    CHECK((*mark)->read(content).value() == storage::Checkpoint::Found::empty);
    for (LogOffset tail = 1; tail <= 5; ++tail) {
      content.tail = tail;
      CHECK((*mark)->write_and_sync(content));
    }
    // These go to the slot that is not the synced one, and nowhere else.
    for (LogOffset tail = 6; tail <= 9; ++tail) {
      content.tail = tail;
      CHECK((*mark)->write(content));
    }
  }
  const auto damage = [&](std::size_t offset) {
    std::FILE* const file = std::fopen(path.c_str(), "r+b");
    REQUIRE(std::fseek(file, static_cast<long>(offset), SEEK_SET) == 0);
    REQUIRE(std::fputc('x', file) != EOF);
    REQUIRE(std::fclose(file) == 0);
  };
  const auto found = [&](storage::CheckpointContent& content) {
    auto mark = storage::Checkpoint::open(fixture.disk, path);
    REQUIRE(mark);
    return (*mark)->read(content).value();
  };
  storage::CheckpointContent content;
  REQUIRE(found(content) == storage::Checkpoint::Found::content);
  CHECK(content.tail == 9);
  damage(20);
  REQUIRE(found(content) == storage::Checkpoint::Found::content);
  CHECK(content.tail == 5);
  damage(4096 + 20);  // the fifth was written to the second slot
  CHECK(found(content) == storage::Checkpoint::Found::damaged);
}

TEST_CASE("mark: a write that fails leaves the newer slot, and goes to the same one again",
          "[storage][mark]") {
  LogFixture fixture;
  const std::string path = fixture.directory + "/mark";
  auto mark = storage::Checkpoint::open(fixture.disk, path);
  REQUIRE(mark);
  storage::CheckpointContent content;
  content.tail = 1;
  REQUIRE((*mark)->write(content));
  const int descriptor = fixture.disk.descriptors.back();
  const int kept = dup(descriptor);
  const int full = open("/dev/full", O_RDWR);
  REQUIRE(dup2(full, descriptor) == descriptor);
  storage::CheckpointContent next = content;
  next.tail = 2;
  CHECK_FALSE((*mark)->write(next));
  CHECK(next.sequence == content.sequence);
  REQUIRE(dup2(kept, descriptor) == descriptor);
  close(kept);
  close(full);
  CHECK((*mark)->read(content).value() == storage::Checkpoint::Found::content);
  CHECK(content.tail == 1);
  REQUIRE((*mark)->write(next));
  CHECK((*mark)->read(content).value() == storage::Checkpoint::Found::content);
  CHECK(content.tail == 2);
}

TEST_CASE("mark: after a write that fails the synced slot is not written", "[storage][mark]") {
  LogFixture fixture;
  const std::string path = fixture.directory + "/mark";
  auto mark = storage::Checkpoint::open(fixture.disk, path);
  REQUIRE(mark);
  const int descriptor = fixture.disk.descriptors.back();
  const auto write = [&](storage::CheckpointContent& content) { return (*mark)->write(content); };
  const auto fail_to_write = [&](storage::CheckpointContent content) {
    const int kept = dup(descriptor);
    const int full = open("/dev/full", O_RDWR);
    REQUIRE(dup2(full, descriptor) == descriptor);
    CHECK_FALSE(write(content));
    REQUIRE(dup2(kept, descriptor) == descriptor);
    close(kept);
    close(full);
  };
  storage::CheckpointContent content;
  REQUIRE((*mark)->write_and_sync(content));
  const std::uint64_t synced = content.sequence;
  fail_to_write(content);
  REQUIRE(write(content));
  CHECK(content.sequence % 2 != synced % 2);
  // The slot that is not synced is broken now; a sync does not make it right.
  fail_to_write(content);
  REQUIRE((*mark)->sync());
  REQUIRE(write(content));
  CHECK(content.sequence % 2 != synced % 2);
  REQUIRE((*mark)->sync());
  REQUIRE(write(content));
  CHECK(content.sequence % 2 == synced % 2);
}

TEST_CASE("log: what frees has half a segment more than new work", "[storage][log]") {
  LogFixture fixture;
  fixture.prepare();
  int added = 0;
  for (; fixture.log->extent().accepts(); ++added) REQUIRE(fixture.append("k", 100) != 0);
  REQUIRE(added > 0);
  const LogOffset refused_at = fixture.log->tail();
  CHECK(fixture.log->extent().accepts_frees());
  while (fixture.log->extent().accepts_frees()) REQUIRE(fixture.append("k", 10) != 0);
  const std::size_t segment = fixture.log->extent().segment_bytes();
  CHECK(fixture.log->tail() - refused_at >= segment / 2 - segment / 32);
  CHECK(fixture.log->tail() - refused_at <= segment / 2 + segment / 32);
  // For operations under way there is a whole segment yet.
  CHECK(fixture.log->extent().room() - fixture.log->tail() >= segment - segment / 16);
  fixture.prepare();
  CHECK(fixture.log->extent().accepts_frees());
  CHECK(fixture.log->extent().accepts());
}

TEST_CASE("log: a file that is not mapped has each record before it is acknowledged",
          "[storage][log]") {
  LogFixture fixture{Segment::Access::written};
  fixture.prepare();
  for (const std::size_t bytes : std::array<std::size_t, 7>{0, 1, 900, 1'100, 5'000, 30'000, 3}) {
    const LogOffset end = fixture.append("k" + std::to_string(bytes), bytes);
    REQUIRE(end != 0);
    for (std::uint64_t number = 1; number <= fixture.log->extent().number_of(end - 1); ++number) {
      const storage::Segment& segment = *fixture.log->segments().segment(number);
      const auto file = storage::SegmentFile::open(segment.path());
      REQUIRE(file);
      CHECK(file->bytes() == segment.view());
      CHECK_FALSE(file->check_header(number, 7));
    }
  }
  CHECK(fixture.log->written().sync(fixture.log->tail()));
}

TEST_CASE("log: a record that cannot be written stops the log", "[storage][log]") {
  LogFixture fixture{Segment::Access::written};
  REQUIRE(fixture.append("before") != 0);
  const std::string path = fixture.log->segments().segment(1)->path();
  const int full = open("/dev/full", O_RDWR);
  const int descriptor = fixture.disk.descriptors.front();
  REQUIRE(dup2(full, descriptor) == descriptor);
  close(full);
  CHECK(fixture.append("lost") == 0);
  const auto file = storage::SegmentFile::open(path);
  REQUIRE(file);
  std::vector<std::string> keys;
  const ScanReport report = read(file->bytes(), file->header(), all_sound, keys);
  CHECK(report.damage.empty());
  CHECK(keys == std::vector<std::string>{"before"});
}

TEST_CASE("log: a sector that cannot be read is damage with its offset", "[storage][log]") {
  LogFixture fixture;
  std::vector<std::string> expected;
  while (fixture.log->tail() < 3 * segment_bytes / 2) {
    expected.push_back("k" + std::to_string(expected.size()));
    fixture.append(expected.back(), 500);
  }
  const std::string path = fixture.log->segments().segment(1)->path();
  static constexpr off_t bad_from = 8'192;
  const auto read_at = [](int descriptor, void* to, std::size_t bytes, off_t at) -> ssize_t {
    if (at < bad_from + 512 && at + static_cast<off_t>(bytes) > bad_from) {
      errno = EIO;
      return -1;
    }
    return pread(descriptor, to, bytes, at);
  };
  const auto file = storage::SegmentFile::open(path, read_at);
  REQUIRE(file);
  const auto damage = file->check_header(1, 7);
  REQUIRE(damage);
  CHECK(damage->offset == bad_from);
  CHECK(damage->what.find("cannot be read") != std::string::npos);
  // All around it is there.
  const auto whole = storage::SegmentFile::open(path);
  REQUIRE(whole);
  const auto from = static_cast<std::size_t>(bad_from);
  CHECK(file->bytes().substr(0, from) == whole->bytes().substr(0, from));
  CHECK(file->bytes().substr(from + 4'096) == whole->bytes().substr(from + 4'096));
}

}  // namespace semel::tests
