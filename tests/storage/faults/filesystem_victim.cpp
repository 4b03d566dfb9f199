// Works on a storage on a file system that fills up or fails, and says on stdout what it asked and
// was told. tests/storage/faults/filesystems.py remembers; this process must not.
//
//   filesystem_victim DIRECTORY logged|synced SEED
//
//   x TEXT        opening was refused; exit code 3
//   s KEY ID      found after recovery, one line for each record; then "ready"
//   t KEY ID      about to set (ID "-": to delete)
//   a KEY ID      acknowledged
//   r KEY ID      refused: nothing was changed
//   u KEY ID      the outcome is unknown
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
#include <string>
#include <thread>
#include <vector>

#include "semel/semel.hpp"
#include "semel/storage.hpp"

namespace {

constexpr int thread_count = 2;
constexpr std::uint64_t keys_each = 12'000;
constexpr std::size_t value_bytes_max = 4'096;

// Concurrency: [victim.stop]  release store of the main thread, acquire loads of workers.
std::atomic<bool> stop{false};

void say(const std::string& line) {
  // One write, so that lines of two threads do not mix (pipe(7): up to 4,096 bytes).
  if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::_Exit(4);
  }
}

/// Between two attempts that are refused: there is nothing to wait for but time.
void pause_briefly() {
  constexpr int pause_ms = 2;
  static_cast<void>(poll(nullptr, 0, pause_ms));
}

class Worker {
 public:
  Worker(semel::Engine& engine, int thread, std::uint64_t seed)
      : store_(engine.store()),
        thread_(thread),
        seed_(seed),
        state_(seed * 2 + static_cast<std::uint64_t>(thread) + 1) {}

  void run() {
    for (std::uint64_t number = 0; !stop.load(std::memory_order_acquire);  // mo: [victim.stop]
         ++number) {
      if (set(number)) continue;
      // What frees is accepted for longer.
      static_cast<void>(erase());
      look_up();
      pause_briefly();
    }
  }

 private:
  std::uint64_t random() noexcept {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return state_ >> 33;
  }
  std::string key() { return std::to_string(thread_) + "." + std::to_string(random() % keys_each); }

  bool tell(const std::string& what, const semel::Status& status) {
    const bool unknown = !status && status.error().code == semel::ErrorCode::outcome_unknown;
    const bool refused = !status && status.error().code == semel::ErrorCode::refused;
    if (!status && !unknown && !refused) say("w " + status.error().message() + "\n");
    say((status ? "a " : unknown ? "u " : "r ") + what + "\n");
    return status.has_value();
  }
  bool set(std::uint64_t number) {
    const std::string what = key() + " " + std::to_string(seed_) + "/" + std::to_string(number);
    const std::size_t space = what.find(' ');
    std::string value = what.substr(space + 1) + "/";
    value.append(random() % (value_bytes_max - value.size()), 'f');
    say("t " + what + "\n");
    const auto told = store_.set(what.substr(0, space), value);
    return tell(what, told.ok() ? semel::Status{semel::Done{}} : semel::Status{told.error()});
  }
  bool erase() {
    const std::string what = key();
    say("t " + what + " -\n");
    const auto told = store_.del(what);
    return tell(what + " -",
                told.ok() ? semel::Status{semel::Done{}} : semel::Status{told.error()});
  }
  void look_up() {
    const auto value = store_.get(key());
    if (!value.ok() && value.error().code != semel::ErrorCode::outcome_unknown) {
      say("w a lookup: " + value.error().message() + "\n");
    }
  }

  semel::Store store_;
  const int thread_;
  const std::uint64_t seed_;
  std::uint64_t state_;
};

int refuse(const semel::Error& error) {
  say("x " + error.message() + "\n");
  return 3;
}

void wait_for_stdin(const semel::Storage& storage) {
  bool told = false;
  for (;;) {
    constexpr int look_again_ms = 100;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, look_again_ms) > 0) return;
    if (told || !storage.stats().failed) continue;
    say("d\n");
    told = true;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const bool is_synced = std::strcmp(arguments[2], "synced") == 0;
  const std::uint64_t seed = std::strtoull(arguments[3], nullptr, 10);
  const semel::SystemClock clock;
  auto storage = semel::Storage::open({.directory = arguments[1],
                                       .sync_every = semel::Millis{50},
                                       .log_bytes = std::size_t{16} << 20,
                                       .confirm_within = semel::Millis{5'000}},
                                      clock);
  if (!storage) return refuse(storage.error());
  auto engine = semel::Engine::open(
      {.clock = &clock,
       .journal = storage->get(),
       .durability = is_synced ? semel::Durability::synced : semel::Durability::logged,
       .memory_bytes = std::size_t{256} << 20,
       .key_bytes_max = 64,
       .value_bytes_max = value_bytes_max,
       .first_version = (*storage)->first_version()});
  if (!engine) return refuse(engine.error());
  auto report = (*storage)->recover(**engine);
  if (!report) return refuse(report.error());
  auto keys = (*engine)->store().keys("*");
  if (!keys.ok()) return refuse(keys.error());
  for (const std::string& key : *keys) {
    const auto value = (*engine)->store().get(key);
    if (!value.ok()) return refuse(value.error());
    const std::string text = value->value_or("-");
    say("s " + key + " " + text.substr(0, text.rfind('/')) + "\n");
  }
  say("ready\n");
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] { Worker{**engine, t, seed}.run(); });
  }
  wait_for_stdin(**storage);
  stop.store(true, std::memory_order_release);  // mo: release [victim.stop]
  for (std::thread& thread : threads) thread.join();
  engine->reset();
  storage->reset();
  say("closed\n");
  return 0;
}
