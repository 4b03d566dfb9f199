// The tools of one thread that runs scripts: an interpreter, a stack for scripts that may yield,
// and a cache of the node's texts. The run itself is in net/scripts/script_host.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lua_compat/interpreter/interpreter.hpp"
#include "net/scripts/fibre.hpp"
#include "net/scripts/scripts.hpp"
#include "net/time/ticks.hpp"
#include "semel/result.hpp"

namespace semel::net {

class ScriptThread {
 public:
  explicit ScriptThread(Scripts& scripts);
  ~ScriptThread();
  ScriptThread(const ScriptThread&) = delete;
  ScriptThread& operator=(const ScriptThread&) = delete;

  [[nodiscard]] Scripts& scripts() noexcept { return scripts_; }

  /// The script with this digest, in any case of letters. Null: there is none. The result is valid
  /// until the next release_retired() or forget_retired().
  [[nodiscard]] const SharedScript& find(std::string_view sha);
  /// Of text that EVAL or SCRIPT LOAD has said. The detail of an error is the whole reply, here and
  /// below.
  [[nodiscard]] Result<SharedScript> take(std::string_view text, bool loads, std::int64_t now_ns);
  /// Has compiled it in this thread's interpreter.
  [[nodiscard]] Status compile(const SharedScript& script);
  /// Has the library's functions in this thread's interpreter.
  [[nodiscard]] Status prepare(const SharedLibrary& library, const TickSource& ticks);
  /// Makes a library of its code, which may run for 500 ms.
  [[nodiscard]] Result<SharedLibrary> make_library(std::string_view code, const TickSource& ticks);
  /// Of one that was made and is not called.
  void forget(const SharedLibrary& library);

  [[nodiscard]] lua::Interpreter& interpreter();
  [[nodiscard]] Fibre& fibre();
  void forget_retired() { retired_.clear(); }
  /// Call after a run: frees retired scripts, and updates the metric of memory.
  void release_retired();

 private:
  struct ScriptSlot {
    SharedScript script{};
  };
  static constexpr std::size_t slot_count = 1024;
  static constexpr std::size_t probes_max = 4;

  [[nodiscard]] const SharedScript& look_up(const std::string& sha);
  void forget_old();
  void renew_if_crowded();

  Scripts& scripts_;
  std::unique_ptr<lua::Interpreter> interpreter_;
  std::vector<SharedScript> compiled_;
  std::unordered_set<SharedLibrary> loaded_;
  std::uint64_t scripts_seen_ = 0;    // generation of the scripts when old ones were forgotten
  std::uint64_t libraries_seen_ = 0;  // the same of the libraries
  std::vector<ScriptSlot> slots_;     // by digest, probed
  SharedScript none_{};
  std::vector<SharedScript> retired_;  // found since release_retired(), and no longer among slots_
  std::shared_ptr<InterpreterMetrics> metrics_;
  bool shows_metrics_ = false;
  std::unique_ptr<Fibre> fibre_;
};

}  // namespace semel::net
