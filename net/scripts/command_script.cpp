// EVAL and its kin, and SCRIPT.
#include "net/commands/access.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/script_call.hpp"
#include "net/scripts/script_host.hpp"
#include "net/scripts/scripts.hpp"
#include "net/session/busy_scripts.hpp"
#include "net/session/memory_guard.hpp"
#include "net/session/node_role.hpp"
#include "net/settings/settings.hpp"
#include "net/time/ticks.hpp"

namespace semel::net {

std::optional<std::span<const std::string_view>> script_keys(
    std::span<const std::string_view> words) {
  const auto count = integer_of(words[2]);
  const auto behind = words.subspan(script_words_fixed);
  if (!count || *count < 0 || static_cast<std::uint64_t>(*count) > behind.size()) {
    return std::nullopt;
  }
  return behind.first(static_cast<std::size_t>(*count));
}

std::optional<std::size_t> key_count_of(Call& call, std::string_view not_a_number) {
  const auto number = integer_of(call.args[2]);
  if (!number) {
    call.fail(not_a_number);
  } else if (*number < 0) {
    call.fail("ERR Number of keys can't be negative");
  } else if (static_cast<std::uint64_t>(*number) > call.args.size() - 3) {
    call.fail("ERR Number of keys can't be greater than number of args");
  } else {
    return static_cast<std::size_t>(*number);
  }
  return std::nullopt;
}

bool scripts_are_off(Call& call) {
  // What the log of a group says was admitted by the node that was asked.
  if (call.context().applies_log() || call.services.scripts.policy() != ScriptPolicy::off)
    return false;
  call.services.scripts.refused();
  call.fail("ERR scripts are off; the setting 'scripts' lets them run");
  return true;
}

std::string_view refusal_of_run(const Call& call, std::optional<std::uint32_t> flags) {
  const auto says = [&](ScriptFlag flag) { return flags && (*flags & flag) != 0; };
  const bool writes = flags && !says(script_no_writes);
  if (call.services.role.follows()) [[unlikely]] {
    const bool is_read_only =
        !call.client.is_master && call.services.settings.boolean(Setting::replica_read_only);
    if (writes && is_read_only) return read_only_text;
    if (!says(script_allow_stale) && lacks_master(call)) return no_master_text;
  }
  if (call.client.out_of_memory && writes && !says(script_allow_oom)) return out_of_memory_text;
  return {};
}

namespace {

void run(Call& call, const SharedScript& script, std::size_t key_count, bool read_only) {
  const bool says_so = script->has_shebang;
  const bool only_reads = says_so && (script->flags & script_no_writes) != 0;
  const bool allows_oom = says_so && (script->flags & script_allow_oom) != 0;
  const std::string_view refusal =
      refusal_of_run(call, says_so ? std::optional{script->flags} : std::nullopt);
  if (!refusal.empty()) return call.fail(refusal);
  if (read_only && says_so && !only_reads) {
    return call.fail("ERR Can not execute a script with write flag using *_ro command.");
  }
  script->used(call.services.ticks().ns());
  call.client.scripts->run.start(
      call, {.script = script, .read_only = read_only || only_reads, .allows_oom = allows_oom},
      key_count);
}

void evaluate(Call& call, bool read_only) {
  if (scripts_are_off(call)) return;
  const auto key_count = key_count_of(call);
  if (!key_count) return;
  const Result<SharedScript> script =
      call.client.scripts->thread.take(call.args[1], false, call.services.ticks().ns());
  if (!script) return call.fail(script.error().detail);
  run(call, *script, *key_count, read_only);
}

void evaluate_digest(Call& call, bool read_only) {
  constexpr std::string_view none = "NOSCRIPT No matching script. Please use EVAL.";
  constexpr std::size_t sha_digits = 40;
  if (scripts_are_off(call)) return;
  if (call.args[1].size() != sha_digits) return call.fail(none);
  const auto key_count = key_count_of(call);
  if (!key_count) return;
  const SharedScript script = call.client.scripts->thread.find(call.args[1]);
  if (script == nullptr) return call.fail(none);
  // It may have become known before the setting changed.
  const bool is_known = script->shape.known != lua::KnownScript::unknown;
  if (!is_known && call.services.scripts.policy() == ScriptPolicy::known) return call.fail(none);
  run(call, script, *key_count, read_only);
}

}  // namespace

namespace handlers {

void eval(Call& call) {
  evaluate(call, false);
}
void eval_ro(Call& call) {
  evaluate(call, true);
}
void evalsha(Call& call) {
  evaluate_digest(call, false);
}
void evalsha_ro(Call& call) {
  evaluate_digest(call, true);
}

void script_load(Call& call) {
  if (scripts_are_off(call)) return;
  const Result<SharedScript> script =
      call.client.scripts->thread.take(call.args[2], true, call.services.ticks().ns());
  if (!script) return call.fail(script.error().detail);
  call.reply.bulk((*script)->sha);
}

void script_exists(Call& call) {
  const auto digests = call.args.subspan(2);
  call.reply.array(digests.size());
  for (const std::string_view digest : digests) {
    call.reply.integer(call.client.scripts->thread.find(digest) != nullptr ? 1 : 0);
  }
}

void script_flush(Call& call) {
  const bool is_right =
      call.args.size() == 2 ||
      (call.args.size() == 3 && (is_word(call.args[2], "sync") || is_word(call.args[2], "async")));
  if (!is_right) return call.fail("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  call.services.scripts.flush();
  call.reply.ok();
}

void script_kill(Call& call) {
  const Status killed = call.services.busy_scripts.kill(ScriptKind::script);
  killed ? call.reply.ok() : call.fail(killed.error().detail);
}

void script_debug(Call& call) {
  if (is_word(call.args[2], "no")) return call.reply.ok();
  if (is_word(call.args[2], "yes") || is_word(call.args[2], "sync")) {
    if (call.services.settings.boolean(Setting::stand_in)) return call.reply.ok();
    return call.fail("ERR SCRIPT DEBUG is not supported: there is no debugger");
  }
  call.fail("ERR Use SCRIPT DEBUG YES/SYNC/NO");
}

}  // namespace handlers
}  // namespace semel::net
