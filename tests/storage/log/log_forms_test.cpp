// The log chooses between the two forms of a group: near to its segment's base it is short, and
// what is far from it comes back as exactly.
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "storage/journal/log.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/log/mutation_codec.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

using namespace storage;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t segment_bytes = std::size_t{64} << 10;
constexpr ScanRules all_sound{7, ~LogOffset{0}, 0, 0};
constexpr Version first_version = Version{1} << 40;
constexpr std::uint64_t start_ms = 1'700'000'000'000;
const DurableClock line{static_cast<std::int64_t>(start_ms) - 1'000};
constexpr Timestamp start{1'000ms};

struct FormsFixture {
  explicit FormsFixture(MutationBase base = {first_version, start_ms}) {
    Log::Setup setup{directory, segment_bytes, 7, 1};
    setup.base = base;
    log.emplace(disk, setup, crossed);
    prepare();
  }
  LogOffset append(Version version, Timestamp due, Timestamp now = start) {
    Mutation put;
    put.version = version;
    put.due = put.keep_until = due;
    put.key = "0123456789abcdef";
    put.value = "8 bytes.";
    return log->append({&put, 1}, line, now);
  }
  void prepare() {
    while (log->segments().wants_segment()) REQUIRE(log->segments().prepare(false));
  }
  /// Versions with their ends, of all that a segment holds.
  std::map<Version, Timestamp> found_in(std::uint64_t number, ScanReport& report,
                                        std::map<RecordType, int>& types) {
    std::map<Version, Timestamp> found;
    const Segment& segment = *log->segments().segment(number);
    report = scan(segment.view(), segment.header(), "segment", all_sound, false,
                  [&](const LogRecord& record) {
                    ++types[record.type];
                    Bytes rest = record.payload;
                    Mutation put;
                    while (!rest.empty()) {
                      REQUIRE(decode(rest, line, start, put, record.base));
                      found[put.version] = put.due;
                      CHECK(put.value == "8 bytes.");
                    }
                  });
    CHECK(report.damage.empty());
    return found;
  }

  const Directory own;
  const std::string directory = own.path();
  Disk disk;
  Signal crossed;
  std::optional<Log> log;
};

}  // namespace

TEST_CASE("log forms: a mutation of a key of 16 bytes and a value of 8 takes 44 bytes",
          "[storage][log][forms]") {
  FormsFixture fixture;
  const LogOffset begin = fixture.log->tail();
  REQUIRE(fixture.append(first_version + 5, start + 3'600'000ms) != 0);
  CHECK(fixture.log->tail() - begin == 44);
  REQUIRE(fixture.append(first_version + 6, no_end) != 0);
  CHECK(fixture.log->tail() - begin == 44 + 40);
  REQUIRE(fixture.append(first_version - (Version{1} << 32), start + 3'600'000ms) != 0);
  CHECK(fixture.log->tail() - begin == 44 + 40 + 52);
}

TEST_CASE("log forms: what is far from the base comes back exactly, and so does what is near",
          "[storage][log][forms]") {
  FormsFixture fixture;
  std::map<Version, Timestamp> expected;
  constexpr Version half = Version{1} << 31;
  const std::vector<Version> versions{1,
                                      first_version - half - 1,
                                      first_version - half,
                                      first_version - 1,
                                      first_version,
                                      first_version + half - 1,
                                      first_version + half,
                                      limits::version_max};
  const std::vector<Timestamp> ends{start - 1ms, start, start + Millis{0xffff'fffe},
                                    start + Millis{0xffff'ffff}, no_end};
  Version unique = 0;
  for (const Version version : versions) {
    for (const Timestamp end : ends) {
      const Version used = version > first_version + half ? version - unique++ : version;
      expected[used] = end;
      REQUIRE(fixture.append(used, end) != 0);
    }
  }
  ScanReport report;
  std::map<RecordType, int> types;
  CHECK(fixture.found_in(1, report, types) == expected);
  CHECK(types[RecordType::near] > 0);
  CHECK(types[RecordType::whole] > 0);
  CHECK(types[RecordType::near] + types[RecordType::whole] == 40);
}

TEST_CASE("log forms: a group that comes to a segment with another base is written again in full",
          "[storage][log][forms]") {
  FormsFixture fixture;
  // The first group of each segment moves the base of those that are made from then on.
  constexpr Version far = first_version + (Version{1} << 33);
  REQUIRE(fixture.append(far, no_end) != 0);
  const std::uint64_t ready = fixture.log->extent().number_of(fixture.log->extent().room());
  fixture.log->close_segment();
  fixture.prepare();
  REQUIRE(fixture.log->segments().segment(ready)->header().base == MutationBase{far, start_ms});
  while (fixture.log->extent().number_of(fixture.log->tail()) < ready) {
    REQUIRE(fixture.append(first_version + 1, no_end) != 0);
    fixture.log->close_segment();
    fixture.prepare();
  }
  // Encoded for the base of the segment before.
  REQUIRE(fixture.append(first_version + 2, no_end) != 0);
  ScanReport report;
  std::map<RecordType, int> types;
  const std::map<Version, Timestamp> expected{{first_version + 2, no_end}};
  CHECK(fixture.found_in(ready, report, types) == expected);
  CHECK(types[RecordType::whole] == 1);
  CHECK(report.records == 2);  // and a filler in the place that was taken for the near form
  // From now on the new base is expected.
  REQUIRE(fixture.append(far + 1, no_end) != 0);
  CHECK(fixture.found_in(ready, report, types).size() == 2);
  CHECK(types[RecordType::near] == 1);
  CHECK(report.records == 3);
  CHECK(fixture.log->written().written(ready * segment_bytes, fixture.log->tail()) ==
        fixture.log->tail());
}

TEST_CASE("log forms: bases follow versions and time, and never go back", "[storage][log][forms]") {
  FormsFixture fixture;
  Version version = first_version;
  Timestamp now = start;
  std::uint64_t last = 0;
  for (int segment = 0; segment < 20; ++segment) {
    version += Version{1} << 30;
    now += 240h;
    REQUIRE(fixture.append(version, now + 480h, now) != 0);
    fixture.log->close_segment();
    fixture.prepare();
    REQUIRE(fixture.append(1, no_end, start) !=
            0);  // restored, so far behind: the next one's first
    fixture.log->close_segment();
    fixture.prepare();
    const std::uint64_t newest = fixture.log->extent().number_of(fixture.log->extent().room()) - 1;
    const MutationBase base = fixture.log->segments().segment(newest)->header().base;
    CHECK(base.version == version);
    CHECK(base.ms == line.to_durable_ms(now));
    last = newest;
    REQUIRE(fixture.log->segments().release(fixture.log->extent().oldest() + 1));
  }
  CHECK(last > 40);
}

TEST_CASE("log forms: a group as large as a record may be, and one byte more",
          "[storage][log][forms]") {
  const bool is_near = GENERATE(false, true);
  FormsFixture fixture{is_near ? MutationBase{first_version, start_ms} : MutationBase{}};
  Mutation put;
  put.version = first_version;
  put.key = "k";
  for (const std::size_t more : {0U, 1U}) {
    const MutationForm form = is_near ? MutationForm::near : MutationForm::full;
    std::string value;
    put.value = value;
    while (encoded_bytes(put, start, form) < segment_bytes / 4 + more) {
      value.resize(value.size() + segment_bytes / 4 + more - encoded_bytes(put, start, form), 'v');
      put.value = value;
      // The size of the value is itself written; one byte may be left over.
      while (encoded_bytes(put, start, form) > segment_bytes / 4 + more) {
        value.pop_back();
        put.value = value;
      }
    }
    REQUIRE(fixture.log->append({&put, 1}, line, start) != 0);
    fixture.log->close_segment();
    fixture.prepare();
  }
  std::map<RecordType, int> types;
  PartCollector parts;
  std::vector<std::size_t> values;
  for (std::uint64_t number = 1; number < fixture.log->extent().number_of(fixture.log->tail());
       ++number) {
    const Segment& segment = *fixture.log->segments().segment(number);
    const ScanReport report = scan(segment.view(), segment.header(), "segment", all_sound, false,
                                   [&](const LogRecord& record) {
                                     ++types[record.type];
                                     std::optional<std::string> group;
                                     if (record.type == RecordType::part) {
                                       group = parts.add(record.payload);
                                       if (!group) return;
                                     }
                                     Bytes rest = group ? Bytes{*group} : record.payload;
                                     Mutation back;
                                     REQUIRE(decode(rest, line, start, back, record.base));
                                     CHECK(back.version == put.version);
                                     values.push_back(back.value.size());
                                   });
    CHECK(report.damage.empty());
  }
  CHECK(types[is_near ? RecordType::near : RecordType::whole] == 1);
  CHECK(types[RecordType::part] > 1);
  REQUIRE(values.size() == 2);
  CHECK(values[1] > values[0]);
}

TEST_CASE("log forms: threads with far and near versions leave no gap", "[storage][log][race]") {
  FormsFixture fixture;
  constexpr int thread_count = 4;
  constexpr int each = 3'000;
  std::atomic<int> running{thread_count};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      Mutation put;
      put.key = "0123456789abcdef";
      for (int i = 0; i < each; ++i) {
        // Each thread draws from ranges of its own, and they run apart.
        const Version step = Version{1} << (24 * (t % 2));
        put.version = first_version + static_cast<Version>(t) * (Version{1} << 50) +
                      static_cast<Version>(i) * step;
        const std::string value(static_cast<std::size_t>(i % 300), 'v');
        put.value = value;
        if (fixture.log->append({&put, 1}, line, start) == 0) ++refused;
      }
      --running;
    });
  }
  std::map<Version, std::size_t> found;
  std::uint64_t number = 1;
  const ScanRules all_whole{7, ~LogOffset{0}, 0, ~LogOffset{0}};
  const auto take = [&] {
    const Segment* const segment = fixture.log->segments().segment(number);
    if (segment == nullptr || !segment->is_complete()) return false;
    const ScanReport report = scan(segment->view(), segment->header(), "segment", all_whole, false,
                                   [&](const LogRecord& record) {
                                     Bytes rest = record.payload;
                                     Mutation put;
                                     REQUIRE(decode(rest, line, start, put, record.base));
                                     found[put.version] = put.value.size();
                                   });
    CHECK(report.damage.empty());
    return static_cast<bool>(fixture.log->segments().release(number++));
  };
  LogOffset seen = fixture.log->tail();
  while (running != 0) {
    fixture.prepare();
    seen = fixture.log->written().written(seen, fixture.log->tail());
    if (!take()) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  fixture.prepare();
  CHECK(fixture.log->written().written(seen, fixture.log->tail()) == fixture.log->tail());
  fixture.log->close_segment();
  while (take()) {
  }
  CHECK(refused == 0);
  CHECK(found.size() == std::size_t{thread_count} * each);
}

}  // namespace semel::tests
