// Works on a storage until it is killed or told to end, and says on stdout what it asked and was
// told. A driver remembers (kill_test.py, faults/filesystems.py); this process must not.
//
//   storage_victim DIRECTORY early|logged|synced SEED few|written|filling|joined|apart
//
//   few       a hundred keys that are set and deleted
//   written   the same, and the log's files are not mapped
//   filling   many keys with values of up to 4 KiB, until the file system is full
//   joined    claims that are completed together with an effect
//   apart     the same in the usual way, the effect in one write and the claim in another: that
//             must be noticed
//
//   x TEXT        opening was refused; exit code 3
//   s KEY VALUE   found after recovery, one line for each record; then "ready". The value of a
//                 claim with its effect is "done"; one that lacks the other half has another value
//   t KEY VALUE   about to set (VALUE "-": to delete)
//   a KEY VALUE   acknowledged; at "early" before it was, which must be noticed
//   r KEY VALUE   refused: nothing was changed
//   u KEY VALUE   the outcome is unknown
//   w TEXT        an answer that must not be
//   d             the state of the storage is "failed"
//
// A line on stdin, or its end: the storage is closed, "closed" is written, exit code 0.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "semel/rocksdb.hpp"
#include "semel/semel.hpp"
#include "storage/log/disk.hpp"

namespace {

using semel::Status;

struct Shape {
  std::string_view name;
  std::uint64_t keys_each = 50;  // of a thread
  std::size_t value_bytes_max = 64;
  std::size_t log_bytes = std::size_t{1} << 20;
  bool deletes = true;  // every fourth time; else only where a set was refused
  bool is_mapped = true;
  bool has_claims = false;
  bool joins = false;
};
constexpr Shape shapes[] = {{.name = "few"},
                            {.name = "written", .is_mapped = false},
                            {.name = "filling",
                             .keys_each = 12'000,
                             .value_bytes_max = 4'096,
                             .log_bytes = std::size_t{16} << 20,
                             .deletes = false},
                            {.name = "joined", .has_claims = true, .joins = true},
                            {.name = "apart", .has_claims = true}};
constexpr int thread_count = 2;

// Concurrency: [victim.stop]  release store of the main thread, acquire loads of workers.
std::atomic<bool> stop{false};

bool goes_on() {
  return !stop.load(std::memory_order_acquire);  // mo: [victim.stop]
}

void say(const std::string& line) {
  // One write, so that lines of two threads do not mix (pipe(7): up to 4,096 bytes).
  if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::_Exit(4);
  }
}

[[noreturn]] void refuse(const std::string& why) {
  say("x " + why + "\n");
  std::_Exit(3);
}

template <class T>
T opened(semel::Result<T> result) {
  if (!result.ok()) refuse(result.error().message());
  return *std::move(result);
}

class UnmappedDisk final : public semel::storage::Disk {
 public:
  [[nodiscard]] bool maps_safely(const std::string&) override { return false; }
};

struct Process {
  const Shape& shape;
  semel::Durability level;
  bool is_early;
  std::uint64_t seed;
  std::unique_ptr<semel::Storage> storage{};
  std::unique_ptr<semel::Engine> engine{};  // ends first
};

/// Sets and deletes keys of its own.
class Worker {
 public:
  Worker(Process& process, int thread)
      : process_(process),
        store_(process.engine->store()),
        thread_(thread),
        state_(process.seed * 2 + static_cast<std::uint64_t>(thread) + 1) {}

  void run() {
    for (std::uint64_t number = 0; goes_on(); ++number) {
      if (process_.shape.deletes && random() % 4 == 0 ? erase() : set(number)) continue;
      // What frees is accepted for longer.
      static_cast<void>(erase());
      look_up();
      constexpr int pause_ms = 2;  // there is nothing to wait for but time
      static_cast<void>(poll(nullptr, 0, pause_ms));
    }
  }

