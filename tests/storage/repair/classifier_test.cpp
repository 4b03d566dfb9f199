// Open, verify, repair and inspect judge a directory by the same rules.
//
//   variant   what happened to a sound storage of one process that has ended
//   sound     all four accept it
//   damaged   open refuses it and names the file, verify and repair name the file as well
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/storage_tools.hpp"
#include "storage/log/log_format.hpp"
#include "tests/storage/repair/tool_fixture.hpp"

namespace semel::tests {
namespace {

namespace fs = std::filesystem;

/// 100 records in files behind the log, 150 in three or four segments of a second process.
void make_segments(const std::string& directory, const Clock& clock) {
  {
    ToolLife life{directory, clock};
    life.fill("file", 100);
    REQUIRE(life.storage->drain());
  }
  ToolLife life{directory, clock};
  life.fill("log", 150);
}

std::vector<std::string> segments(const std::string& directory) {
  return files_in(directory + "/log", "");
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream{path, std::ios::binary} << bytes;
}

/// The path of a segment that would come behind all others.
std::string next_segment(const std::string& directory) {
  const std::vector<std::string> all = segments(directory);
  REQUIRE(all.size() >= 3);
  const auto begin = std::stoull(fs::path{all.back()}.filename().string(), nullptr, 16);
  return directory + "/log/" + storage::segment_name(begin + 8 * fs::file_size(all.back()));
}

std::string table_of(const std::string& directory) {
  const auto tables = files_in(directory + "/rocksdb", ".sst");
  REQUIRE_FALSE(tables.empty());
  return tables.front();
}

/// Changes the storage and returns the file that must be named; empty: it is sound.
struct Variant {
  const char* name;
  std::function<std::string(const std::string& directory)> change;
};

std::string lose(const std::string& path) {
  fs::remove(path);
  return path;
}

std::vector<Variant> of_log() {
  return {
      {"the first segment is lost", [](const std::string& at) { return lose(segments(at)[0]); }},
      {"a segment between is lost", [](const std::string& at) { return lose(segments(at)[1]); }},
      {"the last segment is lost", [](const std::string& at) { return lose(segments(at).back()); }},
      {"a file of another name",
       [](const std::string& at) {
         write_file(at + "/log/notes", "mine");
         return at + "/log/notes";
       }},
      {"the header of the first segment",
       [](const std::string& at) {
         flip(segments(at)[0], 3);
         return segments(at)[0];
       }},
      {"the header of the last segment",
       [](const std::string& at) {
         flip(segments(at).back(), 3);
         return segments(at).back();
       }},
      {"a segment that ends in its header",
       [](const std::string& at) {
         fs::resize_file(segments(at)[1], 10);
         return segments(at)[1];
       }},
      {"a segment that is too short",
       [](const std::string& at) {
         fs::resize_file(segments(at)[1], fs::file_size(segments(at)[1]) - 8);
         return segments(at)[1];
       }},
  };
}

std::vector<Variant> behind_log() {
  return {
      {"untouched", [](const std::string&) { return std::string{}; }},
      {"an empty file behind the log",
       [](const std::string& at) {
         write_file(next_segment(at), "");
         return std::string{};
       }},
      {"zeros behind the log",
       [](const std::string& at) {
         write_file(next_segment(at), std::string(fs::file_size(segments(at)[0]), '\0'));
         return std::string{};
       }},
      {"a header that was begun behind the log",
       [](const std::string& at) {
         const std::string path = next_segment(at);
         write_file(path, std::string(fs::file_size(segments(at)[0]), '\0'));
         flip(path, 20);
         return std::string{};
       }},
      {"records without a header behind the log",
       [](const std::string& at) {
         const std::string path = next_segment(at);
         write_file(path, std::string(fs::file_size(segments(at)[0]), 'r'));
         return path;
       }},
      {"a few bytes behind the log",
       [](const std::string& at) {
         const std::string path = next_segment(at);
         write_file(path, "garbage");
         return path;
       }},
      {"a segment that was drained before",
       [](const std::string& at) {
         write_file(at + "/log/" + storage::segment_name(0), "old");
         return std::string{};
       }},
  };
}

std::vector<Variant> of_mark() {
  return {
      {"mark is lost", [](const std::string& at) { return lose(at + "/mark"); }},
      {"mark is empty",
       [](const std::string& at) {
         write_file(at + "/mark", "");
         return at + "/mark";
       }},
      {"mark is zeros",
       [](const std::string& at) {
         write_file(at + "/mark", std::string(8192, '\0'));
         return at + "/mark";
       }},
      {"one slot of mark",
       [](const std::string& at) {
         flip(at + "/mark", 20);
         return std::string{};
       }},
      {"both slots of mark",
       [](const std::string& at) {
         flip(at + "/mark", 20);
         flip(at + "/mark", 4096 + 20);
         return at + "/mark";
       }},
      {"one slot of mark, the other one zeros",
       [](const std::string& at) {
         write_file(at + "/mark", std::string(8192, '\0'));
         flip(at + "/mark", 20);
         return at + "/mark";
       }},
      {"mark is too short",
       [](const std::string& at) {
         fs::resize_file(at + "/mark", 4096);
         return at + "/mark";
       }},
      {"mark is too long",
       [](const std::string& at) {
         fs::resize_file(at + "/mark", 8193);
         return at + "/mark";
       }},
  };
}

std::vector<Variant> of_rocksdb() {
  return {
      {"CURRENT is lost",
       [](const std::string& at) {
         lose(at + "/rocksdb/CURRENT");
         return at + "/rocksdb";
       }},
      {"MANIFEST is lost",
       [](const std::string& at) {
         for (const auto& each : fs::directory_iterator{at + "/rocksdb"}) {
           if (each.path().filename().string().starts_with("MANIFEST")) {
             return lose(each.path().string());
           }
         }
         return std::string{"no manifest"};
       }},
      {"a table is lost", [](const std::string& at) { return lose(table_of(at)); }},
      {"a file of somebody else's in the directory",
       [](const std::string& at) {
         write_file(at + "/notes", "mine");
         return std::string{};
       }},
  };
}

std::vector<Variant> all_variants() {
  std::vector<Variant> all;
  for (const auto& some : {of_log(), behind_log(), of_mark(), of_rocksdb()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

/// None: opened, with everything.
std::optional<Error> open_all(const std::string& directory, const Clock& clock) {
  auto opened = Storage::open(
      {.directory = directory, .log_bytes = std::size_t{1} << 20, .span = Millis{1000}}, clock);
  if (!opened) return opened.error();
  auto engine = Engine::open({.clock = &clock,
                              .journal = opened->get(),
                              .durability = Durability::logged,
                              .memory_bytes = std::size_t{64} << 20,
                              .value_bytes_max = 1024,
                              .first_version = (*opened)->first_version()});
  REQUIRE(engine);
  const auto report = (*opened)->recover(**engine);
  if (!report) return report.error();
  CHECK((*engine)->size(0) == 250);
  return std::nullopt;
}

bool names(const StorageCheck& check, const std::string& file) {
  for (const StorageFinding& finding : check.findings) {
    if (finding.file.starts_with(file)) return true;
  }
  return false;
}

/// True: every segment is sound, or nothing can be listed for another reason.
bool inspect_accepts(const std::string& directory) {
  const auto info = inspect_storage(directory);
  if (!info) return false;
  for (const auto& segment : info->segments) {
    if (segment.damaged) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("classifier: open, verify, repair and inspect agree about each kind of file",
          "[storage][tools]") {
  const ManualClock clock;
  for (const Variant& variant : all_variants()) {
    const Directory directory;
    const std::string at = directory.of("s");
    make_segments(at, clock);
    const std::string file = variant.change(at);
    INFO(variant.name << " -> " << (file.empty() ? "sound" : file));
    const bool is_there = !file.empty() && fs::exists(file);

    const auto check = verify_storage(at);
    REQUIRE(check);
    for (const StorageFinding& finding : check->findings) {
      UNSCOPED_INFO("verify: " << finding.file << ": " << finding.what);
    }
    CHECK(check->is_sound() == file.empty());
    if (!file.empty()) CHECK(names(*check, file));

    const auto repair = repair_storage(at, false);
    REQUIRE(repair);
    CHECK(repair->found.findings.size() == check->findings.size());

    // What is missing cannot be listed, and mark is not part of the list.
    const bool is_listed = file.starts_with(at + "/log") && is_there;
    if (file.empty()) CHECK(inspect_accepts(at));
    if (is_listed) CHECK_FALSE(inspect_accepts(at));

    const auto before = picture(at + "/log");
    const std::optional<Error> refused = open_all(at, clock);
    if (refused) UNSCOPED_INFO("open: " << refused->message());
    CHECK(refused.has_value() == !file.empty());
    if (!refused) continue;
    const bool is_own = !file.starts_with(at + "/rocksdb");
    if (is_own) CHECK(refused->code == ErrorCode::storage_damaged);
    CHECK(refused->detail.find(file) != std::string::npos);
    CHECK(picture(at + "/log") == before);  // nothing is changed before all of it is judged

    const auto repaired = repair_storage(at, true);
    if (!repaired) UNSCOPED_INFO("repair: " << repaired.error().message());
    REQUIRE(repaired);
    CHECK(verify_storage(at).value().is_sound());
  }
}

TEST_CASE("classifier: a new storage whose first checkpoint was torn is still new",
          "[storage][tools]") {
  const ManualClock clock;
  for (const int slot : {0, 1}) {
    const Directory directory;
    const std::string at = directory.of("s");
    { const ToolLife life{at, clock}; }
    for (const std::string& segment : segments(at)) fs::remove(segment);
    std::string mark(8192, '\0');
    mark.replace(static_cast<std::size_t>(slot) * 4096, 256, std::string(256, 't'));
    write_file(at + "/mark", mark);
    INFO("slot " << slot);
    CHECK(verify_storage(at).value().is_sound());
    CHECK(inspect_accepts(at));
    ToolLife life{at, clock};
    life.fill("new", 10);
    CHECK(life.count("new", 10) == 10);
  }
}

}  // namespace semel::tests
