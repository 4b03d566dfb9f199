#include "net/scripts/script_host.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "net/commands/access.hpp"
#include "net/commands/measure.hpp"
#include "net/commands/monitored.hpp"
#include "net/commands/node_hooks.hpp"
#include "net/events/monitor.hpp"
#include "net/events/pubsub.hpp"
#include "net/scripts/native_scripts.hpp"
#include "net/session/node_role.hpp"
#include "net/session/tracking.hpp"
#include "net/time/ticks.hpp"
#include "net/time/wall_clock.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {
namespace {

/// More keys than this and the section is over everything: most shards would be held anyway.
constexpr std::size_t section_keys_max = 16;
// Of a trial, which has no effect then. Short enough for the string itself, where memory is short.
constexpr std::string_view ended_by_time =
    "ERR the script was ended: it took longer than "
    "script-time-max; nothing of it was carried out";
constexpr std::string_view ended_by_kill =
    "ERR the script was ended by SCRIPT KILL; nothing of it was carried out";
constexpr std::string_view function_ended_by_kill =
    "ERR the function was ended by FUNCTION KILL; nothing of it was carried out";
constexpr std::string_view out_of_memory = "OOM memory";

}  // namespace

// --- what a script asks for ----------------------------------------------------------------------

void ScriptRun::carry_out(Call& call, std::string& reply) {
  if (trial_ == nullptr) return execute(call);
  if (const Status allowed = trial_->admit(call); !allowed) {
    return admission_.refuse(call.row, allowed.error().detail, reply);
  }
  call.row->has(fact_publishes) ? trial_->publish(call) : execute(call);
}

void ScriptRun::call(std::span<const std::string_view> words, Resp dialect, std::string& reply) {
  RespWriter writer{reply, dialect};
  Call call{*services_, engine(), *client_, words, writer};
  const std::size_t before = reply.size();
  const std::size_t bytes_max = thread_.scripts().bounds().reply_bytes;
  writer.set_bound(before + bytes_max);
  if (admission_.admit(call, reply)) {
    if (admission_.has_written()) pace_.note_write();
    carry_out(call, reply);
  }
  if (writer.is_cut()) {
    reply.resize(before);
    writer.error("ERR the reply is larger than the " + std::to_string(bytes_max) +
                 " bytes that script-memory-max lets a script have");
  }
  const std::string_view answer = std::string_view{reply}.substr(before);
  if (answer.starts_with('-')) last_error_ = answer.substr(0, answer.find('\r'));
}

std::optional<bool> ScriptRun::may_call(std::span<const std::string_view> words) {
  RespWriter discarded{last_error_, Resp::two};
  Call call{*services_, engine(), *client_, words, discarded};
  return could_run(call);
}

void ScriptRun::log(lua::LogLevel level, std::string_view text) {
  if (services_->hooks.script_log) services_->hooks.script_log(level, text);
}

// --- time ----------------------------------------------------------------------------------------

lua::Stop ScriptRun::pause() {
  const lua::Stop stop = pace_.pause({.services = *services_,
                                      .engine = engine(),
                                      .section = section_,
                                      .words = words_,
                                      .function = program_.function,
                                      .has_written = admission_.has_written()});
  if (trial_ == nullptr || stop == lua::Stop::none) return stop;
  trial_->discard(stop == lua::Stop::time        ? ended_by_time
                  : program_.function == nullptr ? ended_by_kill
                                                 : function_ended_by_kill);
  return stop;
}

// --- the run -------------------------------------------------------------------------------------

lua::Invocation ScriptRun::invocation() const noexcept {
  const std::span<const std::string_view> words{words_};
  return {.keys = words.subspan(3, key_count_),
          .args = words.subspan(3 + key_count_),
          .dialect = client_->dialect};
}

