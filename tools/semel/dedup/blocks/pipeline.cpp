#include "tools/semel/dedup/blocks/pipeline.hpp"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/assert.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {
namespace {

class Pipeline {
 public:
  Pipeline(BlockSteps& steps, PipelineSize size)
      : steps_(steps),
        parts_(size.parts),
        slots_(std::size_t{2} * size.threads + 2),
        judge_next_(size.parts),
        is_judged_(size.parts) {}

  void work(unsigned thread) {
    std::unique_lock lock{mutex_};
    while (!is_over()) {
      const std::optional<Task> task = pick(thread);
      if (!task) {
        changed_.wait(lock);
        continue;
      }
      lock.unlock();
      std::optional<Error> error;
      bool goes_on = true;
      try {
        Result<bool> done = carry(*task, thread);
        if (done.ok()) {
          goes_on = *done;
        } else {
          error = done.error();
        }
      } catch (const std::bad_alloc&) {
        error = memory_error("the system has no memory left");
      }
      lock.lock();
      conclude(*task, goes_on, std::move(error));
      changed_.notify_all();
    }
    if (is_stopped_) steps_.cancel();
    changed_.notify_all();
  }

  [[nodiscard]] Status result() const {
    if (error_) return *error_;
    return Done{};
  }

 private:
  enum class Stage : std::uint8_t { free, read, split, splitting, judging, finishing, finished };
  struct Slot {
    Block block;
    Stage stage = Stage::free;
    unsigned judged = 0;  ///< parts
  };
  enum class Step : std::uint8_t { read, split, judge, finish, write };
  struct Task {
    Step step;
    std::uint64_t number = 0;  ///< of the block
    unsigned part = 0;
  };

  Slot& slot(std::uint64_t number) { return slots_[number % slots_.size()]; }

  [[nodiscard]] bool is_over() const {
    return is_stopped_ || (is_read_ && write_next_ == read_next_);
  }

  /// The oldest block first: its memory serves the next one, and a part waits for it.
  std::optional<Task> pick(unsigned thread) {
    if (!is_writing_ && write_next_ < read_next_ && slot(write_next_).stage == Stage::finished) {
      is_writing_ = true;
      return Task{Step::write, write_next_};
    }
    for (std::uint64_t number = write_next_; number < read_next_; ++number) {
      Slot& one = slot(number);
      if (one.stage == Stage::judging && one.judged == parts_) {
        one.stage = Stage::finishing;
        return Task{Step::finish, number};
      }
    }
    // A thread prefers the part it had: its table is in the thread's cache.
    for (unsigned i = 0; i < parts_; ++i) {
      const unsigned part = (thread + i) % parts_;
      const std::uint64_t number = judge_next_[part];
      if (is_judged_[part] || number >= read_next_) continue;
      Slot& one = slot(number);
      if (one.stage != Stage::split && one.stage != Stage::judging) continue;
      if (one.stage == Stage::split) {
        one.stage = Stage::judging;
        one.block.first_line = lines_;
        lines_ += one.block.lines();
      }
      is_judged_[part] = true;
      return Task{Step::judge, number, part};
    }
    for (std::uint64_t number = write_next_; number < read_next_; ++number) {
      if (slot(number).stage != Stage::read) continue;
      slot(number).stage = Stage::splitting;
      return Task{Step::split, number};
    }
    if (is_reading_ || is_read_ || read_next_ - write_next_ == slots_.size()) return std::nullopt;
    is_reading_ = true;
    return Task{Step::read, read_next_};
  }

  Result<bool> carry(const Task& task, unsigned thread) {
    Block& block = slot(task.number).block;
    switch (task.step) {
      case Step::read:
        block.reset(parts_);
        return steps_.read(block);
      case Step::split:
        steps_.split(block, thread);
        return true;
      case Step::judge:
        steps_.judge(block, task.part);
        return true;
      case Step::finish:
        steps_.finish(block);
        return true;
      case Step::write:
        return steps_.write(block);
    }
    return false;
  }

  void conclude(const Task& task, bool goes_on, std::optional<Error> error) {
    Slot& one = slot(task.number);
    if (error && !error_) error_ = std::move(error);
    switch (task.step) {
      case Step::read:
        is_reading_ = false;
        is_read_ = error || !goes_on;
        if (is_read_) return;
        one.stage = Stage::read;
        one.judged = 0;
        ++read_next_;
        return;
      case Step::split:
        one.stage = Stage::split;
        break;
      case Step::judge:
        is_judged_[task.part] = false;
        ++judge_next_[task.part];
        ++one.judged;
        break;
      case Step::finish:
        one.stage = Stage::finished;
        break;
      case Step::write:
        is_writing_ = false;
        one.stage = Stage::free;
        ++write_next_;
        if (!goes_on) is_stopped_ = true;
        break;
    }
    if (error) is_stopped_ = true;  // only an error of read() lets the blocks before it pass
  }

  BlockSteps& steps_;
  const unsigned parts_;
  std::mutex mutex_;  ///< guards all members below except block contents, owned by the thread that
                      ///< holds the task
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::uint64_t read_next_ = 0;   ///< blocks that were read
  std::uint64_t write_next_ = 0;  ///< blocks that were written
  std::vector<std::uint64_t> judge_next_;
  std::vector<bool> is_judged_;
  std::uint64_t lines_ = 0;
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool is_read_ = false;
  bool is_stopped_ = false;
  std::optional<Error> error_;
};

}  // namespace

Status run_pipeline(BlockSteps& steps, PipelineSize size) {
  SEMEL_ASSERT(size.threads > 0 && size.parts > 0);
  Pipeline pipeline{steps, size};
  std::vector<std::thread> threads;
  threads.reserve(size.threads - 1);
  for (unsigned i = 1; i < size.threads; ++i) {
    try {
      threads.emplace_back([&pipeline, i] { pipeline.work(i); });
    } catch (const std::system_error&) {
      break;
    }
  }
  pipeline.work(0);
  for (std::thread& thread : threads) thread.join();
  return pipeline.result();
}

}  // namespace semel::tool