 private:
  std::uint64_t random() noexcept {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return state_ >> 33;
  }
  std::string key() {
    return std::to_string(thread_) + "." + std::to_string(random() % process_.shape.keys_each);
  }
  template <class Act>
  bool ask(const std::string& what, Act act) {
    say("t " + what + "\n");
    if (process_.is_early) say("a " + what + "\n");
    const auto told = act();
    if (process_.is_early) return true;
    const bool unknown = !told.ok() && told.error().code == semel::ErrorCode::outcome_unknown;
    const bool refused = !told.ok() && told.error().code == semel::ErrorCode::refused;
    if (!told.ok() && !unknown && !refused) say("w " + told.error().message() + "\n");
    say((told.ok() ? "a " : unknown ? "u " : "r ") + what + "\n");
    return told.ok();
  }
  bool set(std::uint64_t number) {
    const std::string at = key();
    const std::string id = std::to_string(process_.seed) + "/" + std::to_string(number);
    std::string value = id + "/";
    value.append(random() % (process_.shape.value_bytes_max - value.size()), 'f');
    return ask(at + " " + id, [&] { return store_.set(at, value); });
  }
  bool erase() {
    const std::string at = key();
    return ask(at + " -", [&] { return store_.del(at); });
  }
  void look_up() {
    const auto value = store_.get(key());
    if (!value.ok() && value.error().code != semel::ErrorCode::outcome_unknown) {
      say("w a lookup: " + value.error().message() + "\n");
    }
  }

  Process& process_;
  semel::Store store_;
  const int thread_;
  std::uint64_t state_;
};

/// Completes claims with an effect each. All threads walk over the same keys, so that most are
/// asked for by an owner and by a repeat.
class Payer {
 public:
  explicit Payer(Process& process)
      : process_(process),
        claims_(opened(process.engine->claims("jobs", semel::Policy{}))),
        effects_(semel::family(*process.storage, "effects")) {}

  void run() {
    for (std::uint64_t number = 0; goes_on(); ++number) {
      work(std::to_string(process_.seed) + "." + std::to_string(number));
    }
  }

  /// Says what is there. Returns what the last process had begun.
  [[nodiscard]] std::vector<std::string> look() {
    std::vector<std::string> held;
    std::map<std::string, Halves> found;
    std::uint64_t cursor = 0;
    do {
      cursor =
          opened(process_.engine->scan(cursor, {.count = 1'000}, [&](const semel::ScanItem& item) {
            if (item.claim == nullptr) return;
            const std::string key{item.key.substr(std::strlen("jobs:"))};
            if (item.claim->state == semel::ClaimState::done) {
              found[key].is_done = true;
            } else {
              held.push_back(key);
            }
          }));
    } while (cursor != 0);
    const std::unique_ptr<rocksdb::Iterator> row{
        semel::database(*process_.storage).NewIterator({}, effects_)};
    for (row->SeekToFirst(); row->Valid(); row->Next()) {
      const std::string text = row->key().ToString();  // the key, and the epoch of its owner
      ++found[text.substr(0, text.find(' '))].effects;
    }
    for (const auto& [key, halves] : found) {
      const bool is_whole = halves.is_done && halves.effects == 1;
      say("s " + key + " " +
          (is_whole         ? "done"
           : halves.is_done ? "done_with_effects:" + std::to_string(halves.effects)
                            : "not_done_with_effects:" + std::to_string(halves.effects)) +
          "\n");
    }
    return held;
  }

  void work(const std::string& key) {
    say("t " + key + " done\n");
    const semel::ClaimOutcome claim = claims_.claim({.key = key});
    if (claim.answer == semel::ClaimAnswer::replay) say("a " + key + " done\n");
    if (claim.answer != semel::ClaimAnswer::granted) return;
    const semel::OwnerCall call{.key = key, .epoch = claim.epoch, .payload = "paid"};
    rocksdb::WriteBatch effects;
    if (!effects.Put(effects_, key + " " + std::to_string(claim.epoch), "paid").ok()) {
      refuse("a batch");
    }
    if (process_.shape.joins ? complete_joined(call, effects) : complete_apart(call, effects)) {
      say("a " + key + " done\n");
    }
  }

 private:
  struct Halves {
    bool is_done = false;
    unsigned effects = 0;
  };

