// Scripts of a node: the texts that are known, and their bounds (docs/scripts.md).
//
// Texts are shared by all threads, under a mutex; each thread has a cache of them
// (net/scripts/script_thread.hpp). A forgotten script has a flag, so that no thread goes on with
// it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "lua_compat/interpreter/interpreter.hpp"
#include "net/scripts/function_store.hpp"
#include "net/scripts/script_text.hpp"
#include "net/settings/settings.hpp"
#include "semel/result.hpp"

namespace semel::net {

struct CommandRow;

using SharedScript = std::shared_ptr<Script>;

/// The setting `scripts`.
enum class ScriptPolicy : std::uint8_t { automatic, off, known, any };

/// As the setting has it.
[[nodiscard]] std::string_view word_of(ScriptPolicy policy) noexcept;
/// The scripts that it runs and those that it refuses, in one line for the operator log.
[[nodiscard]] std::string_view what_runs(ScriptPolicy policy) noexcept;

/// What an interpreter holds, for INFO.
struct InterpreterMetrics {
  std::atomic<std::uint64_t> bytes{0};
};

class Scripts {
 public:
  /// Scripts that EVAL has made known; beyond, the one that was used least lately goes.
  static constexpr std::size_t evaluated_max = 500;
  static constexpr std::uint64_t forgotten_many = 64;

  explicit Scripts(Settings& settings);
  Scripts(const Scripts&) = delete;
  Scripts& operator=(const Scripts&) = delete;

  // --- texts ----------------------------------------------------------------------------------
  /// Null: there is none. `sha`: 40 small hex digits.
  [[nodiscard]] SharedScript find(std::string_view sha) const;
  /// Keeps `script` and returns it, or the one already kept under its digest.
  [[nodiscard]] SharedScript add(SharedScript script, bool loaded);
  void flush();
  struct Totals {
    std::size_t count = 0;
    std::size_t bytes = 0;
    std::uint64_t interpreter_bytes = 0;
  };
  [[nodiscard]] Totals totals() const;
  /// Rises by one for a script that is forgotten, by forgotten_many for all. Of the few in between
  /// a thread may keep what it has compiled.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    // mo: relaxed: a hint; each script says itself that it is forgotten.
    return generation_.load(std::memory_order_relaxed);
  }
  void show(const std::shared_ptr<InterpreterMetrics>& totals);

  // --- bounds ---------------------------------------------------------------------------------
  /// Never `automatic`.
  [[nodiscard]] ScriptPolicy policy() const noexcept {
    return policy_.load(std::memory_order_relaxed);  // mo: relaxed: a setting
  }
  /// check_commands() of a text that is new, by the setting `script-unknown-commands`. A refusal is
  /// counted.
  [[nodiscard]] Status check_new(std::string_view what, std::span<const lua::SentCommand> sent);
  /// Counts a text that was not taken by a setting.
  void refused() noexcept {
    refused_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  [[nodiscard]] std::uint64_t refused_count() const noexcept {
    return refused_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  /// Counts a run without the interpreter.
  void ran_native(const lua::ScriptShape& shape) noexcept;
  /// Counts a run of the interpreter.
  void interpreted() noexcept {
    interpreted_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  [[nodiscard]] std::uint64_t interpreted_count() const noexcept {
    return interpreted_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }
  /// Runs without the interpreter, by the catalogue's names and `one command`; those that ran.
  [[nodiscard]] std::vector<std::pair<std::string_view, std::uint64_t>> native_counts() const;
  /// DEBUG SET-DISABLE-DENY-SCRIPTS: whether scripts may call DEBUG and CLIENT LIST as well.
  void allow_test_commands(bool yes) noexcept {
    allows_test_commands_.store(yes, std::memory_order_relaxed);  // mo: relaxed: takes effect soon
  }
  [[nodiscard]] bool allows(const CommandRow& row) const noexcept;
  [[nodiscard]] lua::Bounds bounds() const noexcept;
  /// The largest number if busy-reply-threshold is 0: then no script is ever busy, as in Redis.
  [[nodiscard]] std::int64_t busy_after_ns() const noexcept;
  [[nodiscard]] std::int64_t time_max_ns() const noexcept;

  FunctionStore functions;

 private:
  void make_room() SEMEL_REQUIRES(mutex_);
  [[nodiscard]] ScriptPolicy read_policy() const;

  Settings& settings_;
  mutable base::Mutex mutex_;
  std::map<std::string, SharedScript, std::less<>> scripts_ SEMEL_GUARDED_BY(mutex_);
  std::uint64_t numbers_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::size_t evaluated_ SEMEL_GUARDED_BY(mutex_) = 0;  // of them, not loaded
  std::vector<std::weak_ptr<InterpreterMetrics>> interpreters_ SEMEL_GUARDED_BY(mutex_);
  std::atomic<ScriptPolicy> policy_{ScriptPolicy::any};
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<bool> allows_test_commands_{false};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> interpreted_{0};
  std::unique_ptr<std::atomic<std::uint64_t>[]> native_;  // of the catalogue; then one command
};

}  // namespace semel::net
