// Backups beside a running engine: what is in them, and what ends them.
#include <rocksdb/write_batch.h>

#include "semel/rocksdb.hpp"
#include "storage/backup/backup_files.hpp"
#include "storage/backup/backup_pace.hpp"
#include "tests/storage/backup/backup_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
namespace {

/// RocksDB's files in a directory `target` cannot be written after so many steps.
class FailingEnvironment final : public rocksdb::EnvWrapper {
 public:
  FailingEnvironment() : EnvWrapper(rocksdb::Env::Default()) {}
  [[nodiscard]] const char* Name() const override { return "failing"; }
  void fail_after(std::string target, int steps) {
    target_ = std::move(target);
    left_ = steps;
  }
  [[nodiscard]] bool failed() const { return left_ < 0; }
  [[nodiscard]] rocksdb::Status step(const std::string& path) {
    if (target_.empty() || path.find(target_) == std::string::npos || --left_ >= 0) {
      return rocksdb::Status::OK();
    }
    return rocksdb::Status::NoSpace("No space left on device", path);
  }
  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override;
  rocksdb::Status LinkFile(const std::string& from, const std::string& to) override {
    const rocksdb::Status status = step(to);
    return status.ok() ? EnvWrapper::LinkFile(from, to) : status;
  }
  rocksdb::Status RenameFile(const std::string& from, const std::string& to) override {
    const rocksdb::Status status = step(to);
    return status.ok() ? EnvWrapper::RenameFile(from, to) : status;
  }

 private:
  std::string target_;
  int left_ = 0;
};

class FailingFile final : public rocksdb::WritableFileWrapper {
 public:
  FailingFile(std::unique_ptr<rocksdb::WritableFile> file, std::string path,
              FailingEnvironment& environment)
      : WritableFileWrapper(file.get()),
        file_(std::move(file)),
        path_(std::move(path)),
        environment_(environment) {}
  using WritableFileWrapper::Append;
  rocksdb::Status Append(const rocksdb::Slice& data) override {
    const rocksdb::Status status = environment_.step(path_);
    return status.ok() ? WritableFileWrapper::Append(data) : status;
  }
  rocksdb::Status Fsync() override {
    const rocksdb::Status status = environment_.step(path_);
    return status.ok() ? WritableFileWrapper::Fsync() : status;
  }

 private:
  std::unique_ptr<rocksdb::WritableFile> file_;
  const std::string path_;
  FailingEnvironment& environment_;
};

rocksdb::Status FailingEnvironment::NewWritableFile(const std::string& name,
                                                    std::unique_ptr<rocksdb::WritableFile>* file,
                                                    const rocksdb::EnvOptions& options) {
  rocksdb::Status status = step(name);
  if (status.ok()) status = EnvWrapper::NewWritableFile(name, file, options);
  if (status.ok()) *file = std::make_unique<FailingFile>(std::move(*file), name, *this);
  return status;
}

class FailingDisk final : public storage::Disk {
 public:
  [[nodiscard]] rocksdb::Env* env() override { return &environment; }
  FailingEnvironment environment;
};

}  // namespace

// --- the list -----------------------------------------------------------------------------------

TEST_CASE("backup list: it is read as it was written, and not if a byte is missing or changed",
          "[storage][backup]") {
  const storage::BackupList list{.complete = true,
                                 .storage_id = 0xab,
                                 .incarnation = ~std::uint64_t{0},
                                 .unix_ms = 1'764'040'000'000,
                                 .files = {{"rocksdb/000012.sst", 4711, 0x0123},
                                           {"rocksdb/name with spaces", 0, std::nullopt}}};
  const std::string text = text_of(list);
  const auto read = storage::backup_list_of(text);
  REQUIRE(read);
  CHECK(read->complete);
  CHECK(read->storage_id == list.storage_id);
  CHECK(read->incarnation == list.incarnation);
  CHECK(read->unix_ms == list.unix_ms);
  REQUIRE(read->files.size() == 2);
  CHECK(read->files[0].digest == list.files[0].digest);
  CHECK(read->files[1].name == list.files[1].name);
  CHECK_FALSE(read->files[1].digest);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    INFO(i);
    CHECK_FALSE(storage::backup_list_of(text.substr(0, i)));
    CHECK_FALSE(storage::backup_list_of(changed));
  }
}

TEST_CASE("backup list: a path out of the directory is refused", "[storage][backup]") {
  for (const std::string name : {"../a", "/etc/passwd", "rocksdb/../../a", ""}) {
    const storage::BackupList list{.complete = true, .files = {{name, 1, 2}}};
    CHECK_FALSE(storage::backup_list_of(text_of(list)));
  }
}

