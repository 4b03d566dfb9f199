// The scripts and functions of a node that have run for longer than busy-reply-threshold: commands
// are answered BUSY meanwhile, and SCRIPT KILL and FUNCTION KILL end them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "semel/result.hpp"

namespace semel::net {

enum class ScriptKind : std::uint8_t { script, function };

/// A script that has run for longer than the busy-reply-threshold, as other threads see it.
struct BusyScript {
  ScriptKind kind = ScriptKind::script;
  std::string name{};                ///< of a function
  std::vector<std::string> words{};  ///< of the command
  std::int64_t began_ns = 0;
  std::atomic<bool> wrote{false};
  std::atomic<bool> killed{false};
};

class BusyScripts {
 public:
  BusyScripts() = default;
  BusyScripts(const BusyScripts&) = delete;
  BusyScripts& operator=(const BusyScripts&) = delete;

  [[nodiscard]] bool any() const noexcept {
    // mo: relaxed: a hint; a command that comes at the same time may be before it.
    return count_.load(std::memory_order_relaxed) != 0;
  }
  /// The error that other commands get while a script runs for long.
  [[nodiscard]] std::string text() const;
  void add(const std::shared_ptr<BusyScript>& script);
  void remove(const std::shared_ptr<BusyScript>& script);
  /// SCRIPT KILL or FUNCTION KILL: at least one will end. The detail of an error is the whole
  /// reply.
  [[nodiscard]] Status kill(ScriptKind kind);
  /// The node is shutting down: ends all long-running scripts, also those that have written.
  void end_all();
  /// Whether end_all() was called: what takes long ends by itself. From any thread.
  [[nodiscard]] bool has_ended_all() const noexcept {
    return has_ended_all_.load(std::memory_order_relaxed);  // mo: relaxed: seen some ms later
  }
  /// Of a function; null: none runs for long.
  [[nodiscard]] std::shared_ptr<const BusyScript> function() const;

 private:
  mutable base::Mutex mutex_;
  std::vector<std::shared_ptr<BusyScript>> scripts_ SEMEL_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};  // of scripts_
  std::atomic<bool> has_ended_all_{false};
};

}  // namespace semel::net
