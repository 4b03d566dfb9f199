#include "net/scripts/native_redisson.hpp"

#include <string_view>
#include <vector>

#include "net/resp/text.hpp"

namespace semel::net {

namespace {

/// Whether the lock is free or its holder asks again. Its calls are number `exists` and `again`.
bool may_hold(NativeRun& run, std::size_t exists, std::size_t again, bool& is_free) {
  const NativeValue found = run.send(exists, {"exists", run.key(0)});
  is_free = found.kind == NativeValue::Kind::integer && found.number == 0;
  if (is_free || run.is_over()) return is_free;
  return run.send(again, {"hexists", run.key(0), run.argument(1)}).is_one();
}

void hold(NativeRun& run, std::size_t site, std::string_view by = "hincrby") {
  run.send(site, {by, run.key(0), run.argument(1), "1"});
  if (!run.is_over()) run.send(site + 1, {"pexpire", run.key(0), run.argument(0)});
}

}  // namespace

bool hold_reentrant(NativeRun& run) {
  const bool is_older = run.entry().variant != 0;
  const bool sets_first = run.entry().variant == 2;
  bool is_free = false;
  const bool holds = may_hold(run, 0, is_older ? 3 : 1, is_free);
  if (run.is_over()) return true;
  if (!holds) {
    run.send(is_older ? 6 : 4, {"pttl", run.key(0)});
    if (!run.is_over()) run.answer_last();
    return true;
  }
  const std::size_t older_site = is_free ? 1 : 4;
  hold(run, is_older ? older_site : 2, sets_first && is_free ? "hset" : "hincrby");
  if (!run.is_over()) run.answer_nothing();
  return true;
}

bool hold_fenced(NativeRun& run) {
  const bool tells_token = run.entry().variant == 0;
  bool is_free = false;
  const bool holds = may_hold(run, 0, 1, is_free);
  if (run.is_over()) return true;
  if (!holds) {
    const std::int64_t left = run.send(5, {"pttl", run.key(0)}).number;
    if (!run.is_over()) tells_token ? run.answer_pair(left, -1) : run.answer(left);
    return true;
  }
  const std::int64_t token = run.send(2, {"incr", run.key(1)}).number;
  if (!run.is_over()) hold(run, 3);
  if (!run.is_over()) tells_token ? run.answer_pair(-1, token) : run.answer_nothing();
  return true;
}

namespace {

/// Where the parts of an unlock stand among keys, arguments and calls.
struct Unlock {
  bool has_latch;
  std::size_t latch_key;
  std::size_t owner;
  std::size_t ttl;
  std::size_t latch_ttl;
  bool tells;
};

/// Writes what the latch says of an unlock that is sent again. False: it is nothing that we read as
/// Lua does.
bool read_latch(NativeRun& run, const Unlock& parts, bool& is_answered) {
  const NativeValue latch = run.send(0, {"get", run.key(parts.latch_key)});
  is_answered = run.is_over() || !latch.is_nothing();
  if (run.is_over() || latch.is_nothing()) return true;
  const auto number = integer_of(latch.text);
  if (number) run.answer(*number);
  return number.has_value();
}

void set_latch(NativeRun& run, const Unlock& parts, std::size_t site, std::string_view value) {
  if (run.is_over() || !parts.has_latch) return;
  run.send(site, {"set", run.key(parts.latch_key), value, "px", run.argument(parts.latch_ttl)});
}

bool release(NativeRun& run, const Unlock& parts, std::string_view publish) {
  bool is_answered = false;
  if (parts.has_latch && !read_latch(run, parts, is_answered)) return false;
  if (is_answered) return true;
  std::size_t site = parts.has_latch ? 1 : 0;
  const std::string_view owner = run.argument(parts.owner);
  const bool is_held = run.send(site++, {"hexists", run.key(0), owner}).is_one();
  if (run.is_over()) return true;
  if (!is_held) {
    run.answer_nothing();
    return true;
  }
  const std::int64_t left = run.send(site++, {"hincrby", run.key(0), owner, "-1"}).number;
  if (run.is_over()) return true;
  const std::size_t last_site = site + (parts.has_latch ? 2U : 1U);
  if (left > 0) {
    run.send(site, {"pexpire", run.key(0), run.argument(parts.ttl)});
    set_latch(run, parts, site + 1, "0");
    if (!run.is_over()) run.answer(0);
    return true;
  }
  site = last_site;
  run.send(site++, {"del", run.key(0)});
  if (!run.is_over() && parts.tells) run.send(site++, {publish, run.key(1), run.argument(0)});
  set_latch(run, parts, site, "1");
  if (!run.is_over()) run.answer(1);
  return true;
}

}  // namespace

bool release_reentrant(NativeRun& run) {
  const std::uint32_t variant = run.entry().variant;
  if (variant != 0) {
    return release(
        run,
        {.has_latch = false, .latch_key = 0, .owner = 2, .ttl = 1, .latch_ttl = 0, .tells = true},
        variant == 1 ? "publish" : run.argument(3));
  }
  return release(
      run, {.has_latch = true, .latch_key = 2, .owner = 2, .ttl = 1, .latch_ttl = 4, .tells = true},
      run.argument(3));
}

bool release_spinning(NativeRun& run) {
  if (run.entry().variant == 1) {
    return release(
        run,
        {.has_latch = false, .latch_key = 0, .owner = 1, .ttl = 0, .latch_ttl = 0, .tells = false},
        {});
  }
  return release(
      run,
      {.has_latch = true, .latch_key = 1, .owner = 1, .ttl = 0, .latch_ttl = 2, .tells = false},
      {});
}

bool release_by_force(NativeRun& run) {
  const bool is_released = run.send(0, {"del", run.key(0)}).is_one();
  const std::uint32_t variant = run.entry().variant;
  if (is_released && variant != 2) {
    run.send(1, {variant == 0 ? run.argument(1) : "publish", run.key(1), run.argument(0)});
  }
  if (!run.is_over()) run.answer(is_released ? 1 : 0);
  return true;
}

bool renew_reentrant(NativeRun& run) {
  const bool is_held = run.send(0, {"hexists", run.key(0), run.argument(1)}).is_one();
  if (is_held) run.send(1, {"pexpire", run.key(0), run.argument(0)});
  if (!run.is_over()) run.answer(is_held ? 1 : 0);
  return true;
}

bool renew_many(NativeRun& run) {
  std::vector<bool> renewed;
  for (std::size_t i = 0; i < run.key_count(); ++i) {
    const bool is_held = run.send(0, {"hexists", run.key(i), run.argument(i + 1)}).is_one();
    if (is_held) run.send(1, {"pexpire", run.key(i), run.argument(0)});
    if (run.is_over()) return true;
    renewed.push_back(is_held);
  }
  run.answer_array(renewed.size());
  for (const bool is_renewed : renewed) run.answer(is_renewed ? 1 : 0);
  return true;
}

}  // namespace semel::net
