// Works with joined commits until it is killed, and says on stdout what it was about to do and what
// it was told. Whoever kills it remembers; this process must not.
//
//   join_victim DIRECTORY joined|apart logged|synced SEED
//
//   d KEY         found after recovery: the claim is done
//   e KEY EPOCH   found after recovery: an effect of that owner; then "ready"
//   t KEY         about to claim it
//   a KEY         told that it is done, as its owner or as a repeat
//
// "apart" does it the usual way, the effect in one write and the claim in another. That must be
// noticed.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "semel/rocksdb.hpp"
#include "semel/semel.hpp"

namespace {

constexpr int thread_count = 2;

void say(const std::string& line) {
  // One write, so that lines of two threads do not mix (pipe(7): up to 4,096 bytes).
  if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::_Exit(3);
  }
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "join_victim: %s\n", what.c_str());
  std::_Exit(1);
}

class Victim {
 public:
  Victim(semel::Storage& storage, semel::Engine& engine, bool joined, semel::Durability level)
      : storage_(storage),
        engine_(engine),
        claims_(engine.claims("jobs", semel::Policy{}).value()),
        effects_(semel::family(storage, "effects")),
        joined_(joined),
        level_(level) {}

  /// Says what is there, and finishes what the last process had begun.
  void look() {
    std::vector<std::string> held;
    std::uint64_t cursor = 0;
    do {
      const auto visit = [&](const semel::ScanItem& item) {
        if (item.claim == nullptr) return;
        const std::string key{item.key.substr(std::strlen("jobs:"))};
        if (item.claim->state == semel::ClaimState::done) {
          say("d " + key + "\n");
        } else {
          held.push_back(key);
        }
      };
      auto next = engine_.scan(cursor, {.count = 1'000}, visit);
      if (!next.ok()) fail(next.error().message());
      cursor = *next;
    } while (cursor != 0);
    const std::unique_ptr<rocksdb::Iterator> row{
        semel::database(storage_).NewIterator({}, effects_)};
    for (row->SeekToFirst(); row->Valid(); row->Next()) {
      say("e " + row->key().ToString() + "\n");
    }
    say("ready\n");
    for (const std::string& key : held) work(key);
  }

  void work(const std::string& key) {
    say("t " + key + "\n");
    const semel::ClaimOutcome claim = claims_.claim({.key = key});
    if (claim.answer == semel::ClaimAnswer::replay) say("a " + key + "\n");
    if (claim.answer != semel::ClaimAnswer::granted) return;
    const semel::OwnerCall call{.key = key, .epoch = claim.epoch, .payload = "paid"};
    const std::string row = key + " " + std::to_string(claim.epoch);
    rocksdb::WriteBatch effects;
    if (!effects.Put(effects_, row, "paid").ok()) fail("a batch");
    if (joined_) {
      const auto done = semel::complete_joined(storage_, claims_, call, effects, level_);
      // The log is small and may be full for a moment: then nothing was changed.
      if (!done && done.error().code == semel::ErrorCode::refused) return;
      if (!done) fail(done.error().message());
      if (done->owner.error == semel::ErrorCode::refused) return;
      if (!done->written) fail("it was done before");
    } else {
      rocksdb::WriteOptions options;
      options.sync = level_ == semel::Durability::synced;
      const auto status = semel::database(storage_).Write(options, &effects);
      if (!status.ok()) fail(status.ToString());
      // Refused for a moment, with the effect written: just what must be noticed.
      if (claims_.complete(call).answer != semel::OwnerAnswer::ok) return;
    }
    say("a " + key + "\n");
  }

 private:
  semel::Storage& storage_;
  semel::Engine& engine_;
  semel::Claims claims_;
  rocksdb::ColumnFamilyHandle* effects_;
  const bool joined_;
  const semel::Durability level_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 2;
  const semel::Durability level = std::strcmp(arguments[3], "synced") == 0
                                      ? semel::Durability::synced
                                      : semel::Durability::logged;
  const std::uint64_t seed = std::strtoull(arguments[4], nullptr, 10);
  const semel::SystemClock clock;
  auto storage = semel::open_storage({.directory = arguments[1], .log_bytes = std::size_t{1} << 20},
                                     clock, {{"effects", rocksdb::ColumnFamilyOptions{}}});
  if (!storage) fail(storage.error().message());
  auto engine = semel::Engine::open({.clock = &clock,
                                     .journal = storage->get(),
                                     .durability = level,
                                     .memory_bytes = std::size_t{64} << 20,
                                     .key_bytes_max = 1024,
                                     .value_bytes_max = 1024,
                                     .first_version = (*storage)->first_version()});
  if (!engine) fail(engine.error().message());
  auto report = (*storage)->recover(**engine);
  if (!report) fail(report.error().message());
  Victim victim{**storage, **engine, std::strcmp(arguments[2], "joined") == 0, level};
  victim.look();
  // All walk over the same keys, so that most are asked for by an owner and by a repeat.
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t number = 0;; ++number) {
        victim.work(std::to_string(seed) + "." + std::to_string(number));
      }
    });
  }
  // In every other process the files are drained and written anew meanwhile.
  while (seed % 2 == 1) {
    if (auto status = (*storage)->rewrite(**engine); !status) fail(status.error().message());
    if (auto status = (*storage)->drain(); !status) fail(status.error().message());
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}