  /// False: the log is small and was full for a moment; nothing was changed.
  [[nodiscard]] bool complete_joined(const semel::OwnerCall& call, rocksdb::WriteBatch& effects) {
    const auto done =
        semel::complete_joined(*process_.storage, claims_, call, effects, process_.level);
    if (!done && done.error().code == semel::ErrorCode::refused) return false;
    if (!done) refuse(done.error().message());
    if (done->owner.error == semel::ErrorCode::refused) return false;
    if (!done->written) refuse("it was done before");
    return true;
  }
  /// False: refused for a moment, with the effect written. Just what must be noticed.
  [[nodiscard]] bool complete_apart(const semel::OwnerCall& call, rocksdb::WriteBatch& effects) {
    rocksdb::WriteOptions options;
    options.sync = process_.level == semel::Durability::synced;
    const auto status = semel::database(*process_.storage).Write(options, &effects);
    if (!status.ok()) refuse(status.ToString());
    return claims_.complete(call).answer == semel::OwnerAnswer::ok;
  }

  Process& process_;
  semel::Claims claims_;
  rocksdb::ColumnFamilyHandle* effects_;
};

void open(Process& process, const std::string& directory, const semel::Clock& clock,
          UnmappedDisk& unmapped) {
  const Shape& shape = process.shape;
  semel::StorageOptions options{.directory = directory,
                                .sync_every = semel::Millis{50},
                                .log_bytes = shape.log_bytes,
                                .confirm_within = semel::Millis{5'000}};
  if (!shape.is_mapped) options.disk = &unmapped;
  process.storage = opened(shape.has_claims ? semel::open_storage(options, clock, {{"effects", {}}})
                                            : semel::Storage::open(options, clock));
  process.engine = opened(semel::Engine::open({.clock = &clock,
                                               .journal = process.storage.get(),
                                               .durability = process.level,
                                               .memory_bytes = std::size_t{256} << 20,
                                               .key_bytes_max = 64,
                                               .value_bytes_max = shape.value_bytes_max,
                                               .first_version = process.storage->first_version()}));
  static_cast<void>(opened(process.storage->recover(*process.engine)));
}

void say_records(Process& process) {
  for (const std::string& key : opened(process.engine->store().keys("*"))) {
    const std::string text = opened(process.engine->store().get(key)).value_or("-");
    say("s " + key + " " + text.substr(0, text.rfind('/')) + "\n");
  }
}

/// In every other process with claims the files are drained and written anew meanwhile.
void wait_for_stdin(Process& process) {
  const bool drains = process.shape.has_claims && process.seed % 2 == 1;
  bool told = false;
  for (;;) {
    const int look_again_ms = drains ? 0 : 100;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, look_again_ms) > 0) return;
    if (drains) {
      if (auto status = process.storage->rewrite(*process.engine); !status) {
        refuse(status.error().message());
      }
      if (auto status = process.storage->drain(); !status) refuse(status.error().message());
    }
    if (told || !process.storage->stats().failed) continue;
    say("d\n");
    told = true;
  }
}

const Shape* shape_named(std::string_view name) {
  for (const Shape& shape : shapes) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  const Shape* const shape = count == 5 ? shape_named(arguments[4]) : nullptr;
  if (shape == nullptr) return 2;
  const std::string_view level = arguments[2];
  const semel::SystemClock clock;
  UnmappedDisk unmapped;
  Process process{.shape = *shape,
                  .level = level == "synced"   ? semel::Durability::synced
                           : level == "logged" ? semel::Durability::logged
                                               : semel::Durability::memory,
                  .is_early = level == "early",
                  .seed = std::strtoull(arguments[3], nullptr, 10)};
  open(process, arguments[1], clock, unmapped);
  std::optional<Payer> payer;
  std::vector<std::string> held;
  if (shape->has_claims) {
    held = payer.emplace(process).look();
  } else {
    say_records(process);
  }
  say("ready\n");
  for (const std::string& key : held) payer->work(key);
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] { payer ? payer->run() : Worker{process, t}.run(); });
  }
  wait_for_stdin(process);
  stop.store(true, std::memory_order_release);  // mo: release [victim.stop]
  for (std::thread& thread : threads) thread.join();
  payer.reset();
  process.engine.reset();
  process.storage.reset();
  say("closed\n");
  return 0;
}
