// Changes of large objects are written as what they change: how many bytes that takes, and that
// every start finds the objects as they were.
#include <fstream>
#include <random>
#include <vector>

#include "storage/log/disk.hpp"
#include "storage/log/log_scan.hpp"
#include "tests/storage/boot_disk.hpp"
#include "tests/storage/delta_fixture.hpp"

namespace semel::tests::delta_storage {

using namespace std::chrono_literals;

namespace {

/// A random step on one of a few keys, most of them small changes.
class Steps {
 public:
  Steps(Process& process, ManualClock& clock, std::mt19937_64& random)
      : engine_(*process.engine), storage_(*process.storage), clock_(clock), random_(random) {}

  void run() {
    const std::uint64_t number = random_();
    const Kind kind = object_kinds[number % object_kinds.size()];
    const std::string key = key_of(kind, number >> 8);
    Store store = engine_.store(1);
    const std::uint64_t what = random_() % 100;
    if (what < 70) return change_one(key, kind, number);
    if (what < 76) return fill_one(key, kind);
    if (what < 80) return static_cast<void>(store.del(key).value());
    if (what < 83) {
      return static_cast<void>(store.rename(key, key_of(kind, number >> 9)).ok());
    }
    if (what < 86) return static_cast<void>(store.expire(key, Expiry::in(5s)).value());
    if (what < 88) return static_cast<void>(store.persist(key).value());
    if (what < 90) return clock_.advance(2s);
    if (what < 91) return static_cast<void>(engine_.flush(1).ok());
    if (what < 92) return static_cast<void>(store.set(key, std::string(1'500, 's')).value());
    if (what < 95) return change_together(number);
    const Status done = what < 98 ? storage_.drain() : storage_.rewrite(engine_);
    REQUIRE(done);
  }

 private:
  static std::string key_of(Kind kind, std::uint64_t number) {
    return std::string{name_of(kind)} + " " + std::to_string(number % 3);
  }
  void make_room(const std::string& key) {
    if (engine_.store(1).type(key).value() == Kind::string) {
      REQUIRE(engine_.store(1).del(key).value());
    }
  }
  void fill_one(const std::string& key, Kind kind) {
    make_room(key);
    fill(engine_, {1, key}, kind, 200);
  }
  void change_one(const std::string& key, Kind kind, std::uint64_t number) {
    make_room(key);
    change(engine_, {1, key}, kind, number, 1 + number % 4);
  }
  /// Three changes of two keys in one section.
  void change_together(std::uint64_t number) {
    const std::string list = key_of(Kind::list, number);
    const std::string set = key_of(Kind::set, number);
    const std::array<KeyRef, 2> keys{KeyRef{1, list}, KeyRef{1, set}};
    auto section = engine_.section(keys);
    REQUIRE(section);
    change_one(list, Kind::list, number);
    change_one(set, Kind::set, number);
    change_one(list, Kind::list, number + 1);
  }

  Engine& engine_;
  Storage& storage_;
  ManualClock& clock_;
  std::mt19937_64& random_;
};

}  // namespace

TEST_CASE("deltas: a change of a large object takes at most three times its bytes in the journal",
          "[storage][delta]") {
  const Directory directory;
  ManualClock clock;
  Process process{directory.path(), clock};
  Engine& engine = *process.engine;
  const std::string payload(24, 'p');
  for (const Kind kind : {Kind::list, Kind::set, Kind::sorted_set}) {
    INFO(name_of(kind));
    const std::string key{name_of(kind)};
    fill(engine, {0, key}, kind, 2'000);
    REQUIRE(process.storage->drain());
    const std::uint64_t log_before = process.storage->stats().bytes;
    const std::uint64_t files_before = process.storage->stats().bytes_files;
    std::uint64_t changed = 0;
    // As long as it takes for the chain to end: what a new whole record takes counts.
    for (std::uint64_t i = 0; i < 4'000; ++i) {
      const auto done = engine::change_object(engine, {0, key}, kind, [&](ObjectEdit& object) {
        const std::string bytes = payload + std::to_string(10'000 + i);
        changed += bytes.size();
        if (kind == Kind::list) {
          object.set_at(i * 37 % object.size(), bytes);
        } else {
          // The oldest goes, so that the object stays as long as it is.
          object.erase_at(i * 37 % object.size());
          object.put(kind == Kind::set ? engine::member_key(bytes)
                                       : element_key(kind, i).substr(0, 8) + bytes);
        }
        return ErrorCode::ok;
      });
      REQUIRE(done.ok());
    }
    const auto written = process.storage->stats().bytes - log_before;
    // An element that goes has its key in the journal as well.
    const std::uint64_t all = kind == Kind::list ? changed : 2 * changed;
    CHECK(written <= 3 * all);
    REQUIRE(process.storage->drain());
    const auto files = process.storage->stats().bytes_files - files_before;
    CHECK(files <= 3 * all);
  }
}

TEST_CASE("deltas: a change of a field takes at most three times its bytes in the journal",
          "[storage][delta]") {
  const Directory directory;
  ManualClock clock;
  Process process{directory.path(), clock};
  Engine& engine = *process.engine;
  const std::string payload(24, 'p');
  const auto field = [](std::uint64_t i) { return "field " + std::to_string(100'000 + i % 2'000); };
  const auto value = [&](std::uint64_t i) { return payload + std::to_string(10'000 + i); };
  for (const std::uint64_t count : {std::uint64_t{100}, std::uint64_t{2'000}}) {
    INFO(count << " fields");
    const std::string key = "h" + std::to_string(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      REQUIRE(engine.hashes().hset(key, field(i), value(i)).value());
    }
    REQUIRE(process.storage->drain());
    const std::uint64_t log_before = process.storage->stats().bytes;
    const std::uint64_t files_before = process.storage->stats().bytes_files;
    std::uint64_t changed = 0;
    // As long as it takes for the chain to end: what a new whole record takes counts.
    for (std::uint64_t i = 0; i < 4'000; ++i) {
      const std::string name = field(i * 37 % count);
      const std::string text = value(i + 1);
      changed += name.size() + text.size();
      REQUIRE(engine.hashes().hset(key, name, text).ok());
    }
    CHECK(process.storage->stats().bytes - log_before <= 3 * changed);
    REQUIRE(process.storage->drain());
    CHECK(process.storage->stats().bytes_files - files_before <= 3 * changed);
  }
}

TEST_CASE("deltas: each start finds what the process before had, wherever that ended",
          "[storage][delta]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const std::string image = directory.of("image");
  ManualClock clock;
  const std::uint32_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  std::size_t deltas = 0;
  for (int life = 0; life < 12; ++life) {
    INFO("life " << life);
    Picture last;
    {
      Process process{path, clock};
      if (!process.recovered->ok()) FAIL(process.recovered->error().message());
      Steps steps{process, clock, random};
      for (int step = 0; step < 120; ++step) {
        steps.run();
        if (step % 40 != 39) continue;
        // A kill; the storage itself goes on.
        const Picture now = picture_of(*process.engine);
        copy(path, image);
        check_start(image, clock, now);
        const auto check = verify_storage(image);
        REQUIRE(check);
        for (const StorageFinding& finding : check->findings) FAIL_CHECK(finding.what);
      }
      last = picture_of(*process.engine);
      const auto info = inspect_storage(
          image, [&](const StoredMutation& found) { deltas += is_delta(found.mutation) ? 1 : 0; });
      REQUIRE(info);
    }
    check_start(path, clock, last);
  }
  CHECK(deltas > 30);  // it is about these
}

TEST_CASE("deltas: a log that is cut anywhere gives the objects as they were then",
          "[storage][delta][boot]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const std::string image = directory.of("image");
  ManualClock clock;
  BootDisk first{"one"};
  BootDisk second{"two"};
  const std::string key = "list";
  std::vector<Picture> states;
  {
    Process process{path, clock, &first};
    states.push_back(picture_of(*process.engine));
    fill(*process.engine, {0, key}, Kind::list, 200);
    states.push_back(picture_of(*process.engine));
    for (std::uint64_t i = 0; i < 60; ++i) {
      change(*process.engine, {0, key}, Kind::list, i * 5 + 2, 1);
      states.push_back(picture_of(*process.engine));
    }
    copy(path, image);
  }
  const auto segments = storage::list_directory(image + "/log");
  REQUIRE(segments);
  const std::string segment = image + "/log/" + segments->front();
  // The places of all records.
  std::vector<std::size_t> places;
  {
    const auto opened = storage::SegmentFile::open(segment);
    REQUIRE(opened);
    for (std::size_t at = storage::segment_header_bytes;;) {
      const auto record = storage::record_at(opened->bytes(), opened->header(), at);
      if (record.is != storage::FoundRecord::Is::whole) break;
      places.push_back(at);
      at += record.bytes;
    }
  }
  REQUIRE(places.size() >= 60);
  const std::string cut = directory.of("cut");
  for (std::size_t i = 0; i < places.size(); i += 7) {
    copy(image, cut);
    std::fstream file{cut + "/log/" + segments->front(),
                      std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(static_cast<std::streamoff>(places[i]));
    const std::string zeros(std::size_t{60} << 10, '\0');
    file.write(zeros.data(), static_cast<std::streamsize>(std::min(
                                 zeros.size(), std::filesystem::file_size(segment) - places[i])));
    file.close();
    Process process{cut, clock, &second};
    REQUIRE(process.recovered->ok());
    const Picture found = picture_of(*process.engine);
    CHECK(std::find(states.begin(), states.end(), found) != states.end());
    if (i != 0) CHECK(found != states[0]);
  }
}

TEST_CASE("deltas: the first change of a process, and one that is large, are whole",
          "[storage][delta]") {
  const Directory directory;
  const std::string path = directory.of("s");
  ManualClock clock;
  {
    Process process{path, clock};
    fill(*process.engine, {0, "k"}, Kind::list, 200);
    change(*process.engine, {0, "k"}, Kind::list, 2, 1);
    change(*process.engine, {0, "k"}, Kind::list, 2, 100);
    change(*process.engine, {0, "k"}, Kind::list, 2, 1);
  }
  CHECK(count_stored(path, "k").whole == 2);
  CHECK(count_stored(path, "k").deltas == 2);
  {
    Process process{path, clock};
    change(*process.engine, {0, "k"}, Kind::list, 2, 1);
    change(*process.engine, {0, "k"}, Kind::list, 2, 1);
  }
  CHECK(count_stored(path, "k").whole == 3);
  CHECK(count_stored(path, "k").deltas == 3);
}

TEST_CASE("deltas: a record that is not in the journal is no base", "[storage][delta]") {
  const Directory directory;
  const std::string path = directory.of("s");
  ManualClock clock;
  Picture last;
  {
    Process process{path, clock};
    Engine& engine = *process.engine;
    fill(engine, {0, "k"}, Kind::list, 200);
    change(engine, {0, "k"}, Kind::list, 2, 1);
    // Somebody restores a newer record beside the storage.
    std::string value;
    Mutation newer;
    REQUIRE(engine.host().snapshot([&](const Mutation& mutation) {
      newer = mutation;
      value = mutation.value;
    }));
    newer.key = "k";
    newer.value = value;
    ++newer.version;
    REQUIRE(engine.host().restore(newer));
    change(engine, {0, "k"}, Kind::list, 2, 1);
    change(engine, {0, "k"}, Kind::list, 5, 1);
    last = picture_of(engine);
  }
  CHECK(count_stored(path, "k").whole == 2);
  CHECK(count_stored(path, "k").deltas == 2);
  check_start(path, clock, last);
}

}  // namespace semel::tests::delta_storage
