#include "net/node/group_script_run.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "net/cluster/group_round.hpp"
#include "net/cluster/key_slot.hpp"
#include "net/scripts/script_call.hpp"
#include "net/scripts/script_host.hpp"

namespace semel::net {
namespace {

/// The keys of a script; none if the handler will refuse its words.
std::span<const std::string_view> keys_of(std::span<const std::string_view> words) {
  return script_keys(words).value_or(std::span<const std::string_view>{});
}

/// The classes of the keys that a script names; a script without keys has a class of its own.
std::uint64_t classes_of(std::uint8_t db, std::span<const std::string_view> words) {
  std::uint64_t classes = 0;
  for (const std::string_view key : keys_of(words)) classes |= ScriptTurns::class_of(db, key);
  return classes != 0 ? classes : ScriptTurns::class_of(db, words[1]);
}

std::uint16_t slot_of_words(std::span<const std::string_view> words) {
  const auto keys = keys_of(words);
  return keys.empty() ? std::uint16_t{0} : slot_of(keys.front());
}

}  // namespace

Taken GroupScriptRun::take(const PresentRequest& request, std::string& out) {
  if (script_ == nullptr) {
    script_ = std::make_unique<GroupScript>();
    slot_ = slot_of_words(request.words);
  }
  Next next = Next::go_on;
  while (next == Next::go_on) next = step(request);
  if (next == Next::wait) return Taken::again;
  const std::unique_ptr<GroupScript> ended = std::move(script_);
  hand_out(client_, ended->reply, out);
  return Taken::done;
}

GroupScriptRun::Next GroupScriptRun::step(const PresentRequest& request) {
  using Step = GroupScript::Step;
  switch (script_->step) {
    case Step::ask:
      return ask_for_turn(request);
    case Step::run:
      return run(request);
    case Step::take:
      return take_outcome();
    case Step::confirm:
      return confirm();
    case Step::judge:
      break;
  }
  return judge();
}

GroupScriptRun::Next GroupScriptRun::fail(std::string_view text) {
  script_->reply.clear();
  RespWriter{script_->reply, client_.dialect}.error(text);
  return Next::end;
}

GroupScriptRun::Next GroupScriptRun::fail(const GroupScript::Answer& answer) {
  std::string text = group_error(*node_.services().group, answer.error, slot_);
  if (!answer.detail.empty()) text.append(": ").append(answer.detail);
  return fail(text);
}

GroupScriptRun::Next GroupScriptRun::ask_for_turn(const PresentRequest& request) {
  Group& group = *node_.services().group;
  GroupScript& script = *script_;
  RespWriter reply{script.reply, client_.dialect};
  Call call{node_.services(), node_.engine(), client_, request.words, reply, request.row};
  if (admit(call) == nullptr) return Next::end;  // the error is written
  if (!group.leads() && !group.forwards()) return fail({.error = ErrorCode::not_leader});
  script.step = GroupScript::Step::run;
  if (script.turn.ask(group.script_turns(), classes_of(client_.db, request.words)))
    return Next::go_on;
  const std::uint64_t wait = begin_work(client_);
  script.turn.when_given([handle = client_.handle, wait] { handle->reply(wait, {}); });
  return Next::wait;
}

/// Waits until this node's engine has caught up; script.step says how to continue.
void GroupScriptRun::read() {
  GroupScript& script = *script_;
  script.answer = std::make_shared<GroupScript::Answer>();
  node_.services().group->read([handle = client_.handle, answer = script.answer,
                                wait = begin_work(client_)](ErrorCode error) {
    answer->error = error;
    handle->reply(wait, {});
  });
}

GroupScriptRun::Next GroupScriptRun::run(const PresentRequest& request) {
  GroupScript& script = *script_;
  Group& group = *node_.services().group;
  if (const auto answer = std::exchange(script.answer, nullptr)) {  // of a read
    if (answer->error != ErrorCode::ok) return fail(*answer);
  } else if (!script.has_read && group.script_turns().take_conflict(script.turn.classes())) {
    // Another client's script has run in vain, perhaps at a node that sees changes later: let it
    // go first.
    script.has_read = true;
    read();
    return Next::wait;
  }
  script.reply.clear();
  RespWriter reply{script.reply, client_.dialect};
  reply.set_bound(node_.client_memory->reply_bytes_max());
  Call call{node_.services(), node_.engine(), client_, request.words, reply, request.row};
  if (admit(call) == nullptr) return Next::end;  // also while another script takes long
  ScriptHost& host = *client_.scripts;
  if (const Status begun = host.trial.begin(node_.engine(), group.now()); !begun) {
    return fail("ERR " + begun.error().message());
  }
  ++script.runs;
  script.has_read = false;
  script.step = GroupScript::Step::take;
  host.run.set_trial(&host.trial);
  try {
    execute(call);
  } catch (const std::bad_alloc&) {
    // This connection ends, and the next script of the thread may run without a trial.
    if (!client_.has_yielded) host.run.set_trial(nullptr);
    throw;
  }
  if (client_.has_yielded) {
    client_.discards_wait_reply = false;
    return Next::wait;
  }
  host.run.set_trial(nullptr);
  return Next::go_on;
}

GroupScriptRun::Next GroupScriptRun::take_outcome() {
  GroupScript& script = *script_;
  Group& group = *node_.services().group;
  script.outcome = client_.scripts->trial.end(std::move(script.reply));
  script.reply = std::move(script.outcome.reply);
  if (!script.outcome.refusal.empty()) return fail(script.outcome.refusal);
  if (script.outcome.effects.empty()) {
    if (script.outcome.read.empty()) return Next::end;
    script.step = GroupScript::Step::confirm;
    read();
    return Next::wait;
  }
  script.step = GroupScript::Step::judge;
  script.answer = std::make_shared<GroupScript::Answer>();
  const MemoryUse use = script.outcome.grows ? MemoryUse::grows : MemoryUse::frees;
  group.submit(request_of(script.outcome), use,
               [handle = client_.handle, answer = script.answer,
                wait = begin_work(client_)](GroupReply reply) {
                 answer->error = reply.error;
                 answer->detail = std::move(reply.detail);
                 answer->replies = std::move(reply.replies);
                 handle->reply(wait, {});
               });
  return Next::wait;
}

/// A script without effects ends if its reads still have the present values, else it runs again.
GroupScriptRun::Next GroupScriptRun::confirm() {
  GroupScript& script = *script_;
  const auto answer = std::exchange(script.answer, nullptr);
  if (answer->error != ErrorCode::ok) return fail(*answer);
  script.has_read = true;
  const Timestamp now = std::max(node_.services().group->now(), node_.engine().now());
  const Result<bool> same = ScriptTrial::is_unchanged(node_.engine(), now, script.outcome.read);
  if (!same.ok()) return fail("ERR " + same.error().message());
  return *same ? Next::end : run_again();
}

GroupScriptRun::Next GroupScriptRun::judge() {
  GroupScript& script = *script_;
  const auto answer = std::exchange(script.answer, nullptr);
  if (answer->error != ErrorCode::ok) return fail(*answer);
  if (answer->replies == "*-1\r\n") return run_again();
  // None of these commands replies with a client's bytes, so this is the error of a command.
  const std::size_t error = answer->replies.find("\r\n-");
  if (error == std::string::npos) return Next::end;
  const std::size_t begin = error + 3;
  return fail(answer->replies.substr(begin, answer->replies.find('\r', begin) - begin));
}

GroupScriptRun::Next GroupScriptRun::run_again() {
  GroupScript& script = *script_;
  if (script.runs == GroupScript::runs_max) {
    return fail("TRYAGAIN others have changed this script's keys each time that it ran, " +
                std::to_string(GroupScript::runs_max) + " times; nothing of it was carried out");
  }
  script.step = GroupScript::Step::run;
  // The leader already has the change that caused the refusal, and so has a node after a read.
  if (script.has_read || node_.services().group->leads()) {
    script.has_read = true;
    return Next::go_on;
  }
  script.has_read = true;
  read();
  return Next::wait;
}

}  // namespace semel::net
