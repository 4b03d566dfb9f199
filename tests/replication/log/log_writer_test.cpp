// The thread that writes the log: what it reports is there after a restart, and a full disk only
// delays it.
#include "replication/log/log_writer.hpp"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "storage/log/signal.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;
namespace fs = std::filesystem;

/// Refuses new files while `full`, and syncs while `fails`.
class SickDisk final : public storage::Disk {
 public:
  static void set(std::atomic<bool>& what, bool value) {
    what.store(value, std::memory_order_relaxed);  // mo: relaxed: a switch of the test
  }
  Result<int> create(const std::string& path, std::size_t bytes) override {
    // mo: relaxed: a switch of the test
    if (full.load(std::memory_order_relaxed)) {
      return Error{ErrorCode::storage_failed, path + ": no space left"};
    }
    return storage::Disk::create(path, bytes);
  }
  Status sync(int descriptor, const std::string& path) override {
    // mo: relaxed: a switch of the test
    if (fails.load(std::memory_order_relaxed)) {
      return Error{ErrorCode::storage_failed, path + ": sync"};
    }
    return storage::Disk::sync(descriptor, path);
  }
  Status sync_part(char* memory, const std::string& path, std::size_t from,
                   std::size_t to) override {
    // mo: relaxed: a switch of the test
    if (fails.load(std::memory_order_relaxed)) {
      return Error{ErrorCode::storage_failed, path + ": sync"};
    }
    return storage::Disk::sync_part(memory, path, from, to);
  }
  std::atomic<bool> full{false};
  std::atomic<bool> fails{false};
};

