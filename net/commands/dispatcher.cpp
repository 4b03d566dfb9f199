// From the words of a request to the handler of its row, or to a refusal.
#include <algorithm>
#include <optional>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "engine/object_api/object_waits.hpp"
#include "net/commands/access.hpp"
#include "net/commands/audit.hpp"
#include "net/commands/key_events.hpp"
#include "net/commands/measure.hpp"
#include "net/commands/monitored.hpp"
#include "net/commands/single_key_command.hpp"
#include "net/commands/tracked_command.hpp"
#include "net/commands/transaction.hpp"
#include "net/events/keyspace_events.hpp"
#include "net/events/monitor.hpp"
#include "net/resp/client_memory.hpp"
#include "net/resp/text.hpp"
#include "net/session/busy_scripts.hpp"
#include "net/session/group_level.hpp"
#include "net/session/memory_guard.hpp"
#include "net/session/node_role.hpp"
#include "net/session/tracking.hpp"
#include "net/session/watches.hpp"
#include "net/time/ticks.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {
namespace {

constexpr std::size_t shown_bytes_max = 128;  // of an unknown name and its arguments

std::string_view up_to_zero(std::string_view text) noexcept {
  return text.substr(0, text.find('\0'));
}

void fail_transaction(Call& call) {
  if (call.client.transaction != nullptr) call.client.transaction->failed = true;
}

/// Before the handler is called. An EXEC that is refused takes its transaction with it; another
/// command lets the transaction fail that it would have been a part of.
void write_refusal(Call& call, std::string_view text) {
  if (call.row != nullptr && call.row->has(fact_executes)) {
    end_transaction(call.services, call.client);
    if (text.starts_with("ERR ")) text.remove_prefix(4);
    return call.fail("EXECABORT Transaction discarded because of: " + std::string{text});
  }
  fail_transaction(call);
  call.fail(text);
}

void refuse(Call& call, std::string_view text) {
  const std::size_t before = call.reply.size();
  write_refusal(call, text);
  if (call.client.lane == nullptr) return;
  const std::size_t command = call.row == nullptr ? StatsLane::no_command : index_of(*call.row);
  call.client.lane->rejected(command, call.reply.since(before));
}

void refuse_unknown(Call& call) {
  std::string text = "ERR unknown command '";
  text += up_to_zero(call.args[0]).substr(0, shown_bytes_max);
  text += "', with args beginning with: ";
  std::string shown;
  for (std::size_t i = 1; i < call.args.size() && shown.size() < shown_bytes_max; ++i) {
    const std::size_t room = shown_bytes_max - shown.size();
    shown.append("'").append(up_to_zero(call.args[i]).substr(0, room)).append("' ");
  }
  refuse(call, text + shown);
}

void refuse_unknown_subcommand(Call& call) {
  const std::string parent = base::upper_of(call.args[0]);  // as the client calls it
  const std::string_view word = up_to_zero(call.args[1]).substr(0, shown_bytes_max);
  refuse(call, "ERR unknown subcommand '" + std::string{word} + "'. Try " + parent + " HELP.");
}

/// The row may be known already. False: an error has been written.
bool find_row(Call& call) {
  if (call.row == nullptr) call.row = find_command(call.args[0]);
  if (call.row == nullptr) {
    refuse_unknown(call);
    return false;
  }
  if (is_container(*call.row) && call.args.size() > 1) {
    const CommandRow* const sub = find_subcommand(*call.row, call.args[1]);
    if (sub != nullptr) {
      call.row = sub;
    } else {
      refuse_unknown_subcommand(call);
      return false;
    }
  }
  if (call.row->takes(call.args.size())) return true;
  refuse(call, call.arity_text());
  return false;
}

/// redis-server takes a monitor for a replica.
bool is_for_monitors(const CommandRow& row) noexcept {
  return !row.is(flag_write) && !row.is(flag_readonly) && !row.has(fact_publishes);
}

}  // namespace

namespace {

/// Sends the messages about evicted keys before the reply, as redis-server does. CLIENT REPLY,
/// which is about no records, may drop its reply with all behind it: such commands send them later.
void send_evictions(Call& call) {
  if (!call.row->is(flag_write) && !call.row->is(flag_readonly)) return;
  call.services.events.drain();
  call.services.tracking.send(true);
}

/// Whether the request is refused because there is no room. Evicts first, if it can.
bool is_out_of_room(Call& call) {
  call.client.out_of_memory = !call.services.memory.has_room();
  send_evictions(call);
  if (!call.client.out_of_memory) return false;
  if (call.row->is(flag_denyoom)) return true;
  if (call.client.transaction == nullptr) return false;
  if (call.row->has(fact_executes)) {
    const auto& commands = call.client.transaction->commands;
    return std::any_of(commands.begin(), commands.end(),
                       [](const QueuedCommand& each) { return each.row->is(flag_denyoom); });
  }
  return is_queued(*call.row);  // the queue takes memory as well
}

}  // namespace

