// The threads that work on a storage in one of its lives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/storage/faults/failed_syncs.hpp"
#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {

class Crew {
 public:
  struct Options {
    unsigned threads = 0;  ///< beside them one observes; the main thread is a worker, too
    Worker::Options work{};
    bool goes_on = false;  ///< after calls that are refused
    FailedSyncs* failed_syncs = nullptr;
  };

  /// All of these must outlive it.
  Crew(World& world, Ledger& ledger, const Clock& clock, const PowerDisk& disk,
       proofs::Random& random, const Options& options);
  ~Crew() { join(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Of the main thread.
  [[nodiscard]] Worker& own() noexcept { return *workers_.back(); }
  [[nodiscard]] Observer& observer() noexcept { return own_observer_; }
  /// They stop after the call they are in.
  void stop() noexcept {
    ends_.store(true,
                std::memory_order_relaxed);  // mo: relaxed: what was done is read after join()
  }
  void join();
  /// What somebody was shown must stay, whoever wrote it. After join().
  void hand_over(Ledger& ledger) const;
  [[nodiscard]] const std::vector<std::unique_ptr<Worker>>& workers() const noexcept {
    return workers_;
  }

 private:
  void work(Worker& worker);
  [[nodiscard]] bool goes_on() const noexcept {
    return !disk_.is_cut() && !ends_.load(std::memory_order_relaxed);  // mo: relaxed: as in stop()
  }

  const PowerDisk& disk_;
  const Options options_;
  std::atomic<bool> ends_{false};
  std::vector<std::unique_ptr<Worker>> workers_;  // the last one is the main thread's
  Observer observer_;
  Observer own_observer_;
  std::vector<std::thread> threads_;
};

}  // namespace semel::faults
