#include "tests/storage/faults/crew.hpp"

namespace semel::faults {

Crew::Crew(World& world, Ledger& ledger, const Clock& clock, const PowerDisk& disk,
           proofs::Random& random, const Options& options)
    : disk_(disk),
      options_(options),
      observer_(world, ledger, random.bits()),
      own_observer_(world, ledger, random.bits()) {
  for (unsigned t = 0; t <= options_.threads; ++t) {
    Worker::Options work = options_.work;
    work.thread = t;
    work.seed = random.bits();
    workers_.push_back(std::make_unique<Worker>(world, ledger, clock, work));
    if (t == options_.threads) break;
    threads_.emplace_back([this, worker = workers_.back().get()] { this->work(*worker); });
  }
  threads_.emplace_back([this] {
    while (goes_on() && (observer_.step() || disk_.has_failed())) {
    }
  });
}

void Crew::work(Worker& worker) {
  unsigned refused = 0;  // after a failure
  while (goes_on() && refused < FailedSyncs::refusals_max) {
    const bool had_failed = disk_.has_failed();
    const std::uint64_t before = worker.synced();
    const bool is_done = worker.step();
    if (had_failed && options_.failed_syncs != nullptr) {
      options_.failed_syncs->told_after(worker.synced() - before);
      refused += is_done ? 0 : 1;
    }
    if (is_done) continue;
    if (!options_.goes_on) break;
    std::this_thread::yield();
  }
}

void Crew::join() {
  stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Crew::hand_over(Ledger& ledger) const {
  observer_.hand_over(ledger);
  own_observer_.hand_over(ledger);
}

}  // namespace semel::faults
