// Records of the log: sizes around the limits of their two layouts, what is left of them by a kill,
// a power cut or an earlier use, and each bit of them.
#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "storage/log/log_scan.hpp"
#include "storage/log/record_writer.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

using namespace storage;

namespace {

constexpr std::size_t segment_bytes = std::size_t{64} << 10;
constexpr ScanRules all_sound{7, ~LogOffset{0}, 0, 0};
constexpr ScanRules all_whole{7, ~LogOffset{0}, 0, ~LogOffset{0}};
constexpr ScanRules nothing_sure{7, 0, 0, 0};

std::string payload_of(std::size_t bytes) {
  std::string payload(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) payload[i] = static_cast<char>(i * 7 + bytes);
  return payload;
}

/// A segment that a test writes record by record.
class SegmentFixture {
 public:
  explicit SegmentFixture(Segment::Access access = Segment::Access::mapped) {
    SegmentHeader header;
    header.number = 3;
    header.bytes = segment_bytes;
    header.storage_id = 7;
    header.first = 3;
    auto made = Segment::make(disk_, own_.path(), header, false, access);
    REQUIRE(made);
    segment_ = *std::move(made);
    at_ = segment_->begin() + segment_header_bytes;
  }
  /// Returns its offset in the segment.
  std::size_t write(RecordType type, const std::string& payload) {
    return write(type, payload, RecordShape::of(payload.size()));
  }
  std::size_t fill(std::size_t bytes) {
    return write(RecordType::filler, "", RecordShape::filler_of(bytes));
  }
  [[nodiscard]] std::string bytes() const { return std::string{segment_->view()}; }
  [[nodiscard]] const SegmentHeader& header() const { return segment_->header(); }
  [[nodiscard]] const std::string& path() const { return segment_->path(); }
  [[nodiscard]] std::size_t end() const { return at_ - segment_->begin(); }

 private:
  std::size_t write(RecordType type, const std::string& payload, RecordShape shape) {
    const LogOffset begin = at_;
    std::string padded = payload;
    if (type != RecordType::filler) padded.resize(shape.padded());
    RecordWriter record{*segment_, begin, type, shape};
    REQUIRE((type == RecordType::filler ? record.seal() : record.copy_and_seal(padded.data())));
    at_ += shape.bytes();
    return begin - segment_->begin();
  }

  const Directory own_;
  Disk disk_;
  std::unique_ptr<Segment> segment_;
  LogOffset at_ = 0;
};

/// Payloads of the complete records.
std::vector<std::string> found_in(const std::string& bytes, const SegmentHeader& header,
                                  const ScanRules& rules, ScanReport& report) {
  std::vector<std::string> found;
  report = scan(bytes, header, "segment", rules, false,
                [&](const LogRecord& record) { found.emplace_back(record.payload); });
  return found;
}

/// What releases of formats 2 to 5 wrote.
void write_old(std::string& segment, const SegmentHeader& header, std::size_t& at,
               const std::string& payload) {
  const std::uint64_t low = payload.size() | std::uint64_t{1} << 32;
  const LogOffset offset = header.number * header.bytes + at;
  const std::uint64_t head =
      low | (mix(mix(header.salt ^ low) + offset) >> 40) << 40 | std::uint64_t{1} << 63;
  const std::uint64_t seal =
      XXH3_64bits_withSeed(payload.data(), payload.size(), header.salt ^ mix(head));
  std::memcpy(&segment[at], &head, 8);
  std::memcpy(&segment[at + 8], &seal, 8);
  std::memcpy(&segment[at + 16], payload.data(), payload.size());
  at += 16 + round_up(payload.size(), 8);
}

SegmentHeader old_header() {
  SegmentHeader header;
  header.magic = SegmentHeader::old_magic_value;
  header.number = 3;
  header.bytes = segment_bytes;
  header.salt = 0x1122334455667788;
  header.storage_id = 7;
  header.base.version = XXH3_64bits(&header, 48);
  return header;
}

}  // namespace