TEST_CASE("backup: one of release 0.1, whose list is a text only, is restored",
          "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  {
    Process process{directory.path(), clock};
    process.set("k", "v");
    REQUIRE(process.storage->backup(beside.of("one")));
  }
  std::ofstream{beside.of("one") + "/backup"}
      << "This directory is a backup of a Semel storage. Do not open it: two storages would hand "
         "out\nthe same epochs. Make a storage of it: semel restore BACKUP DIR\n";
  require_sound(beside.of("one"));
  REQUIRE(restore_backup(beside.of("one"), beside.of("again")));
  CHECK(Process{beside.of("again"), clock}.get("k") == "v");
}

// --- the rate -----------------------------------------------------------------------------------

TEST_CASE("backup pace: bytes take their time, and a pause is not made up for",
          "[storage][backup]") {
  storage::BackupPace pace{1'000'000};
  CHECK(pace.after(500'000, 0ms) == 500ms);
  CHECK(pace.after(500'000, 500ms) == 500ms);
  CHECK(pace.after(500'000, 700ms) == 800ms);     // 300 ms too early
  CHECK(pace.after(100'000, 10'000ms) == 100ms);  // no burst after a pause
  CHECK(pace.piece_bytes() == 50'000);
  storage::BackupPace none{0};
  CHECK(none.after(~std::uint64_t{0}, 0ms) == 0ms);
  CHECK(storage::BackupPace{65'536}.piece_bytes() == 16'384);
  CHECK(storage::BackupPace{std::uint64_t{1} << 40}.piece_bytes() == 262'144);
}

TEST_CASE("backup: a rate below 64 KiB a second is refused", "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  Process process{directory.path(), clock};
  const auto refused = process.storage->backup(beside.of("one"), {.bytes_per_second = 65'535});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::bad_option);
  CHECK(refused.error().detail.find("65535") != std::string::npos);
  CHECK_FALSE(exists(beside.of("one")));
  process.set("k", "v");
  CHECK(process.storage->backup(beside.of("one"), {.bytes_per_second = 65'536}));
}

// --- content ------------------------------------------------------------------------------------

TEST_CASE("backup: by links or by copies, all that was answered before is in it",
          "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  const bool copies = GENERATE(false, true);
  {
    Process process{directory.path(), clock};
    process.fill("k", 3'000);
    const auto report = process.storage->backup(beside.of("one"), {.copies = copies});
    if (!report) FAIL(report.error().message());
    CHECK(report->bytes > 3'000'000);
    CHECK(report->bytes ==
          report->bytes_copied + report->bytes_linked + fs::file_size(beside.of("one/mark")));
    CHECK((report->bytes_linked > 3'000'000) == !copies);
    CHECK(report->bytes_shared == 0);
    process.set("after", "1");
    CHECK_FALSE(has_links(directory));
  }
  require_sound(beside.of("one"));
  REQUIRE(restore_backup(beside.of("one"), beside.of("again")));
  Process again{beside.of("again"), clock};
  CHECK(again.engine->size(0) == 3'000);
  CHECK(again.get("after") == "-");
}

TEST_CASE("backup: under load each has all that was answered before it began",
          "[storage][backup][race]") {
  const Directory directory;
  const Directory beside;
  const SystemClock clock;
  constexpr int writers = 2;
  constexpr int backups = 6;
  std::array<std::vector<std::uint64_t>, backups> answered;
  {
    Process process{directory.path(), clock};
    std::atomic<bool> stop{false};
    std::array<std::atomic<std::uint64_t>, writers> counts{};
    std::vector<std::thread> threads;
    for (int w = 0; w < writers; ++w) {
      threads.emplace_back([&, w] {
        Store store = process.engine->store();
        // mo: relaxed: when it stops is not exact
        for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed);) {
          const auto set = store.set(std::to_string(w) + ":" + std::to_string(i % 20'000),
                                     std::to_string(i) + std::string(200, 'v'));
          // mo: release: read before a backup begins
          if (set.ok()) counts[static_cast<std::size_t>(w)].store(++i, std::memory_order_release);
        }
      });
    }
    for (int n = 0; n < backups; ++n) {
      // mo: acquire: as above
      while (counts[0].load(std::memory_order_acquire) <
             static_cast<std::uint64_t>(n + 1) * 3'000) {
        std::this_thread::yield();
      }
      for (const auto& count : counts) {
        answered[static_cast<std::size_t>(n)].push_back(count.load(std::memory_order_acquire));
      }
      BackupOptions options{.copies = n % 2 == 1};
      if (n > 2) options.base = beside.of("b" + std::to_string(n - 2));
      const auto made = process.storage->backup(beside.of("b" + std::to_string(n)), options);
      if (!made) FAIL(made.error().message());
    }
    stop.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
    for (std::thread& thread : threads) thread.join();
  }
  for (int n = 0; n < backups; ++n) {
    const std::string name = beside.of("b" + std::to_string(n));
    require_sound(name);
    REQUIRE(restore_backup(name, name + ".again"));
    Process again{name + ".again", clock};
    for (int w = 0; w < writers; ++w) {
      const std::uint64_t count =
          answered[static_cast<std::size_t>(n)][static_cast<std::size_t>(w)];
      const std::uint64_t first = count > 20'000 ? count - 20'000 : 0;
      std::uint64_t lost = 0;
      for (std::uint64_t i = first; i < count; ++i) {
        const std::string value = again.get(std::to_string(w) + ":" + std::to_string(i % 20'000));
        if (value == "-" || std::strtoull(value.c_str(), nullptr, 10) < i) ++lost;
      }
      INFO(n << " " << w << " " << count);
      CHECK(lost == 0);
    }
  }
}

TEST_CASE("backup: while it copies, the log is drained and takes more than it can hold",
          "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  Process process{directory.path(), clock};
  process.fill("k", 500);
  bool drained = false;
  const auto made = process.storage->backup(
      beside.of("one"), {.copies = true, .progress = [&](const BackupProgress&) {
                           if (!drained) {
                             process.fill("more", 10'000);  // of 8 MiB
                             drained = process.storage->drain().has_value();
                           }
                           return true;
                         }});
  CHECK(made);
  CHECK(drained);
  require_sound(beside.of("one"));
}

TEST_CASE("backup: files that the storage drops meanwhile are in it", "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  {
    Process process{directory.path(), clock};
    process.fill("k", 2'000);
    bool rewritten = false;
    const auto made = process.storage->backup(
        beside.of("one"), {.copies = true, .progress = [&](const BackupProgress&) {
                             if (!rewritten)
                               rewritten = process.storage->rewrite(*process.engine).has_value();
                             return true;
                           }});
    CHECK(made);
    CHECK(rewritten);
  }
  require_sound(beside.of("one"));
  REQUIRE(restore_backup(beside.of("one"), beside.of("again")));
  CHECK(Process{beside.of("again"), clock}.engine->size(0) == 2'000);
}

TEST_CASE("backup: beside joined commits it knows the namespace of each claim that it has",
          "[storage][backup][join][race]") {
  const Directory directory;
  const Directory beside;
  const SystemClock clock;
  {
    Process process{directory.path(), clock, nullptr, true};
    std::atomic<bool> stop{false};
    std::thread committer{[&] {
      // mo: relaxed: when it stops is not exact
      for (int i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        Policy policy;
        policy.lease = 60s;
        policy.result_ttl = 3'600s;
        const auto claims = process.engine->claims("space" + std::to_string(i), policy);
        if (!claims) return;
        Claims space = *claims;
        const ClaimOutcome outcome = space.claim({.key = "k"});
        if (outcome.answer != ClaimAnswer::granted) return;
        const auto joined = complete_joined(*process.storage, space,
                                            {.key = "k", .epoch = outcome.epoch, .payload = "done"},
                                            rocksdb::WriteBatch{}, Durability::logged);
        if (!joined || i == 5'000) return;
      }
    }};
    for (int n = 0; n < 8; ++n) {
      CHECK(process.storage->backup(beside.of("b" + std::to_string(n))));
    }
    stop.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
    committer.join();
  }
  for (int n = 0; n < 8; ++n) require_sound(beside.of("b" + std::to_string(n)));
}

// --- the target ---------------------------------------------------------------------------------

TEST_CASE("backup: a target that is there, by whatever kind, is left as it is",
          "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  Process process{directory.path(), clock};
  process.set("k", "v");
  fs::create_directory(beside.of("directory"));
  std::ofstream{beside.of("file")} << "mine";
  fs::create_symlink("nowhere", beside.of("dangling"));
  fs::create_directory_symlink(beside.of("directory"), beside.of("link"));
  for (const std::string name : {"directory", "file", "dangling", "link", "link/"}) {
    INFO(name);
    const auto refused = process.storage->backup(beside.of(name));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::storage_failed);
    CHECK(exists(beside.of(name)));
  }
  CHECK(fs::is_empty(beside.of("directory")));
  CHECK_FALSE(process.storage->backup(beside.of("missing/one")));
  CHECK_FALSE(exists(beside.of("missing")));
  CHECK(process.storage->backup(beside.of("good/")));
  require_sound(beside.of("good"));
}

TEST_CASE("backup: inside the storage it takes no name of the storage's own", "[storage][backup]") {
  const Directory directory;
  ManualClock clock;
  {
    Process process{directory.path(), clock};
    process.set("k", "v");
    // `backup` would make the storage itself look like a backup.
    for (const std::string name : {"backup", "rocksdb/one", "log/one", "log/x/../one", "cold",
                                   "lost+found-7", "backing-up", "lock/"}) {
      INFO(name);
      const auto refused = process.storage->backup(directory.of(name));
      REQUIRE_FALSE(refused);
      CHECK((refused.error().code == ErrorCode::bad_option ||
             refused.error().code == ErrorCode::storage_failed));
    }
    CHECK_FALSE(process.storage->backup(""));
    CHECK(process.storage->backup(directory.of("mine")));
  }
  require_sound(directory.of("mine"));
  CHECK(Process{directory.path(), clock}.get("k") == "v");
}

// --- ends that are none -------------------------------------------------------------------------

TEST_CASE("backup: one that is cancelled, or whose callback throws, leaves nothing",
          "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  Process process{directory.path(), clock};
  process.fill("k", 500);
  const bool throws = GENERATE(false, true);
  int calls = 0;
  const auto ended = process.storage->backup(
      beside.of("one"),
      {.bytes_per_second = 65'536, .copies = true, .progress = [&](const BackupProgress& progress) {
         CHECK(progress.bytes <= progress.bytes_total);
         if (++calls < 5) return true;
         if (throws) throw std::runtime_error{"mine"};
         return false;
       }});
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == (throws ? ErrorCode::callback_threw : ErrorCode::refused));
  CHECK_FALSE(exists(beside.of("one")));
  CHECK_FALSE(has_links(directory));
  CHECK(process.storage->backup(beside.of("one"), copying));
}

TEST_CASE("backup: there is one at a time", "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  Process process{directory.path(), clock};
  process.set("k", "v");
  std::optional<ErrorCode> second;
  const auto first = process.storage->backup(
      beside.of("one"), {.copies = true, .progress = [&](const BackupProgress&) {
                           const auto refused = process.storage->backup(beside.of("two"));
                           second = refused ? ErrorCode::ok : refused.error().code;
                           return true;
                         }});
  CHECK(first);
  CHECK(second == ErrorCode::refused);
  CHECK_FALSE(exists(beside.of("two")));
  require_sound(beside.of("one"));
}

TEST_CASE("backup: on a target that fails or fills up at any step, nothing is left of it",
          "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  FailingDisk disk;
  Process process{directory.path(), clock, &disk};
  process.fill("k", 600);
  const bool copies = GENERATE(false, true);
  const std::string to = beside.of("one");
  int steps = 0;
  for (bool made = false; !made; ++steps) {
    REQUIRE(steps < 200);
    disk.environment.fail_after("/one", steps);
    const auto result = process.storage->backup(to, {.copies = copies});
    made = result.has_value();
    INFO(steps);
    if (made) {
      // A link that fails is a copy.
      require_sound(to);
      continue;
    }
    CHECK(result.error().code == ErrorCode::storage_failed);
    CHECK_FALSE(exists(to));
    CHECK_FALSE(has_links(directory));
    CHECK(process.get("k0") != "-");
  }
  CHECK(steps > 5);
}

TEST_CASE("backup: a file that is missing, short or changed is named by verify, and not restored",
          "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  {
    Process process{directory.path(), clock};
    process.fill("k", 300);
    REQUIRE(process.storage->backup(beside.of("one"), copying));
  }
  const auto what = GENERATE(0, 1, 2, 3);
  const std::string table = what == 3 ? beside.of("one/mark") : tables_of(beside.of("one")).front();
  if (what == 0) fs::remove(table);
  if (what == 1) fs::resize_file(table, fs::file_size(table) - 1);
  if (what >= 2) damage(table);
  const auto check = verify_storage(beside.of("one"));
  REQUIRE(check);
  REQUIRE_FALSE(check->findings.empty());
  CHECK(check->findings.front().file == table);
  const Status restored = restore_backup(beside.of("one"), beside.of("again"));
  REQUIRE_FALSE(restored);
  CHECK(restored.error().code == ErrorCode::storage_damaged);
  CHECK(restored.error().detail.find(table) == 0);
  CHECK_FALSE(exists(beside.of("again")));
}

TEST_CASE("backup: a damaged one that was repaired is restored without what was lost",
          "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  {
    Process process{directory.path(), clock};
    process.fill("a", 300);
    REQUIRE(process.storage->drain());
    process.fill("b", 300);
    REQUIRE(process.storage->backup(beside.of("one"), copying));
  }
  damage(tables_of(beside.of("one")).front());
  const auto repair = repair_storage(beside.of("one"), true);
  if (!repair) FAIL(repair.error().message());
  CHECK(repair->changed);
  require_sound(beside.of("one"));
  REQUIRE(restore_backup(beside.of("one"), beside.of("again")));
  CHECK(Process{beside.of("again"), clock}.engine->size(0) >= 300);
}

// --- increments ---------------------------------------------------------------------------------

}  // namespace semel::tests