bool may_be_logged(const Services& services, const CommandRow& row) {
  if (row.has(fact_of_log)) return false;
  const GroupLevel* const level = services.group_level;
  return level == nullptr || !needs_objects(row) || level->lacks_objects().empty();
}

std::string log_error(const Call& call) {
  const std::string name = "ERR '" + std::string{call.row->name} + "' ";
  if (call.row->has(fact_of_log)) return name + "is only for the log of a group";
  return name + call.services.group_level->lacks_objects();
}

namespace {

/// Whether a group's log may not have its words yet, though it may have the command: terms of a
/// namespace that came with the level of objects.
bool has_barred_words(const Call& call) {
  const GroupLevel* const level = call.services.group_level;
  if (level == nullptr || !call.row->has(fact_declares)) [[likely]]
    return false;
  const bool slides = std::any_of(call.args.begin(), call.args.end(), [](std::string_view word) {
    return is_word(word, "sliding-max");
  });
  return slides && !level->lacks_objects().empty();
}

}  // namespace

void Call::fail(ErrorCode code) {
  if (context().applies_log()) client.failures.push_back(code);
  // Nothing else in a node holds a section for long.
  if (code == ErrorCode::section_held) return fail(services.busy_scripts.text());
  std::string text{resp_prefix_of(code)};
  text.append(" ").append(sentence_of(code));
  fail(text);
}

std::string Call::arity_text() const {
  return "ERR wrong number of arguments for '" + std::string{row->name} + "' command";
}

void Call::fail(ArgumentError error) {
  switch (error) {
    case ArgumentError::none:
    case ArgumentError::special:
    case ArgumentError::syntax:
      return fail("ERR syntax error");
    case ArgumentError::integer:
      return fail("ERR value is not an integer or out of range");
    case ArgumentError::floating:
      return fail("ERR value is not a valid float");
    case ArgumentError::expire:
      return fail("ERR invalid expire time in '" + std::string{row->name} + "' command");
    case ArgumentError::arity:
      return fail(arity_text());
  }
}

const CommandRow* admit(Call& call) {
  if (!find_row(call)) return nullptr;
  if (const Status allowed = may_run(call); !allowed) [[unlikely]] {
    refuse(call, allowed.error().detail);
    return nullptr;
  }
  if (!may_be_logged(call.services, *call.row) || has_barred_words(call)) [[unlikely]] {
    refuse(call, log_error(call));
    return nullptr;
  }
  if (call.services.role.follows()) [[unlikely]] {
    if (const std::string_view reason = refusal_by_role(call); !reason.empty()) {
      refuse(call, reason);
      return nullptr;
    }
  }
  if (call.client.transaction != nullptr && call.row->is(flag_no_multi)) {
    refuse(call, "ERR Command not allowed inside a transaction");
    return nullptr;
  }
  if (call.client.only_listens() && !call.row->has(fact_listening)) {
    refuse(call, "ERR Can't execute '" + std::string{call.row->name} +
                     "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
                     "allowed in this context");
    return nullptr;
  }
  if (call.client.monitors && !is_for_monitors(*call.row)) {
    refuse(call, "ERR Replica can't interact with the keyspace");
    return nullptr;
  }
  if (call.services.busy_scripts.any() && !call.row->is(flag_allow_busy)) [[unlikely]] {
    refuse(call, call.services.busy_scripts.text());
    return nullptr;
  }
  const bool asks_for_room = call.services.memory.is_on() || call.client.out_of_memory;
  // What a node that follows another one has is the other's to evict.
  if (asks_for_room && !call.services.role.follows() && is_out_of_room(call)) [[unlikely]] {
    refuse(call, out_of_memory_text);
    return nullptr;
  }
  return call.row;
}

void dispatch(Call& call) {
  if (admit(call) == nullptr) return;
  if (call.client.transaction != nullptr && is_queued(*call.row)) return enqueue(call);
  execute(call);
}