TEST_CASE("record: each size is found again, and takes what it should", "[storage][log][record]") {
  SegmentFixture fixture{GENERATE(Segment::Access::mapped, Segment::Access::written)};
  std::vector<std::string> expected;
  for (const std::size_t size :
       {0U, 1U, 3U, 4U, 5U, 251U, 252U, 253U, 254U, 255U, 256U, 257U, 1023U, 1024U, 1025U, 8192U}) {
    for (const RecordType type : {RecordType::whole, RecordType::near, RecordType::part}) {
      const std::size_t before = fixture.end();
      expected.push_back(payload_of(size));
      fixture.write(type, expected.back());
      const std::size_t header = size <= 255 ? 8 : 16;
      CHECK(fixture.end() - before == header + (size + 3) / 4 * 4);
    }
    if (fixture.end() > segment_bytes / 2) break;
  }
  ScanReport report;
  CHECK(found_in(fixture.bytes(), fixture.header(), all_sound, report) == expected);
  CHECK(report.damage.empty());
  CHECK(report.records == expected.size());
  CHECK(report.end == fixture.header().number * segment_bytes + fixture.end());
  const auto file = SegmentFile::open(fixture.path());
  REQUIRE(file);
  CHECK(file->bytes() == fixture.bytes());
}

TEST_CASE("record: a filler takes any room but four bytes", "[storage][log][record]") {
  SegmentFixture fixture;
  std::vector<std::string> expected;
  for (std::size_t bytes = 8; bytes <= 600; bytes += 4) {
    CHECK(RecordShape::filler_of(bytes).bytes() == bytes);
    fixture.fill(bytes);
  }
  expected.push_back("behind");
  fixture.write(RecordType::whole, "behind");
  ScanReport report;
  CHECK(found_in(fixture.bytes(), fixture.header(), all_sound, report) == expected);
  CHECK(report.records == (600 - 8) / 4 + 2);
  const LogOffset begin = fixture.header().number * segment_bytes;
  CHECK(first_gap(fixture.bytes(), fixture.header(), begin + segment_header_bytes) ==
        begin + fixture.end());
}

TEST_CASE("record: four bytes at the begin of a segment may stay zero, eight not",
          "[storage][log][record]") {
  SegmentFixture fixture;
  const std::size_t begin = segment_header_bytes;
  fixture.fill(8);
  fixture.write(RecordType::whole, "first");
  std::string bytes = fixture.bytes();
  const LogOffset base = fixture.header().number * segment_bytes;
  ScanReport report;
  // A record that begins four bytes later, where its head is valid.
  const RecordShape shape = RecordShape::of(4);
  const RecordHead head{fixture.header().salt, base + begin + 4, RecordType::whole, shape};
  const std::string payload = "late";
  const std::uint64_t seal = head.seal_of(payload);
  std::fill(bytes.begin() + begin, bytes.end(), '\0');
  std::memcpy(&bytes[begin + 4], &head.first, 4);
  std::memcpy(&bytes[begin + 8], reinterpret_cast<const char*>(&seal) + 4, 4);
  std::memcpy(&bytes[begin + 12], payload.data(), 4);
  ScanRules whole = all_whole;
  whole.whole_to = whole.stop = base + begin + shape.bytes() + 4;
  CHECK(found_in(bytes, fixture.header(), whole, report) == std::vector<std::string>{"late"});
  CHECK(report.damage.empty());
  CHECK(first_gap(bytes, fixture.header(), base + begin) == whole.stop);
  bytes[begin + 4] = static_cast<char>(bytes[begin + 4] ^ 1);
  CHECK(found_in(bytes, fixture.header(), whole, report).empty());
  CHECK(report.damage.size() == 1);
  CHECK(first_gap(bytes, fixture.header(), base + begin) == base + begin);
}

TEST_CASE("record: each changed bit of each kind is noticed", "[storage][log][record]") {
  SegmentFixture fixture;
  fixture.write(RecordType::near, payload_of(35));
  fixture.write(RecordType::whole, payload_of(1));
  fixture.write(RecordType::part, payload_of(300));
  fixture.write(RecordType::near, payload_of(255));
  fixture.fill(8);
  const std::string bytes = fixture.bytes();
  for (std::size_t bit = segment_header_bytes * 8; bit < fixture.end() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    ScanReport report;
    static_cast<void>(found_in(changed, fixture.header(), all_sound, report));
    INFO("bit " << bit);
    CHECK_FALSE(report.damage.empty());
  }
}