ErrorCode ScriptRun::begin_section(bool keeps_to_keys) {
  if (trial_ == nullptr && (is_part_ || (keeps_to_keys && key_count_ == 0))) {
    return ErrorCode::ok;
  }
  std::array<KeyRef, section_keys_max> keys;
  std::size_t count = 0;
  if (keeps_to_keys && key_count_ <= section_keys_max) {
    for (const std::string_view key : invocation().keys) keys[count++] = {client_->db, key};
  }
  Result<Section> section = engine().section(std::span{keys}.first(count));
  if (!section) return section.error().code;
  section_.emplace(std::move(*section));
  return ErrorCode::ok;
}

void ScriptRun::start(Call& call, Program program, std::size_t key_count) {
  // One run at a time on a thread: a run that has yielded is answered before another may begin.
  SEMEL_ASSERT(words_.empty() && pace_.is_idle() && !section_);
  SEMEL_ASSERT(call.args.size() >= 3 + key_count);
  services_ = &call.services;
  client_ = &call.client;
  row_ = call.row;
  program_ = std::move(program);
  words_.assign(call.args.begin(), call.args.end());
  key_count_ = key_count;
  try {
    begin(call);
  } catch (const std::bad_alloc&) {
    clear();  // and with it the section, which all others would wait for
    throw;
  }
}

void ScriptRun::begin(Call& call) {
  is_part_ = client_->context->is_part();
  admission_.begin(*services_, *client_,
                   {.read_only = program_.read_only,
                    .allows_oom = program_.allows_oom,
                    .is_trial = trial_ != nullptr});
  const lua::ScriptShape none;
  const lua::ScriptShape& shape = program_.script != nullptr ? program_.script->shape : none;
  // Native scripts do not pass the admission, which refuses writes by the role.
  is_native_ = trial_ == nullptr && !services_->monitors.any() && !services_->role.follows() &&
               !client_->out_of_memory && accepts_native(shape, invocation());
  const ErrorCode error =
      begin_section(trial_ == nullptr && (is_native_ ? keeps_to_keys(shape) : shape.declares_keys));
  if (error != ErrorCode::ok) {
    call.fail(error);
    return clear();
  }
  if (services_->monitors.any()) show_to_monitors(call, script_begins);
  const bool may_yield = client_->may_yield && !is_part_;
  pace_.begin(services_->ticks().ns(),
              may_yield ? ScriptPace::Yields::after_slices : ScriptPace::Yields::never);
  db_ = client_->db;
  scope_.emplace(client_->context,
                 trial_ != nullptr ? ExecutionMode::trial : ExecutionMode::script);
  client_->script_keys = invocation().keys;
  client_->script_unix_us = unix_us_of(engine());
  bool has_ended = true;
  try {
    if (may_yield) {
      has_ended = thread_.fibre().run(&ScriptRun::work, this);
    } else {
      run_program();
    }
    if (!has_ended) keep_words();
  } catch (const std::bad_alloc&) {
    pace_.abandon();
    while (!has_ended) has_ended = thread_.fibre().resume();
    fail_for_memory();
  }
  if (has_ended) {
    end();
    call.reply.prepared(reply_);
    return clear();
  }
  client_->has_yielded = true;
  client_->waits = true;
  wait_ = client_->handle->begin_work();
  client_->handle->wake_host();
}

void ScriptRun::work(void* run) {
  static_cast<ScriptRun*>(run)->run_program();
}

/// Nothing may leave the fibre. What the script wrote stays, as with any that ends half-way.
// NOLINTNEXTLINE(bugprone-exception-escape): any other is a bug, and ends the process here.
void ScriptRun::run_program() noexcept {
  try {
    find_way();
  } catch (const std::bad_alloc&) {
    fail_for_memory();
  }
}

void ScriptRun::fail_for_memory() noexcept {
  if (trial_ != nullptr) trial_->discard(out_of_memory);
  reply_.clear();
  reply_ += "-OOM memory\r\n";  // short enough for the string itself
}