namespace {

/// The command has run; only its reply is dropped. For a script's call its host writes the error.
void refuse_too_large(Call& call, std::size_t before) {
  if (call.context().is_script()) return;
  call.reply.take_back(before);
  std::string text = "ERR the reply is larger than ";
  text += std::to_string(call.services.client_memory->reply_bytes_max());
  text += " bytes, half of maxmemory-clients";
  if (call.row->is(flag_write)) text += "; the command was carried out";
  call.fail(text);
}

/// WATCH and CLIENT TRACKING see what a command has changed. `tracked`: null if it began when no
/// connection tracked.
void changed_keys(Call& call, std::string_view reply, TrackedCommand* tracked) {
  if (tracked != nullptr) [[unlikely]]
    tracked->executed(reply);
  // Tracking counts among those that watch.
  if (!call.row->is(flag_write) || !call.services.watches.any() || call.context().is_trial())
      [[likely]]
    return;
  if (tracked == nullptr && call.services.tracking.any()) {
    TrackedCommand::executed_untracked(call, reply);
  }
  // Keys that have no place among the words, or are in another database.
  const UsedKeys used = used_keys(call.row->keys, call.args);
  const bool anywhere = call.row->keys.count == 0 || used.is_all || call.row->has(fact_elsewhere);
  if (anywhere) return call.services.watches.all_touched();
  for (const UsedKey& key : used.keys) call.services.watches.look(call.client.db, key.name);
}

/// Statistics, audit, monitors, watches and tracking of a command that has run.
void executed(Call& call, std::int64_t began, std::size_t before,
              TrackedCommand* tracked = nullptr) {
  StatsLane* const lane = call.client.lane;
  if (lane != nullptr) [[likely]] {
    static_cast<void>(lane->lap(call.services.ticks()));
    measured(call, lane->now() - began, call.reply.since(before));
  }
  if (is_audited(*call.row)) [[unlikely]]
    audit(call, call.reply.since(before));
  if (call.services.monitors.any() && !call.context().is_trial()) [[unlikely]]
    show_to_monitors(call, call.context().is_script() ? "lua" : "");
  changed_keys(call, call.reply.since(before), tracked);
}

}  // namespace

void execute(Call& call) {
  SEMEL_ASSERT(call.row != nullptr && call.row->takes(call.args.size()));
  const StatsLane* const lane = call.client.lane;
  // Commands executed inside the handler advance lane->now().
  const std::int64_t began = lane == nullptr ? 0 : lane->now();
  const std::size_t before = call.reply.size();
  // Its events, and what WATCH sees of it, come before those of the clients that it serves.
  const engine::HoldWaits until_it_is_finished{call.engine};
  call.client.last_command = &call.row->name;
  std::optional<TrackedCommand> tracked;
  if (call.services.tracking.any()) [[unlikely]]
    tracked.emplace(call);
  std::optional<engine::OnlyLooks> only_looks;
  if (call.services.memory.has_caches() && call.client.no_touch) [[unlikely]]
    only_looks.emplace(call.engine);
  call.row->handler(call);
  if (call.reply.is_cut()) [[unlikely]]
    refuse_too_large(call, before);
  if (call.client.has_yielded) [[unlikely]]
    return;  // measured when it ends
  executed(call, began, before, tracked ? &*tracked : nullptr);
}

bool repeat(Call& call, ClaimRepeats& repeats) {
  SEMEL_ASSERT(call.row != nullptr && call.row->has(fact_repeats));
  const StatsLane* const lane = call.client.lane;
  const std::int64_t began = lane == nullptr ? 0 : lane->now();
  const std::size_t before = call.reply.size();
  Repeat repeat{repeats};
  {
    const ExecutionScope scope{call.client.context, ExecutionMode::repeat, &repeat};
    call.row->handler(call);
  }
  // An error is written as the log says it.
  if (repeat.has_missed || call.reply.is_cut() || call.reply.since(before).starts_with('-')) {
    call.reply.take_back(before);
    return false;
  }
  call.client.last_command = &call.row->name;
  executed(call, began, before);
  return true;
}

bool draft_libraries(Call& call, GroupLibrary& draft) {
  SEMEL_ASSERT(call.row != nullptr && call.row->has(fact_libraries) && !draft.is_decided);
  const StatsLane* const lane = call.client.lane;
  const std::int64_t began = lane == nullptr ? 0 : lane->now();
  const std::size_t before = call.reply.size();
  {
    const ExecutionScope scope{call.client.context, ExecutionMode::draft, nullptr, &draft};
    call.row->handler(call);
  }
  if (call.reply.since(before).empty()) return true;
  call.client.last_command = &call.row->name;
  executed(call, began, before);
  return false;
}

