// The time of a run of a script: it yields after each slice, counts as busy after
// busy-reply-threshold, and is ended after script-time-max or by SCRIPT KILL.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lua_compat/interpreter/interpreter.hpp"
#include "net/commands/command.hpp"
#include "net/scripts/script_thread.hpp"
#include "net/session/busy_scripts.hpp"

namespace semel::net {

/// Of one thread. Used again and again; one run at a time, from begin() to end().
class ScriptPace {
 public:
  explicit ScriptPace(ScriptThread& thread) noexcept : thread_(thread) {}
  ScriptPace(const ScriptPace&) = delete;
  ScriptPace& operator=(const ScriptPace&) = delete;

  enum class Yields : std::uint8_t { never, after_slices };
  void begin(std::int64_t now_ns, Yields yields) noexcept;
  [[nodiscard]] std::int64_t began_ns() const noexcept { return began_ns_; }

  /// The run as pause() needs it.
  struct Run {
    Services& services;
    Engine& engine;
    std::optional<Section>& section;  ///< is yielded while others run
    std::span<const std::string_view> words;
    const LibraryFunction* function;  ///< null: a script
    bool has_written;
  };
  /// The interpreter calls it again and again. It may yield the fibre. Anything but `none` ends the
  /// run.
  [[nodiscard]] lua::Stop pause(const Run& run);
  /// SCRIPT KILL is refused from now on.
  void note_write() noexcept {
    // mo: relaxed: as in BusyScripts::kill().
    if (busy_ != nullptr) busy_->wrote.store(true, std::memory_order_relaxed);
  }
  /// The next pause() ends the run.
  void abandon() noexcept { is_abandoned_ = true; }
  /// The run has ended, or has not begun: it is not busy any more.
  void end(BusyScripts& scripts);
  /// Between two runs.
  [[nodiscard]] bool is_idle() const noexcept { return busy_ == nullptr; }

 private:
  void become_busy(const Run& run);
  void yield(const Run& run);

  ScriptThread& thread_;
  std::int64_t began_ns_ = 0;
  std::int64_t slice_end_ns_ = 0;
  std::shared_ptr<BusyScript> busy_;  // null: not yet. Else it is one of the node's BusyScripts
  Yields yields_ = Yields::never;
  bool is_abandoned_ = false;
};

}  // namespace semel::net
