// One run of a script: what it may reach, within which section, and how it yields when it
// takes long (docs/decisions/0014-scripts.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lua_compat/interpreter/interpreter.hpp"
#include "net/commands/command.hpp"
#include "net/scripts/script_admission.hpp"
#include "net/scripts/script_pace.hpp"
#include "net/scripts/script_thread.hpp"
#include "net/scripts/script_trial.hpp"
#include "net/scripts/scripts.hpp"

namespace semel::net {

/// The script or function to run.
struct Program {
  SharedScript script{};    ///< or
  SharedLibrary library{};  ///< with
  const LibraryFunction* function = nullptr;
  bool read_only = false;
  bool allows_oom = false;  ///< its flag allow-oom
};

/// From the request to the reply. Which commands it may carry out is the admission's, and when it
/// yields or ends the pace's.
class ScriptRun final : public lua::Host {
 public:
  explicit ScriptRun(ScriptThread& thread) noexcept
      : thread_(thread), admission_(thread.scripts()), pace_(thread) {}
  ~ScriptRun() override = default;
  ScriptRun(const ScriptRun&) = delete;
  ScriptRun& operator=(const ScriptRun&) = delete;

  /// Runs `program` with the keys and arguments of `call`, whose numbers have been checked. One
  /// reply is written, or, if it yields, comes by the client's handle.
  void start(Call& call, Program program, std::size_t key_count);
  /// The next run is one of `trial`, which has begun and outlives it: its commands work there. If
  /// it yields, the client's handle gets an empty reply when it has ended, and `trial` the
  /// script's. Null: no longer, whether it has begun or not.
  void set_trial(ScriptTrial* trial) noexcept { trial_ = trial; }
  /// Of a run that has yielded: goes on for a while. If it yields again, the host is to
  /// be woken once more.
  void go_on();
  /// Runs it to its end, because the connection is closed.
  void abandon();

  void call(std::span<const std::string_view> words, Resp dialect, std::string& reply) override;
  [[nodiscard]] std::optional<bool> may_call(std::span<const std::string_view> words) override;
  void log(lua::LogLevel level, std::string_view text) override;
  [[nodiscard]] lua::Stop pause() override;

 private:
  static void work(void* run);
  [[nodiscard]] lua::Invocation invocation() const noexcept;
  /// The error, none: the section has begun or there is none to begin.
  [[nodiscard]] ErrorCode begin_section(bool keeps_to_keys);
  void begin(Call& call);
  void run_program() noexcept;  // NOLINT(bugprone-exception-escape): see there
  void find_way();
  void fail_for_memory() noexcept;
  void interpret();
  void keep_words();
  void end();
  void end_aside();
  void send_reply(std::int64_t now);
  void clear();
  [[nodiscard]] Engine& engine() noexcept {
    return trial_ != nullptr ? trial_->engine() : services_->engine;
  }
  void carry_out(Call& call, std::string& reply);

  ScriptThread& thread_;
  ScriptAdmission admission_;
  ScriptPace pace_;
  ScriptTrial* trial_ = nullptr;  // null: the commands work in the node's engine
  // Of the present run.
  Services* services_ = nullptr;
  ClientState* client_ = nullptr;
  const CommandRow* row_ = nullptr;
  Program program_;
  std::vector<std::string_view> words_;
  std::vector<std::string> kept_words_;  // what words_ point into, once it has yielded
  std::size_t key_count_ = 0;
  std::optional<Section> section_;
  std::string reply_;
  std::string last_error_;  // of a command, as the reply would have it
  std::uint64_t wait_ = 0;
  std::uint8_t db_ = 0;   // the client's before the script
  bool is_part_ = false;  // of a transaction or of the log
  std::optional<ExecutionScope> scope_;
  bool is_native_ = false;  // it is tried without Lua
};

/// All that one thread has for scripts. The run is used again and again.
struct ScriptHost {
  explicit ScriptHost(Scripts& scripts) : thread(scripts) {}

  ScriptThread thread;
  ScriptRun run{thread};
  ScriptTrial trial{};
};

}  // namespace semel::net
