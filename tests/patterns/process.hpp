// A process that can end at any step. Each change that reaches the journal and each effect of the
// work is a step; behind the last one that the test allows the process is dead: what it goes on to
// do has no effect. restart() is the next process, with what the journal has.
//
// fill() is for full memory: records of other keys that are no part of the story. They are no steps
// and end with the process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "semel/engine_host.hpp"
#include "semel/semel.hpp"

namespace semel::tests {

class Process {
 public:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  explicit Process(std::uint64_t steps = never,
                   std::size_t memory_bytes = limits::memory_bytes_default)
      : memory_bytes_(memory_bytes), steps_left_(steps) {
    open();
  }

  [[nodiscard]] Engine& engine() noexcept { return *engine_; }
  [[nodiscard]] ManualClock& clock() noexcept { return clock_; }
  [[nodiscard]] Claims claims(Bytes name, const Policy& policy) {
    return engine_->claims(name, policy).value();
  }

  /// The process has not ended.
  [[nodiscard]] bool alive() const noexcept { return alive_; }
  /// Something that cannot be undone, and everybody sees.
  void effect(std::string what) {
    const std::lock_guard lock{mutex_};
    if (step()) effects_.push_back(std::move(what));
  }
  [[nodiscard]] const std::vector<std::string>& effects() const noexcept { return effects_; }
  [[nodiscard]] std::size_t count(const std::string& what) const {
    return static_cast<std::size_t>(std::count(effects_.begin(), effects_.end(), what));
  }

  /// Other keys take all memory that is left.
  void fill() {
    for (const std::size_t bytes : {60'000U, 4'000U, 200U, 1U}) {
      const std::string value(bytes, 'f');
      while (engine_->store().set(filler_key(filled_), value).ok()) ++filled_;
    }
  }
  /// They go.
  void empty() {
    for (; filled_ > 0; --filled_) {
      static_cast<void>(engine_->store().del(filler_key(filled_ - 1)));
    }
  }
  [[nodiscard]] bool is_filled() const noexcept { return filled_ > 0; }

  /// The next process begins.
  void restart(std::uint64_t steps = never) {
    engine_.reset();
    filled_ = 0;
    steps_left_ = steps;
    alive_ = true;
    open();
  }

 private:
  /// Counts a step, under mutex_. False: the process has ended before it.
  bool step() noexcept {
    if (steps_left_ == 0) alive_ = false;
    if (alive_ && steps_left_ != never) --steps_left_;
    return alive_;
  }

  static constexpr Bytes filler = "other:";
  [[nodiscard]] static std::string filler_key(std::size_t number) {
    return std::string{filler} + std::to_string(number);
  }

  class CutJournal final : public Journal {
   public:
    explicit CutJournal(Process& process) : process_(process) {}
    Ticket append(std::span<const Mutation> group) override {
      const std::lock_guard lock{process_.mutex_};  // an engine's threads append side by side
      if (group.size() == 1 && group[0].key.starts_with(filler)) return newest_ticket();
      // A namespace is declared once, before the story begins: not a step of it.
      const bool declares = std::all_of(group.begin(), group.end(), [](const Mutation& each) {
        return each.kind == Kind::name_space;
      });
      if (!declares && !process_.step()) return ++lost_ + process_.kept_.newest();
      for (const Mutation& mutation : group) {
        process_.newest_version_ = std::max(process_.newest_version_, mutation.version);
      }
      return process_.kept_.append(group);
    }
    Status wait(Ticket, Durability) override { return Done{}; }
    Ticket newest() const override {
      const std::lock_guard lock{process_.mutex_};
      return newest_ticket();
    }

   private:
    // Under the process's mutex. Not 0, which would say that nothing was taken.
    [[nodiscard]] Ticket newest_ticket() const {
      return std::max<Ticket>(process_.kept_.newest() + lost_, 1);
    }

    Process& process_;
    Ticket lost_ = 0;
  };

  void open() {
    journal_ = std::make_unique<CutJournal>(*this);
    engine_ = Engine::open({.clock = &clock_,
                            .journal = journal_.get(),
                            .durability = Durability::logged,
                            .memory_bytes = memory_bytes_,
                            .shard_count = 4,
                            .hash_seed = 7,
                            .first_version = newest_version_ + 1})
                  .value();
    kept_.replay([&](Ticket, const Mutation& mutation) {
      static_cast<void>(engine_->host().restore(mutation).value());
    });
  }

  mutable std::mutex mutex_;
  ManualClock clock_;
  MemoryJournal kept_;
  std::unique_ptr<CutJournal> journal_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::string> effects_;
  std::size_t memory_bytes_;
  std::size_t filled_ = 0;
  std::uint64_t steps_left_;
  Version newest_version_ = 0;
  bool alive_ = true;
};

}  // namespace semel::tests