class Writing {
 public:
  Writing() {
    std::string pattern = (fs::temp_directory_path() / "semel_log_writer_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Writing() {
    writer.reset();
    fs::remove_all(path_);
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

  [[nodiscard]] std::unique_ptr<EntryLog> open_log() {
    auto log = EntryLog::open(
        {.directory = path_, .disk = &disk, .segment_bytes = std::size_t{64} << 10, .log_id = 7});
    REQUIRE(log.ok());
    return std::move(*log);
  }
  void begin() {
    writer = std::make_unique<LogWriter>(
        open_log(),
        [this](const LogWriter::Written& written) {
          {
            const base::MutexLock lock{mutex_};
            last_ = std::max(last_, written.last);
            if (!written.status) error_ = written.status.error().code;
          }
          reported_.raise();
        },
        Millis{1});
  }
  /// Of the newest entry that was reported, once it is `index` or an error is.
  LogIndex wait_for(LogIndex index) {
    for (;;) {
      const std::uint32_t seen = reported_.seen();
      {
        const base::MutexLock lock{mutex_};
        if (last_ >= index || error_) return last_;
      }
      reported_.wait(seen, Millis{10'000});
    }
  }
  [[nodiscard]] std::optional<ErrorCode> error() {
    const base::MutexLock lock{mutex_};
    return error_;
  }
  static std::vector<RaftEntry> entries(LogIndex first, std::size_t count, Term term) {
    std::vector<RaftEntry> made;
    for (std::size_t i = 0; i < count; ++i) {
      made.push_back(
          {term, EntryType::command,
           std::make_shared<const std::string>(std::to_string(first + i) + "/" +
                                               std::to_string(term) + std::string(300, '.'))});
    }
    return made;
  }

  SickDisk disk;
  std::unique_ptr<LogWriter> writer;

 private:
  std::string path_;
  base::Mutex mutex_;
  storage::Signal reported_;
  LogIndex last_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::optional<ErrorCode> error_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace

TEST_CASE("log writer: what is reported is there again", "[log_writer]") {
  Writing writing;
  writing.begin();
  for (LogIndex index = 1; index <= 2'000; index += 4) {
    writing.writer->append(index, Writing::entries(index, 4, 1));
  }
  REQUIRE(writing.wait_for(2'000) == 2'000);
  CHECK(writing.writer->syncs() <= 500);
  writing.writer->append(1'500, Writing::entries(1'500, 10, 2));  // replaces all behind it
  writing.writer->forget(400);
  writing.writer->forget(9'999);  // not there: nothing
  writing.writer.reset();
  const auto log = writing.open_log();
  CHECK(log->last() == 1'509);
  CHECK(log->first() <= 401);
  CHECK(log->term_of(1'499) == 1);
  CHECK(log->term_of(1'509) == 2);
  CHECK(log->read(1'505)->starts_with("1505/2"));
}

TEST_CASE("log writer: a full disk delays, and what comes after it is whole", "[log_writer]") {
  Writing writing;
  writing.begin();
  writing.writer->append(1, Writing::entries(1, 10, 1));
  REQUIRE(writing.wait_for(10) == 10);
  SickDisk::set(writing.disk.full, true);
  // More than a segment holds.
  for (LogIndex index = 11; index <= 1'000; index += 10) {
    writing.writer->append(index, Writing::entries(index, 10, 1));
  }
  while (!writing.writer->is_full()) std::this_thread::yield();
  CHECK_FALSE(writing.error());
  SickDisk::set(writing.disk.full, false);
  REQUIRE(writing.wait_for(1'000) == 1'000);
  CHECK_FALSE(writing.writer->is_full());
  CHECK(writing.writer->bytes_waiting() == 0);
  writing.writer.reset();
  const auto log = writing.open_log();
  REQUIRE(log->last() == 1'000);
  for (LogIndex index = 1; index <= 1'000; ++index) {
    REQUIRE(log->read(index)->starts_with(std::to_string(index) + "/1"));
  }
}

TEST_CASE("log writer: it ends although the disk is full", "[log_writer]") {
  Writing writing;
  writing.begin();
  SickDisk::set(writing.disk.full, true);
  writing.writer->append(1, Writing::entries(1, 10, 1));
  while (!writing.writer->is_full()) std::this_thread::yield();
  writing.writer.reset();
  SickDisk::set(writing.disk.full, false);
  CHECK(writing.open_log()->last() == 0);
}

TEST_CASE("log writer: a task is run by its thread, at the latest at the end", "[log_writer]") {
  Writing writing;
  writing.begin();
  std::vector<std::thread::id> threads;
  const auto note = [&] { threads.push_back(std::this_thread::get_id()); };
  writing.writer->append(1, Writing::entries(1, 10, 1));
  REQUIRE(writing.wait_for(10) == 10);
  writing.writer->run_after_write(note);
  writing.writer.reset();
  REQUIRE(threads.size() == 1);
  CHECK(threads[0] != std::this_thread::get_id());
}

TEST_CASE("log writer: while the disk is full only the newest task is kept", "[log_writer]") {
  Writing writing;
  writing.begin();
  SickDisk::set(writing.disk.full, true);
  writing.writer->append(1, Writing::entries(1, 10, 1));
  while (!writing.writer->is_full()) std::this_thread::yield();
  std::vector<int> called;
  for (int i = 1; i <= 1'000; ++i) {
    writing.writer->run_after_write([&called, i] { called.push_back(i); });
  }
  SickDisk::set(writing.disk.full, false);
  REQUIRE(writing.wait_for(10) == 10);
  writing.writer.reset();
  CHECK(called == std::vector<int>{1'000});
}

TEST_CASE("log writer: a sync that failed is the last report", "[log_writer]") {
  Writing writing;
  writing.begin();
  writing.writer->append(1, Writing::entries(1, 10, 1));
  REQUIRE(writing.wait_for(10) == 10);
  SickDisk::set(writing.disk.fails, true);
  writing.writer->append(11, Writing::entries(11, 10, 1));
  CHECK(writing.wait_for(20) == 10);
  CHECK(writing.error() == ErrorCode::storage_failed);
  writing.writer->append(21, Writing::entries(21, 10, 1));
  writing.writer.reset();
}

TEST_CASE("log writer: a snapshot takes the place of all entries", "[log_writer]") {
  Writing writing;
  writing.begin();
  writing.writer->append(1, Writing::entries(1, 10, 1));
  writing.writer->restart(500, 4);
  writing.writer->append(501, Writing::entries(501, 2, 5));
  REQUIRE(writing.wait_for(502) == 502);
  writing.writer.reset();
  const auto log = writing.open_log();
  CHECK(log->first() == 501);
  CHECK(log->last() == 502);
  CHECK(log->term_of(500) == 4);
}

}  // namespace semel::tests
