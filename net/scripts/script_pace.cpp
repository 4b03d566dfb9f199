#include "net/scripts/script_pace.hpp"

#include <utility>

#include "base/assert.hpp"
#include "net/time/ticks.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {
namespace {

constexpr std::int64_t slice_ns = 1'000'000;

}  // namespace

void ScriptPace::begin(std::int64_t now_ns, Yields yields) noexcept {
  SEMEL_ASSERT(is_idle());
  began_ns_ = now_ns;
  slice_end_ns_ = 0;
  yields_ = yields;
  is_abandoned_ = false;
}

lua::Stop ScriptPace::pause(const Run& run) {
  const std::int64_t now = run.services.ticks().ns();
  if (is_abandoned_) return lua::Stop::killed;
  if (now - began_ns_ > thread_.scripts().time_max_ns()) return lua::Stop::time;
  if (busy_ == nullptr) {
    if (now - began_ns_ < thread_.scripts().busy_after_ns()) return lua::Stop::none;
    become_busy(run);
  }
  if (yields_ == Yields::after_slices && now >= slice_end_ns_) yield(run);
  // mo: relaxed: as in BusyScripts::kill().
  const bool is_killed = is_abandoned_ || busy_->killed.load(std::memory_order_relaxed);
  return is_killed ? lua::Stop::killed : lua::Stop::none;
}

void ScriptPace::become_busy(const Run& run) {
  // It counts as busy from when it is listed: without memory for that the script ends before.
  auto busy = std::make_shared<BusyScript>();
  busy->kind = run.function == nullptr ? ScriptKind::script : ScriptKind::function;
  if (run.function != nullptr) busy->name = run.function->name;
  busy->words.assign(run.words.begin(), run.words.end());
  busy->began_ns = began_ns_;
  busy->wrote.store(run.has_written, std::memory_order_relaxed);  // mo: relaxed: not shared yet
  run.services.busy_scripts.add(busy);
  busy_ = std::move(busy);
  // Calls that wait inside the engine for this section are to answer BUSY as well.
  run.engine.host().section_takes_long();
}

void ScriptPace::yield(const Run& run) {
  if (run.section) run.section->yield();
  thread_.fibre().yield();
  if (run.section) run.section->resume();
  slice_end_ns_ = run.services.ticks().ns() + slice_ns;
}

void ScriptPace::end(BusyScripts& scripts) {
  if (busy_ == nullptr) return;
  scripts.remove(busy_);
  busy_.reset();
}

}  // namespace semel::net