void answer_libraries(Call& call, GroupLibrary& decided) {
  SEMEL_ASSERT(call.row != nullptr && call.row->has(fact_libraries) && decided.is_decided);
  const ExecutionScope scope{call.client.context, ExecutionMode::draft, nullptr, &decided};
  execute(call);
}

bool run_single(Call& call, const Single& single, ArgumentError& error) {
  SEMEL_ASSERT(call.args.size() >= 2);
  StoreOp op{.db = call.client.db, .key = call.key()};
  error = single.plan(call, op);
  if (error != ArgumentError::none) return false;
  StoreOutcome outcome;
  call.engine.host().apply(op, outcome);
  answer_single(call, single, op, outcome);
  return true;
}

namespace {

/// The size of the key or value that is too long, and the limit.
std::string sizes_of(ErrorCode code, const StoreOp& op, const StoreOutcome& outcome) {
  const bool is_key = code == ErrorCode::key_too_long;
  if (!is_key && code != ErrorCode::value_too_long) return {};
  const auto whole = static_cast<std::size_t>(std::max<std::int64_t>(outcome.number, 0));
  const std::size_t bytes = is_key ? op.key.size() : std::max(op.value.size(), whole);
  // For a value that grew, the outcome has its length and the engine's limit.
  const std::size_t of_values =
      outcome.second > 0 ? static_cast<std::size_t>(outcome.second) : limits::value_bytes_max;
  const std::size_t most = is_key ? limits::key_bytes_max : of_values;
  // An engine may be opened with less.
  if (bytes <= most) return {};
  return ": " + std::to_string(bytes) + " bytes, at most " + std::to_string(most);
}

/// Of the value that a read finds: a part of one has a name of its own.
std::string large_name(const StoreOp& op) {
  std::string name{static_cast<char>(op.verb == Verb::getrange), static_cast<char>(op.db)};
  name += op.key;
  if (op.verb == Verb::getrange) {
    name += '\0';
    name += std::to_string(op.amount) + ":" + std::to_string(op.end);
  }
  return name;
}

/// The sentence of the error; Redis has its own for a value that would grow too long.
std::string_view sentence_about(ErrorCode code, const StoreOp& op) {
  const bool grows = op.verb == Verb::setrange || op.verb == Verb::append;
  if (code == ErrorCode::value_too_long && grows) {
    return "string exceeds maximum allowed size (proto-max-bulk-len)";
  }
  return sentence_of(code);
}

void fail_about(Call& call, ErrorCode code, const StoreOp& op, const StoreOutcome& outcome) {
  if (call.context().applies_log()) call.client.failures.push_back(code);
  std::string text{resp_prefix_of(code)};
  text.append(" ").append(sentence_about(code, op)).append(sizes_of(code, op, outcome));
  call.fail(text);
}

}  // namespace

namespace {

void answer_in_order(Call& call, const Single& single, const StoreOp& op,
                     const StoreOutcome& outcome) {
  if (!call.services.events.any()) [[likely]]
    return single.answer(call, op, outcome);
  const bool is_behind = is_notified_after_reply(call, op);
  notify_miss(call, op, outcome);
  if (!is_behind) notify_change(call, op, outcome);
  single.answer(call, op, outcome);
  if (is_behind) notify_change(call, op, outcome);
}

/// With a value that the reply may hold by reference.
[[gnu::noinline]] void answer_large(Call& call, const Single& single, const StoreOp& op,
                                    StoreOutcome& outcome) {
  // A later reply may refer to an unchanged value. The old value of a changed key has no version.
  const std::string name = outcome.applied ? std::string{} : large_name(op);
  call.reply.offer(&outcome.value, name, outcome.version);
  answer_in_order(call, single, op, outcome);
}

}  // namespace

void answer_single(Call& call, const Single& single, const StoreOp& op, StoreOutcome& outcome) {
  if (outcome.error != ErrorCode::ok) [[unlikely]]
    return fail_about(call, outcome.error, op, outcome);
  if (outcome.value.size() >= LargeReplies::bytes_min && call.reply.large() != nullptr) [[unlikely]]
    return answer_large(call, single, op, outcome);
  answer_in_order(call, single, op, outcome);
}

}  // namespace semel::net