void ScriptRun::find_way() {
  if (is_native_) {
    const lua::Invocation called = invocation();
    const Script& script = *program_.script;
    if (run_native({script.shape, script.sha, called, *this, reply_})) {
      return services_->scripts.ran_native(script.shape);
    }
    // Nothing was done yet: the interpreter may need more keys than the section holds.
    section_.reset();
    const ErrorCode error = begin_section(script.shape.declares_keys);
    if (error != ErrorCode::ok) {
      RespWriter writer{reply_, client_->dialect};
      Call failed{*services_, services_->engine, *client_, words_, writer, row_};
      return failed.fail(error);
    }
  }
  interpret();
}

void ScriptRun::interpret() {
  services_->scripts.interpreted();
  RespWriter writer{reply_, client_->dialect};
  lua::Interpreter& interpreter = thread_.interpreter();
  if (program_.script != nullptr) {
    const Status compiled = thread_.compile(program_.script);
    if (!compiled) return writer.error(compiled.error().detail);
    return interpreter.run(program_.script->sha, invocation(), *this, reply_);
  }
  const Status prepared = thread_.prepare(program_.library, services_->ticks());
  if (!prepared) return writer.error(prepared.error().detail);
  interpreter.run_function(program_.library->id, program_.function->name, invocation(), *this,
                           reply_);
}

/// The request's bytes are the connection's, and go when it reads on.
void ScriptRun::keep_words() {
  kept_words_.assign(words_.begin(), words_.end());
  words_.assign(kept_words_.begin(), kept_words_.end());
  client_->script_keys = invocation().keys;
}

void ScriptRun::go_on() {
  SEMEL_ASSERT(client_->has_yielded);
  client_->has_yielded = false;
  if (client_->lane != nullptr) static_cast<void>(client_->lane->lap(services_->ticks()));
  if (thread_.fibre().resume()) return end_aside();
  client_->has_yielded = true;
}

void ScriptRun::abandon() {
  SEMEL_ASSERT(client_->has_yielded);
  pace_.abandon();
  client_->has_yielded = false;
  while (!thread_.fibre().resume()) {
  }
  try {
    end_aside();
  } catch (const std::bad_alloc&) {  // the client is gone, and with it the reply
  }
}

/// The section ends before the reply or an event of it is sent.
void ScriptRun::end() {
  section_.reset();
  pace_.end(services_->busy_scripts);
  client_->db = db_;
  client_->script_keys = {};
  scope_.reset();
  client_->script_unix_us = 0;
  client_->last_command = &row_->name;
  client_->error_is_counted = !last_error_.empty() && reply_.starts_with(last_error_);
}

void ScriptRun::end_aside() {
  const std::int64_t now = services_->ticks().ns();
  end();
  try {
    send_reply(now);
  } catch (const std::bad_alloc&) {
    clear();  // the thread is free for the next script, and this client is ended
    throw;
  }
  clear();
}

void ScriptRun::send_reply(std::int64_t now) {
  std::string ignored;
  RespWriter writer{ignored, client_->dialect};
  Call call{*services_, services_->engine, *client_, words_, writer, row_};
  if (client_->lane != nullptr) measured(call, now - pace_.began_ns(), reply_);
  if (trial_ != nullptr) trial_->keep_reply(std::move(reply_));
  client_->handle->reply(wait_, trial_ != nullptr ? std::string{} : std::move(reply_));
  services_->pubsub.release(*client_);
  if (client_->tracker != nullptr) client_->tracker->caching = false;
  services_->tracking.send(false);
}

void ScriptRun::clear() {
  // A large reply or request is not held until the next script.
  constexpr std::size_t kept_bytes = std::size_t{64} << 10;
  section_.reset();
  trial_ = nullptr;
  program_ = {};
  words_.clear();
  kept_words_.clear();
  reply_.clear();
  if (reply_.capacity() > kept_bytes) reply_ = {};
  last_error_.clear();
  thread_.release_retired();
}

}  // namespace semel::net
