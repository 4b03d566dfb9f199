// What each known script does, command by command. Calls are numbered in the order of the script's
// text, because an error names the line of its call.
#include <array>

#include "net/resp/text.hpp"
#include "net/scripts/native_redisson.hpp"
#include "net/scripts/native_run.hpp"
#include "net/scripts/native_scripts.hpp"

namespace semel::net {
namespace {

using lua::KnownScript;
using lua::ScriptAnswer;
using Kind = NativeValue::Kind;

/// As Lua compares two numbers.
bool is_same(std::int64_t left, std::int64_t right) noexcept {
  return static_cast<double>(left) == static_cast<double>(right);
}

// Each returns false only before anything was written or changed.

bool one_command(NativeRun& run) {
  run.send(0, run.shape().commands.front());
  if (!run.is_over()) run.answer_last();
  return true;
}

bool compare_and_run(NativeRun& run) {
  const NativeValue found = run.send(0, {"get", run.key(0)});
  if (run.is_over()) return true;
  if (!found.is(run.argument(0))) {
    run.answer(found.is_nothing() ? run.entry().missing : run.entry().differs);
    return true;
  }
  std::size_t site = 0;
  for (const lua::ScriptCommand& command : run.shape().commands) {
    run.send(++site, command);
    if (run.is_over()) return true;
  }
  run.answer(run.entry().answer);
  return true;
}

bool count(NativeRun& run) {
  const auto& commands = run.shape().commands;
  const NativeValue found = run.send(0, commands[0]);
  if (run.is_over()) return true;
  const std::uint32_t variant = run.entry().variant;
  const bool adds_one = variant == 0 || variant == 3;
  const std::int64_t by =
      adds_one ? 1 : integer_of(run.argument(commands[0].back().index)).value_or(0);
  const bool is_new = is_same(found.number, by);
  if (variant == 2 && is_new) {
    const std::int64_t ms = integer_of(run.argument(commands[1].back().index)).value_or(0);
    if (ms > 0) run.send(1, commands[1]);
    if (!run.is_over()) run.answer_pair(found.number, ms);
    return true;
  }
  if (is_new) run.send(1, commands[1]);
  if (run.is_over()) return true;
  if (variant == 3) {
    const std::int64_t most = integer_of(run.argument(commands[2][0].index)).value_or(0);
    const bool is_over = static_cast<double>(found.number) > static_cast<double>(most);
    run.answer(is_over ? run.entry().missing : run.entry().answer);
    return true;
  }
  if (commands.size() == 3) {
    const NativeValue left = run.send(2, commands[2]);
    if (!run.is_over()) run.answer_pair(found.number, left.number);
    return true;
  }
  const bool is_returned = run.entry().answer.kind == ScriptAnswer::Kind::last;
  is_returned ? run.answer(found.number) : run.answer_nothing();
  return true;
}

bool take(NativeRun& run) {
  const NativeValue found = run.send(0, {"get", run.key(0)});
  if (run.is_over()) return true;
  const bool is_there = !found.is_nothing();
  const std::string text{found.text};
  if (is_there || run.entry().variant == 1) run.send(1, {"del", run.key(0)});
  if (run.is_over()) return true;
  is_there ? run.answer_text(text) : run.answer_nothing();
  return true;
}

bool remove_existing(NativeRun& run) {
  const auto& commands = run.shape().commands;
  const NativeValue found = run.send(0, commands[0]);
  if (run.is_over()) return true;
  const bool is_there = found.kind == Kind::integer ? found.number == 1 : !found.is_nothing();
  if (is_there) run.send(1, commands[1]);
  if (!run.is_over()) run.answer(is_there ? run.entry().answer : run.entry().missing);
  return true;
}

bool get_or_set(NativeRun& run) {
  const NativeValue found = run.send(0, {"get", run.key(0)});
  if (run.is_over()) return true;
  if (!found.is_nothing()) {
    run.answer_last();
    return true;
  }
  run.send(1, run.shape().commands.front());
  if (run.is_over()) return true;
  const ScriptAnswer& answer = run.entry().answer;
  const bool is_new_value = answer.kind == ScriptAnswer::Kind::bulk;
  is_new_value ? run.answer_text(run.argument(0)) : run.answer(answer);
  return true;
}

bool set_absent(NativeRun& run) {
  const std::uint32_t variant = run.entry().variant;
  const lua::ScriptCommand& command = run.shape().commands.front();
  bool goes_on = true;
  if (variant == 0) {
    goes_on = run.send(0, {"setnx", run.key(0), run.argument(0)}).is_one();
  } else if (variant == 1) {
    goes_on = !run.send(0, {"exists", run.key(0)}).is_one();
  }
  if (run.is_over()) return true;
  if (goes_on) {
    const NativeValue done = run.send(variant == 2 ? 0 : 1, command);
    // Nothing: SET NX has found something.
    goes_on = variant != 2 || !done.is_nothing();
  }
  if (!run.is_over()) run.answer(goes_on ? run.entry().answer : run.entry().missing);
  return true;
}

/// A counter as Lua reads it, 0 if there is none. None: it would not come back the same.
std::optional<std::int64_t> counter_of(const NativeValue& found) noexcept {
  constexpr std::int64_t exact_max = std::int64_t{1} << 53;
  if (found.is_nothing()) return 0;
  const auto number = integer_of(found.text);
  if (!number || *number >= exact_max || *number <= -exact_max) return std::nullopt;
  return number;
}

bool count_below(NativeRun& run) {
  const auto& commands = run.shape().commands;
  const auto counter = counter_of(run.send(0, {"get", run.key(0)}));
  if (run.is_over()) return true;
  if (!counter) return false;
  const std::int64_t most = integer_of(run.argument(commands[2][0].index)).value_or(0);
  if (*counter + 1 > most) {
    run.answer(run.entry().missing);
    return true;
  }
  run.send(1, commands[0]);
  if (!run.is_over()) run.send(2, commands[1]);
  if (!run.is_over()) run.answer(*counter + 1);
  return true;
}

bool count_existing(NativeRun& run) {
  const bool is_there = run.send(0, {"exists", run.key(0)}).is_one();
  if (is_there) run.send(1, run.shape().commands.front());
  if (!run.is_over()) is_there ? run.answer_last() : run.answer(run.entry().missing);
  return true;
}

bool spend(NativeRun& run) {
  const auto counter = counter_of(run.send(0, {"get", run.key(0)}));
  if (run.is_over()) return true;
  if (!counter) return false;
  if (*counter > 0) run.send(1, run.shape().commands.front());
  if (!run.is_over()) run.answer(*counter > 0 ? run.entry().answer : run.entry().differs);
  return true;
}

// --- node-redlock ----------------------------------------------------------------------------

void set_all(NativeRun& run) {
  for (std::size_t i = 0; i < run.key_count() && !run.is_over(); ++i) {
    run.send(1, {"set", run.key(i), run.argument(0), "PX", run.argument(1)});
  }
  if (!run.is_over()) run.answer(static_cast<std::int64_t>(run.key_count()));
}

bool acquire_all(NativeRun& run) {
  for (std::size_t i = 0; i < run.key_count(); ++i) {
    const bool is_there = run.send(0, {"exists", run.key(i)}).is_one();
    if (run.is_over()) return true;
    if (is_there) {
      run.answer(0);
      return true;
    }
  }
  set_all(run);
  return true;
}

bool extend_all(NativeRun& run) {
  for (std::size_t i = 0; i < run.key_count(); ++i) {
    const bool is_owner = run.send(0, {"get", run.key(i)}).is(run.argument(0));
    if (run.is_over()) return true;
    if (!is_owner) {
      run.answer(0);
      return true;
    }
  }
  set_all(run);
  return true;
}

bool release_all(NativeRun& run) {
  std::int64_t released = 0;
  for (std::size_t i = 0; i < run.key_count(); ++i) {
    const bool is_owner = run.send(0, {"get", run.key(i)}).is(run.argument(0));
    if (run.is_over()) return true;
    if (!is_owner) continue;
    run.try_send({"del", run.key(i)});
    ++released;
  }
  run.answer(released);
  return true;
}

// --- redis-py, limiters, go-redsync, Spring Integration -----------------------------------------

bool prolong(NativeRun& run) {
  const bool is_owner = run.send(0, {"get", run.key(0)}).is(run.argument(0));
  if (run.is_over()) return true;
  const std::int64_t left = is_owner ? run.send(1, {"pttl", run.key(0)}).number : -1;
  if (run.is_over()) return true;
  if (left < 0) {
    run.answer(0);
    return true;
  }
  std::string ttl{run.argument(1)};
  if (run.argument(2) == "0") {
    constexpr std::int64_t exact_max = std::int64_t{1} << 52;
    const std::int64_t more = integer_of(ttl).value_or(exact_max);
    // What Lua would write in another way is left to it.
    if (left >= exact_max || more >= exact_max || more <= -exact_max) return false;
    ttl = std::to_string(more + left);
  }
  run.send(2, {"pexpire", run.key(0), ttl});
  if (!run.is_over()) run.answer(1);
  return true;
}

bool consume_points(NativeRun& run) {
  run.send(0, run.shape().commands.front());
  if (run.is_over()) return true;
  const std::int64_t points = run.send(1, {"incrby", run.key(0), run.argument(0)}).number;
  if (run.is_over()) return true;
  std::int64_t left = run.send(2, {"pttl", run.key(0)}).number;
  if (run.is_over()) return true;
  if (left == -1) {
    run.send(3, {"expire", run.key(0), run.argument(1)});
    if (run.is_over()) return true;
    const auto seconds = static_cast<double>(integer_of(run.argument(1)).value_or(0));
    left = through_lua(1000 * seconds);
  }
  run.answer_pair(points, left);
  return true;
}

bool hit_window(NativeRun& run) {
  const std::int64_t left = run.send(0, {"pttl", run.key(0)}).number;
  if (run.is_over()) return true;
  if (left <= 0) {
    run.send(1, run.shape().commands.front());
    if (!run.is_over()) run.answer_pair(1, integer_of(run.argument(0)).value_or(0));
    return true;
  }
  const std::int64_t hits = run.send(2, {"incr", run.key(0)}).number;
  if (!run.is_over()) run.answer_pair(hits, left);
  return true;
}

bool look_at_window(NativeRun& run) {
  const NativeValue hits = run.send(0, {"get", run.key(0)});
  if (run.is_over()) return true;
  const bool is_there = !hits.is_nothing();
  const std::string text{hits.text};
  const std::int64_t left = run.send(1, {"pttl", run.key(0)}).number;
  if (run.is_over()) return true;
  run.answer_array(2);
  is_there ? run.answer_text(text) : run.answer_nothing();
  run.answer(left);
  return true;
}

bool touch_or_set(NativeRun& run) {
  const auto& commands = run.shape().commands;
  const NativeValue found = run.send(0, {"get", run.key(0)});
  if (run.is_over()) return true;
  const bool is_one_call = run.entry().variant == 2;
  if (found.is(run.argument(0)) || (is_one_call && found.is_nothing())) {
    run.send(1, commands[0]);
    if (!run.is_over()) run.answer(run.entry().answer);
    return true;
  }
  // go-redsync always sends its SET, which has NX; Spring Integration sets only an absent key.
  const bool always = run.entry().variant == 0;
  if (!always && !found.is_nothing()) {
    run.answer(run.entry().differs);
    return true;
  }
  const NativeValue done = run.send(2, commands[1]);
  if (run.is_over()) return true;
  run.answer(always && done.is_nothing() ? run.entry().differs : run.entry().missing);
  return true;
}

bool obtain_by_prefix(NativeRun& run) {
  const auto& commands = run.shape().commands;
  bool is_set = !run.send(0, commands[0]).is_nothing();
  if (run.is_over()) return true;
  if (!is_set) {
    const auto size = static_cast<std::size_t>(integer_of(run.argument(1)).value_or(0));
    const std::string end = std::to_string(static_cast<std::int64_t>(size) - 1);
    const NativeValue begin = run.send(1, {"getrange", run.key(0), "0", end});
    if (run.is_over()) return true;
    is_set = begin.is(run.argument(0).substr(0, size));
    if (is_set) run.send(2, commands[1]);
    if (run.is_over()) return true;
  }
  is_set ? run.answer({.kind = ScriptAnswer::Kind::status, .text = "OK"}) : run.answer_nothing();
  return true;
}

bool release_and_tell(NativeRun& run) {
  const auto& commands = run.shape().commands;
  std::size_t site = 0;
  const bool asks = run.entry().variant == 0;
  bool is_released = !asks || run.send(site++, {"get", run.key(0)}).is(run.argument(0));
  if (is_released) is_released = run.send(site++, commands[0]).is_one();
  if (is_released) run.send(site, commands[1]);
  if (!run.is_over()) run.answer(is_released ? run.entry().answer : run.entry().differs);
  return true;
}

using Native = bool (*)(NativeRun&);
Native native_of(KnownScript known) noexcept {
  switch (known) {
    case KnownScript::unknown:
      return nullptr;
    case KnownScript::one_command:
      return one_command;
    case KnownScript::compare_and_run:
      return compare_and_run;
    case KnownScript::count:
      return count;
    case KnownScript::take:
      return take;
    case KnownScript::remove_existing:
      return remove_existing;
    case KnownScript::get_or_set:
      return get_or_set;
    case KnownScript::set_absent:
      return set_absent;
    case KnownScript::count_below:
      return count_below;
    case KnownScript::count_existing:
      return count_existing;
    case KnownScript::spend:
      return spend;
    case KnownScript::obtain_by_prefix:
      return obtain_by_prefix;
    case KnownScript::acquire_all:
      return acquire_all;
    case KnownScript::extend_all:
      return extend_all;
    case KnownScript::release_all:
      return release_all;
    case KnownScript::prolong:
      return prolong;
    case KnownScript::consume_points:
      return consume_points;
    case KnownScript::hit_window:
      return hit_window;
    case KnownScript::look_at_window:
      return look_at_window;
    case KnownScript::touch_or_set:
      return touch_or_set;
    case KnownScript::release_and_tell:
      return release_and_tell;
    case KnownScript::hold_reentrant:
      return hold_reentrant;
    case KnownScript::hold_fenced:
      return hold_fenced;
    case KnownScript::release_reentrant:
      return release_reentrant;
    case KnownScript::release_spinning:
      return release_spinning;
    case KnownScript::release_by_force:
      return release_by_force;
    case KnownScript::renew_reentrant:
      return renew_reentrant;
    case KnownScript::renew_many:
      return renew_many;
  }
  return nullptr;
}

}  // namespace

bool run_native(const NativeCall& call) {
  const Native native = native_of(call.shape.known);
  if (native == nullptr || !accepts_native(call.shape, call.invocation)) return false;
  NativeRun run{call};
  return native(run);
}

}  // namespace semel::net