TEST_CASE("record: a seal's last word is not zero, and is not one changed bit away from it",
          "[storage][log][record]") {
  const auto upper_of = [](std::uint64_t sum) { return RecordHead::seal_of_sum(sum) >> 32; };
  CHECK(std::popcount(upper_of(5)) == 32);
  for (unsigned bit = 32; bit < 64; ++bit) {
    CHECK(std::popcount(upper_of(std::uint64_t{1} << bit | 5)) == 31);
    CHECK((RecordHead::seal_of_sum(std::uint64_t{1} << bit | 5) & 0xffff'ffff) == 5);
  }
  CHECK(RecordHead::seal_of_sum(0x0300'0000'0000'0001) == 0x0300'0000'0000'0001);
}

TEST_CASE("record: whatever a kill leaves of one is passed over", "[storage][log][record]") {
  const std::size_t size = GENERATE(0U, 1U, 5U, 255U, 256U, 999U);
  SegmentFixture fixture;
  fixture.write(RecordType::whole, "before");
  const std::size_t at = fixture.write(RecordType::near, payload_of(size));
  const std::size_t next = fixture.write(RecordType::whole, "behind");
  const std::string whole = fixture.bytes();
  const std::vector<std::string> others{"before", "behind"};
  const RecordShape shape = RecordShape::of(size);
  // The steps of a writer: what has been written of the record, and what of its seal.
  const auto check = [&](std::size_t written, std::size_t of_seal) {
    std::string bytes = whole;
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(at + written),
              bytes.begin() + static_cast<std::ptrdiff_t>(next), '\0');
    const std::size_t sealed_to = shape.seal_at() + of_seal;
    for (std::size_t i = sealed_to; i < shape.header_bytes(); ++i) bytes[at + i] = '\0';
    ScanReport report;
    INFO("size " << size << ", written " << written << ", of the seal " << of_seal);
    CHECK(found_in(bytes, fixture.header(), all_sound, report) == others);
    CHECK(report.damage.empty());
    CHECK(report.unfinished == (written == 0 ? 0 : 1));
    // Where it is known that all was written, the same is damage.
    static_cast<void>(found_in(bytes, fixture.header(), all_whole, report));
    REQUIRE(report.damage.size() == 1);
    CHECK(report.damage[0].offset == at);
    const LogOffset begin = fixture.header().number * segment_bytes;
    CHECK(first_gap(bytes, fixture.header(), begin + segment_header_bytes) == begin + at);
  };
  for (std::size_t written = 0; written < shape.seal_at(); written += 4) check(written, 0);
  for (std::size_t i = 0; i <= size; ++i) check(shape.header_bytes() + i, 0);
  if (shape.is_long) check(shape.bytes(), 4);
}

TEST_CASE("record: one that is torn at any byte is never taken for another",
          "[storage][log][record]") {
  const std::size_t size = GENERATE(1U, 35U, 255U, 256U, 600U);
  SegmentFixture fixture;
  fixture.write(RecordType::whole, "before");
  const std::size_t at = fixture.write(RecordType::near, payload_of(size));
  const std::string last = payload_of(size).substr(0, size);
  const std::size_t next = fixture.write(RecordType::whole, "behind");
  const std::string whole = fixture.bytes();
  for (std::size_t cut = at; cut < next; ++cut) {
    for (const char rest : {'\0', '\xff', 'x'}) {
      std::string bytes = whole;
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(cut),
                bytes.begin() + static_cast<std::ptrdiff_t>(next), rest);
      if (bytes == whole) continue;
      ScanReport report;
      INFO("size " << size << ", cut " << cut - at << ", then " << int{rest});
      for (const std::string& found : found_in(bytes, fixture.header(), nothing_sure, report)) {
        CHECK((found == "before" || found == "behind"));
      }
      const LogOffset begin = fixture.header().number * segment_bytes;
      CHECK(first_gap(bytes, fixture.header(), begin + segment_header_bytes) == begin + at);
    }
  }
}

TEST_CASE("record: remains of an earlier use are none, wherever they lie",
          "[storage][log][record]") {
  SegmentFixture fixture;
  for (int i = 0; i < 100; ++i) {
    fixture.write(RecordType::near, payload_of(35));
    fixture.write(RecordType::whole, payload_of(300));
  }
  const std::string old = fixture.bytes();
  std::mt19937_64 random{9};
  for (int use = 0; use < 100; ++use) {
    SegmentHeader header = fixture.header();
    if (use < 50) header.salt = random();
    if (use >= 50) header.number += random() % 1000 + 1;  // even with the salt of its earlier use
    std::string bytes = old;
    // Records of the earlier use at another place.
    const std::size_t shift = 4 * static_cast<std::size_t>(use % 50);
    bytes.replace(segment_header_bytes, fixture.end(),
                  old.substr(segment_header_bytes + shift, fixture.end()));
    ScanReport report;
    CHECK(found_in(bytes, header, nothing_sure, report).empty());
    const LogOffset begin = header.number * segment_bytes + segment_header_bytes;
    CHECK(first_gap(bytes, header, begin) == begin);
  }
}

TEST_CASE("record: behind damage only a complete record is one", "[storage][log][record]") {
  SegmentFixture fixture;
  const std::size_t first = fixture.write(RecordType::near, payload_of(35));
  const std::size_t second = fixture.write(RecordType::near, payload_of(255));
  fixture.write(RecordType::near, payload_of(7));
  std::string bytes = fixture.bytes();
  bytes[first] = static_cast<char>(bytes[first] ^ 4);
  std::memset(&bytes[second + 4], 0, 4);  // its head is valid, and might be so by chance
  ScanReport report;
  std::vector<std::string> found;
  report = scan(bytes, fixture.header(), "segment", all_sound, true,
                [&](const LogRecord& record) { found.emplace_back(record.payload); });
  CHECK(found == std::vector<std::string>{payload_of(7)});
  CHECK(report.unfinished == 0);
  CHECK(report.damage.size() == 1);
}

TEST_CASE("header: each changed bit of a segment's header is noticed", "[storage][log][record]") {
  SegmentFixture fixture;
  const SegmentHeader old = old_header();
  CHECK(fixture.header().is_valid());
  CHECK(old.is_valid());
  for (std::size_t bit = 0; bit < sizeof(SegmentHeader) * 8; ++bit) {
    const auto flipped = [&](SegmentHeader header) {
      auto* const byte = reinterpret_cast<unsigned char*>(&header) + bit / 8;
      *byte = static_cast<unsigned char>(*byte ^ (1U << (bit % 8)));
      return header;
    };
    INFO("bit " << bit);
    CHECK_FALSE(flipped(fixture.header()).is_valid());
    if (bit < 56 * 8) CHECK_FALSE(flipped(old).is_valid());
  }
}

TEST_CASE("record: segments of formats 2 to 5 are read as before", "[storage][log][record]") {
  const SegmentHeader header = old_header();
  std::string bytes(segment_bytes, '\0');
  std::size_t at = segment_header_bytes;
  std::vector<std::string> expected;
  std::vector<std::size_t> begins;
  for (const std::size_t size : {1U, 8U, 41U, 255U, 256U, 5000U}) {
    expected.push_back(payload_of(size));
    begins.push_back(at);
    write_old(bytes, header, at, expected.back());
  }
  ScanReport report;
  CHECK(found_in(bytes, header, all_sound, report) == expected);
  CHECK(report.damage.empty());
  const LogOffset begin = header.number * segment_bytes;
  CHECK(first_gap(bytes, header, begin + segment_header_bytes) == begin + at);
  // Begun by a killed process.
  std::string killed = bytes;
  std::memset(&killed[begins[2] + 8], 0, 8 + 48);
  std::vector<std::string> others = expected;
  others.erase(others.begin() + 2);
  CHECK(found_in(killed, header, all_sound, report) == others);
  CHECK(report.unfinished == 1);
  CHECK(first_gap(killed, header, begin + segment_header_bytes) == begin + begins[2]);
  std::memset(&killed[begins[2]], 0, 8);  // it had reserved the space only
  CHECK(found_in(killed, header, all_sound, report) == others);
  CHECK(report.damage.empty());
  CHECK(report.unfinished == 0);
  for (std::size_t bit = segment_header_bytes * 8; bit < begins[3] * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    // An old seal does not cover the zeros behind a payload.
    const auto found = found_in(changed, header, all_sound, report);
    CHECK((!report.damage.empty() || found == expected));
  }
}

}  // namespace semel::tests
