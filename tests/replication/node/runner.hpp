// What requests of clients do in a group of a test: a few words on the engine, with a fault.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "replication/state/apply.hpp"
#include "semel/engine.hpp"

namespace semel::tests {

/// INCR key | SETNX key value | ISSUE key | TAKE key. A reply each, with a space behind it.
class WordsRunner final : public replication::RequestRunner {
 public:
  void set_engine(Engine& engine) noexcept {
    engine_.store(&engine, std::memory_order_release);  // mo: release [test.runner]
  }
  /// The next request is not carried out here: this replica stops, as one whose memory ends.
  void fail_next() noexcept {
    fails_.store(true, std::memory_order_relaxed);  // mo: relaxed: before what is asked then
  }
  /// Requests that this replica has carried out.
  [[nodiscard]] std::uint64_t runs() const noexcept {
    return runs_.load(std::memory_order_relaxed);  // mo: relaxed: a count
  }

  [[nodiscard]] bool knows(const replication::RequestCommand& command) const noexcept override {
    for (const auto& words : command.requests) {
      const Bytes verb = words.front();
      if (verb != "INCR" && verb != "SETNX" && verb != "ISSUE" && verb != "TAKE") return false;
    }
    return true;
  }
  [[nodiscard]] replication::PlainAnswer run(const replication::RequestCommand& command) override;

 private:
  [[nodiscard]] std::string reply(const std::vector<Bytes>& words);

  std::atomic<Engine*> engine_{nullptr};
  std::atomic<bool> fails_{false};
  std::atomic<std::uint64_t> runs_{0};
};

}  // namespace semel::tests
