// What one thread has for scripts: an interpreter, what it has seen of the node's texts lately, and
// the script that has stepped aside.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lua_compat/interpreter/interpreter.hpp"
#include "net/scripts/fibre.hpp"
#include "net/scripts/scripts.hpp"
#include "net/time/ticks.hpp"

namespace semel::net {

class ScriptRun;

class ScriptThread {
 public:
  explicit ScriptThread(Scripts& scripts);
  ~ScriptThread();
  ScriptThread(const ScriptThread&) = delete;
  ScriptThread& operator=(const ScriptThread&) = delete;

  [[nodiscard]] Scripts& scripts() noexcept { return scripts_; }

  /// The script with this digest, in any case of letters. Null: there is none. What was found is
  /// there until the next settle() or forget_retired().
  [[nodiscard]] const SharedScript& find(std::string_view sha);
  /// Of text that EVAL or SCRIPT LOAD has said. Null: `error` says why it is not taken.
  [[nodiscard]] SharedScript take(std::string_view text, bool loads, std::int64_t now_ns,
                                  std::string& error);
  /// Has compiled it in this thread's interpreter. Returns the error.
  [[nodiscard]] std::optional<std::string> compile(const SharedScript& script);
  /// Has the library's functions in this thread's interpreter.
  [[nodiscard]] std::optional<std::string> prepare(const SharedLibrary& library,
                                                   const TickSource& ticks);
  /// Makes a library of its code, which may run for 500 ms. Null: `error` says why not.
  [[nodiscard]] SharedLibrary make_library(std::string_view code, bool must_be_new,
                                           const TickSource& ticks, std::string& error);

  [[nodiscard]] lua::Interpreter& interpreter();
  [[nodiscard]] Fibre& fibre();
  void forget_retired() { retired_.clear(); }
  /// After a run: what it holds is shown, and what nobody needs is given back.
  void settle();

  /// The run of this thread; it is used again and again.
  [[nodiscard]] ScriptRun& run() noexcept { return *run_; }

 private:
  struct Place {
    SharedScript script{};
  };
  static constexpr std::size_t place_count = 1024;
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
  std::vector<Place> places_;         // by digest, probed
  SharedScript none_{};
  std::vector<SharedScript> retired_;  // found since settle(), and no longer among places_
  std::shared_ptr<InterpreterFigures> figures_;
  bool shows_figures_ = false;
  std::unique_ptr<Fibre> fibre_;
  std::unique_ptr<ScriptRun> run_;
};

}  // namespace semel::net
