// A script that Semel does not know, at a connection of a node that belongs to a group
// (net/cluster/group_script.hpp). Each wait ends with an empty reply, and the request comes again.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "net/cluster/key_slot.hpp"
#include "net/node/connection.hpp"
#include "net/scripts/script_call.hpp"
#include "net/scripts/script_host.hpp"

namespace semel::net {
namespace {

/// Of words that the handler will refuse: none.
std::span<const std::string_view> keys_of(std::span<const std::string_view> words) {
  return script_keys(words).value_or(std::span<const std::string_view>{});
}

/// Of the keys that it names; of one that names none, of its own.
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

bool Connection::script_in_group(const CommandRow& row, std::string& out) {
  GroupRound& round = *group_;
  if (round.script == nullptr) round.script = std::make_unique<GroupScript>();
  Next next = Next::go_on;
  while (next == Next::go_on) next = step_script(row);
  if (next == Next::wait) return false;
  const std::unique_ptr<GroupScript> ended = std::move(round.script);
  if (client_.replies == Replies::on) out += ended->reply;
  if (client_.replies == Replies::skip) client_.replies = Replies::on;
  return true;
}

Connection::Next Connection::step_script(const CommandRow& row) {
  GroupScript& script = *group_->script;
  using Step = GroupScript::Step;
  switch (script.step) {
    case Step::ask:
      return ask_for_turn(row);
    case Step::run:
      return run_script(row);
    case Step::take:
      return take_outcome();
    case Step::confirm:
      return confirm_script();
    case Step::judge:
      break;
  }
  return judge_script();
}

std::uint64_t Connection::begin_script_wait() {
  client_.waits = true;
  client_.discards_wait_reply = false;
  return client_.handle->begin_work();
}

Connection::Next Connection::fail_script(std::string_view text) {
  std::string& reply = group_->script->reply;
  reply.clear();
  RespWriter{reply, client_.dialect}.error(text);
  return Next::end;
}

Connection::Next Connection::fail_script(const GroupScript::Answer& answer) {
  const Group& group = *node_.services().group;
  std::string text = group_error(group, answer.error, slot_of_words(parser_.arguments()));
  if (!answer.detail.empty()) text.append(": ").append(answer.detail);
  return fail_script(text);
}

Connection::Next Connection::ask_for_turn(const CommandRow& row) {
  const auto words = parser_.arguments();
  Group& group = *node_.services().group;
  GroupScript& script = *group_->script;
  RespWriter reply{script.reply, client_.dialect};
  Call call{node_.services(), node_.engine(), client_, words, reply, &row};
  if (admit(call) == nullptr) return Next::end;  // the error is written
  if (!group.leads() && !group.forwards()) return fail_script({.error = ErrorCode::not_leader});
  script.step = GroupScript::Step::run;
  if (script.turn.ask(group.script_turns(), classes_of(client_.db, words))) return Next::go_on;
  const std::uint64_t wait = begin_script_wait();
  script.turn.when_given([handle = client_.handle, wait] { handle->reply(wait, {}); });
  return Next::wait;
}

/// This node's engine catches up, and the step that is set comes next.
void Connection::read_for_script() {
  GroupScript& script = *group_->script;
  script.answer = std::make_shared<GroupScript::Answer>();
  node_.services().group->read([handle = client_.handle, answer = script.answer,
                                wait = begin_script_wait()](ErrorCode error) {
    answer->error = error;
    handle->reply(wait, {});
  });
}

Connection::Next Connection::run_script(const CommandRow& row) {
  GroupScript& script = *group_->script;
  Group& group = *node_.services().group;
  if (const auto answer = std::exchange(script.answer, nullptr)) {  // of a read
    if (answer->error != ErrorCode::ok) return fail_script(*answer);
  } else if (!script.has_read && group.script_turns().take_conflict(script.turn.classes())) {
    // Somebody has run for nothing, perhaps at a node that hears later of what was changed: he
    // goes first.
    script.has_read = true;
    read_for_script();
    return Next::wait;
  }
  script.reply.clear();
  RespWriter reply{script.reply, client_.dialect};
  reply.set_bound(node_.client_memory->reply_bytes_max());
  Call call{node_.services(), node_.engine(), client_, parser_.arguments(), reply, &row};
  if (admit(call) == nullptr) return Next::end;  // also while another script takes long
  ScriptHost& host = *client_.scripts;
  if (const Status begun = host.trial.begin(node_.engine(), group.now()); !begun) {
    return fail_script("ERR " + begun.error().message());
  }
  ++script.runs;
  script.has_read = false;
  script.step = GroupScript::Step::take;
  host.run.set_trial(&host.trial);
  execute(call);
  if (client_.has_yielded) {
    client_.discards_wait_reply = false;
    return Next::wait;
  }
  host.run.set_trial(nullptr);
  return Next::go_on;
}

Connection::Next Connection::take_outcome() {
  GroupScript& script = *group_->script;
  Group& group = *node_.services().group;
  script.outcome = client_.scripts->trial.end(std::move(script.reply));
  script.reply = std::move(script.outcome.reply);
  if (!script.outcome.refusal.empty()) return fail_script(script.outcome.refusal);
  if (script.outcome.effects.empty()) {
    if (script.outcome.read.empty()) return Next::end;
    script.step = GroupScript::Step::confirm;
    read_for_script();
    return Next::wait;
  }
  script.step = GroupScript::Step::judge;
  script.answer = std::make_shared<GroupScript::Answer>();
  group.submit(request_of(script.outcome), [handle = client_.handle, answer = script.answer,
                                            wait = begin_script_wait()](GroupReply reply) {
    answer->error = reply.error;
    answer->detail = std::move(reply.detail);
    answer->replies = std::move(reply.replies);
    handle->reply(wait, {});
  });
  return Next::wait;
}

/// What has no effect has read what is there now, or runs again.
Connection::Next Connection::confirm_script() {
  GroupScript& script = *group_->script;
  const auto answer = std::exchange(script.answer, nullptr);
  if (answer->error != ErrorCode::ok) return fail_script(*answer);
  script.has_read = true;
  const Timestamp now = std::max(node_.services().group->now(), node_.engine().now());
  const Result<bool> same = ScriptTrial::is_unchanged(node_.engine(), now, script.outcome.read);
  if (!same.ok()) return fail_script("ERR " + same.error().message());
  return *same ? Next::end : run_script_again();
}

Connection::Next Connection::judge_script() {
  GroupScript& script = *group_->script;
  const auto answer = std::exchange(script.answer, nullptr);
  if (answer->error != ErrorCode::ok) return fail_script(*answer);
  if (answer->replies == "*-1\r\n") return run_script_again();
  // None of these commands answers with bytes of a client, so that this is an error of one.
  const std::size_t error = answer->replies.find("\r\n-");
  if (error == std::string::npos) return Next::end;
  const std::size_t begin = error + 3;
  return fail_script(answer->replies.substr(begin, answer->replies.find('\r', begin) - begin));
}

Connection::Next Connection::run_script_again() {
  GroupScript& script = *group_->script;
  if (script.runs == GroupScript::runs_max) {
    return fail_script("TRYAGAIN others have changed this script's keys each time that it ran, " +
                       std::to_string(GroupScript::runs_max) +
                       " times; nothing of it was carried out");
  }
  script.step = GroupScript::Step::run;
  // The leader has what it was refused for. So has who has just read.
  if (script.has_read || node_.services().group->leads()) {
    script.has_read = true;
    return Next::go_on;
  }
  script.has_read = true;
  read_for_script();
  return Next::wait;
}

}  // namespace semel::net
