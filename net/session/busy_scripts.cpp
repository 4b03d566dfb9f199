#include "net/session/busy_scripts.hpp"

#include "base/assert.hpp"
#include "net/resp/reply_error.hpp"

namespace semel::net {

std::string BusyScripts::text() const {
  ScriptKind kind = ScriptKind::script;
  {
    const base::MutexLock lock{mutex_};
    if (!scripts_.empty()) kind = scripts_.front()->kind;
  }
  return "BUSY Redis is busy running a script. You can only call " +
         std::string{kind == ScriptKind::script ? "SCRIPT" : "FUNCTION"} +
         " KILL or SHUTDOWN NOSAVE.";
}

void BusyScripts::add(const std::shared_ptr<BusyScript>& script) {
  const base::MutexLock lock{mutex_};
  scripts_.push_back(script);
  count_.store(scripts_.size(), std::memory_order_relaxed);  // mo: relaxed: as in any()
}

void BusyScripts::remove(const std::shared_ptr<BusyScript>& script) {
  const base::MutexLock lock{mutex_};
  const std::size_t removed = std::erase(scripts_, script);
  SEMEL_ASSERT(removed == 1);
  count_.store(scripts_.size(), std::memory_order_relaxed);  // mo: relaxed: as in any()
}

Status BusyScripts::kill(ScriptKind kind) {
  const base::MutexLock lock{mutex_};
  if (scripts_.empty()) return reply_error("NOTBUSY No scripts in execution right now.");
  bool is_killed = false;
  bool is_other = false;
  for (const auto& script : scripts_) {
    // mo: relaxed: it may write its first key while it is being killed, and is then ended as well.
    if (script->wrote.load(std::memory_order_relaxed)) continue;
    if (script->kind != kind) {
      is_other = true;
      continue;
    }
    // mo: relaxed: the script looks again and again; it ends a look later at worst.
    script->killed.store(true, std::memory_order_relaxed);
    is_killed = true;
  }
  if (is_killed) return Done{};
  if (is_other) {
    return reply_error(std::string{"BUSY Redis is busy running a script. You can only call "} +
                       (kind == ScriptKind::script ? "FUNCTION" : "SCRIPT") +
                       " KILL or SHUTDOWN NOSAVE.");
  }
  return reply_error(
      "UNKILLABLE Sorry the script already executed write commands against the dataset. You can "
      "either wait the script termination or kill the server in a hard way using the SHUTDOWN "
      "NOSAVE command.");
}

void BusyScripts::end_all() {
  has_ended_all_.store(true, std::memory_order_relaxed);  // mo: relaxed: as in has_ended_all()
  const base::MutexLock lock{mutex_};
  for (const auto& script : scripts_) {
    script->killed.store(true, std::memory_order_relaxed);  // mo: relaxed: as in kill()
  }
}

std::shared_ptr<const BusyScript> BusyScripts::function() const {
  const base::MutexLock lock{mutex_};
  for (const auto& script : scripts_) {
    if (script->kind == ScriptKind::function) return script;
  }
  return nullptr;
}

}  // namespace semel::net
