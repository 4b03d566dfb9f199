#include "net/node/group_session.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "net/cluster/group_wait.hpp"
#include "net/cluster/key_slot.hpp"
#include "net/cluster/read_blocking.hpp"
#include "net/commands/access.hpp"
#include "net/commands/tracked_command.hpp"
#include "net/commands/transaction.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/script_host.hpp"
#include "net/scripts/scripts.hpp"
#include "net/session/blocking.hpp"

namespace semel::net {
namespace {

std::uint16_t first_slot(const CommandRow& row, std::span<const std::string_view> words) {
  const UsedKeys used = used_keys(row.keys, words);
  return used.keys.empty() ? std::uint16_t{0} : slot_of(used.keys.front().name);
}

bool has_bind(std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [](std::string_view word) { return is_word(word, "bind"); });
}

/// Whether a request, or a command of its transaction, may bind a claim to its connection. A word
/// that only looks like BIND costs an unused session.
bool binds(const CommandRow& row, std::span<const std::string_view> words,
           const ClientState& client) {
  if (row.has(fact_binds)) return has_bind(words);
  if (!row.has(fact_executes) || client.transaction == nullptr) return false;
  const auto& commands = client.transaction->commands;
  return std::any_of(commands.begin(), commands.end(), [](const QueuedCommand& queued) {
    const std::vector<std::string_view> views{queued.words.begin(), queued.words.end()};
    return queued.row->has(fact_binds) && has_bind(views);
  });
}

/// Whether the request needs the interpreter; for EXEC, whether any queued command does.
bool runs_interpreter(const Services& services, ClientState& client, const CommandRow& row,
                      std::span<const std::string_view> words) {
  if (!row.has(fact_executes) || client.transaction == nullptr) {
    return needs_interpreter(services, client, row, words);
  }
  const auto& commands = client.transaction->commands;
  return std::any_of(commands.begin(), commands.end(), [&](const QueuedCommand& queued) {
    const std::vector<std::string_view> views{queued.words.begin(), queued.words.end()};
    return needs_interpreter(services, client, *queued.row, views);
  });
}

/// Every node runs a transaction that writes, so all of its commands must concern keys: a SUBSCRIBE
/// belongs to one node, and a SHUTDOWN would stop all of them.
GroupKind kind_of_transaction(const Services& services, ClientState& client) {
  GroupKind most = GroupKind::here;
  bool has_here = false;
  bool runs_code = false;
  for (const QueuedCommand& queued : client.transaction->commands) {
    const std::vector<std::string_view> words{queued.words.begin(), queued.words.end()};
    const GroupKind kind = group_kind(services, client, *queued.row, words);
    most = std::max(most, kind);
    has_here = has_here || (kind == GroupKind::here && !queued.row->has(fact_stateless));
    runs_code = runs_code || needs_interpreter(services, client, *queued.row, words);
  }
  // The effects of a script and a change of libraries are log entries of their own.
  if (most == GroupKind::script || most == GroupKind::library) return GroupKind::not_here;
  // Every node would run even a read-only script, on the thread that applies entries.
  return most == GroupKind::write && (has_here || runs_code) ? GroupKind::not_here : most;
}

}  // namespace

Taken GroupSession::take(const PresentRequest& request, bool may_join, std::string& out) {
  if (script_.is_under_way()) return script_.take(request, out);
  if (library_.is_under_way()) return library_.take(request, out);
  const CommandRow* const row = request.row;
  GroupKind kind = GroupKind::here;
  const bool is_transaction = row != nullptr && row->has(fact_executes) &&
                              client_.transaction != nullptr && !client_.transaction->failed;
  const bool is_queued_now = client_.transaction != nullptr && row != nullptr && is_queued(*row);
  if (is_transaction) {
    kind = kind_of_transaction(node_.services(), client_);
  } else if (row != nullptr && row->takes(request.words.size()) && !is_queued_now) {
    kind = group_kind(node_.services(), client_, *row, request.words);
  }
  if (!is_empty() && (kind != GroupKind::write || is_transaction)) {
    submit();
    return Taken::again;
  }
  switch (kind) {
    case GroupKind::here:
      return Taken::here;
    case GroupKind::read:
      return read(request, may_join, out);
    case GroupKind::not_here:
      return refuse(
          "ERR in a group a transaction that changes something has only commands about keys, and "
          "no scripts but known ones",
          out);
    case GroupKind::library:
      return library_.take(request, out);
    case GroupKind::script:
      return script_.take(request, out);
    case GroupKind::write:
      break;
  }
  return write(request, may_join, out);
}

/// Refuses the request as its command would, and ends a transaction.
Taken GroupSession::refuse(std::string_view text, std::string& out) {
  if (client_.transaction != nullptr) end_transaction(node_.services(), client_);
  RespWriter{out, client_.dialect}.error(text);
  return Taken::done;
}

Taken GroupSession::refuse(const PresentRequest& request, ErrorCode why, std::string& out) {
  const std::uint16_t slot = first_slot(*request.row, request.words);
  return refuse(group_error(*node_.services().group, why, slot), out);
}

/// What a write needs before it can be proposed, and in which form it is.
struct GroupSession::Write {
  enum class Form : std::uint8_t { request, transaction, wait };
  Form form = Form::request;
  SharedScript script{};    ///< kept: another thread may forget it
  bool is_unknown = false;  ///< a digest without a script
  bool needs_session = false;
  bool joins = false;                          ///< it is proposed with the gathered writes
  std::unique_ptr<BlockingCommand> command{};  ///< of a wait
};

GroupSession::Write GroupSession::judge(const PresentRequest& request, bool may_join) const {
  const CommandRow& row = *request.row;
  Write write;
  if (row.has(fact_script_digest)) {
    write.script = client_.scripts->thread.find(request.words[1]);
    write.is_unknown = write.script == nullptr;
  }
  if (row.has(fact_executes) && client_.transaction != nullptr) {
    write.form = Write::Form::transaction;
  } else if (row.is(flag_blocking) && client_.replies == Replies::on) {
    // Nothing waits for a reply that is not wanted, nor by words without a wait, as SEMEL.PERMIT's.
    write.command = read_blocking(row, request.words);
    if (write.command != nullptr) write.form = Write::Form::wait;
  }
  write.needs_session = client_.session == 0 && binds(row, request.words, client_);
  write.joins = may_join && !write.is_unknown && !write.needs_session &&
                write.form == Write::Form::request && may_be_logged(node_.services(), row);
  return write;
}

/// Answers at once with a refusal, a repeat of finished work, or the place of the leader.
bool GroupSession::answers_now(const PresentRequest& request, std::string& out) {
  Group& group = *node_.services().group;
  RespWriter reply{out, client_.dialect};
  large_.begin();
  if (large_.is_enabled()) reply.set_large(&large_);
  reply.set_bound(out.size() + node_.client_memory->reply_bytes_max());
  Call call{node_.services(), node_.engine(), client_, request.words, reply};
  if (admit(call) == nullptr) return true;  // the error is written
  if (request.row->has(fact_repeats) && client_.replies == Replies::on && repeat(call, group)) {
    return true;
  }
  if (group.leads() || group.forwards()) return false;
  static_cast<void>(refuse(request, ErrorCode::not_leader, out));
  return true;
}

Taken GroupSession::write(const PresentRequest& request, bool may_join, std::string& out) {
  Write write = judge(request, may_join);
  if (!is_empty() && !write.joins) {
    submit();
    return Taken::again;
  }
  const Group& group = *node_.services().group;
  // The script is not known (any more): the handler replies NOSCRIPT.
  if (write.is_unknown && (group.leads() || group.forwards())) return Taken::here;
  if (is_empty() && answers_now(request, out)) return Taken::done;
  if (write.is_unknown) return refuse(request, ErrorCode::not_leader, out);
  if (write.needs_session) {
    const Opening opening = take_session(request, out);
    if (opening != Opening::open) return opening == Opening::asked ? Taken::again : Taken::done;
  }
  if (write.form == Write::Form::transaction) {
    gather_transaction();
    submit();
    return Taken::done;
  }
  gather(request, write.script);
  if (write.form == Write::Form::wait) {
    submit_wait(request, std::move(write.command));
    return Taken::done;
  }
  // The words of an inline command are gone when the next is read.
  if (!request.in_place || round_.gathered.requests.size() == GroupRound::requests_max ||
      round_.bytes >= GroupRound::bytes_max) {
    submit();
  }
  return Taken::done;
}

/// Collects the keys of reads through the log, which another node may answer without tracking them.
void GroupSession::gather_read_keys(const CommandRow& row,
                                    std::span<const std::string_view> words) {
  if (client_.tracker == nullptr || !client_.tracker->remembers()) return;
  for (const std::string_view key : keys_read(row, words)) round_.read_keys.emplace_back(key);
}

/// The message that makes the client drop the values of the reply.
Tracking::Message GroupSession::message_of_reads() const {
  if (round_.read_keys.empty() || client_.tracker == nullptr) return {};
  const std::vector<std::string_view> keys{round_.read_keys.begin(), round_.read_keys.end()};
  return node_.services().tracking.message_of(*client_.tracker, keys);
}

void GroupSession::gather(const PresentRequest& request, const SharedScript& script) {
  const CommandRow& row = *request.row;
  GroupRequest& gathered = round_.gathered;
  gather_read_keys(row, request.words);
  if (!row.has(fact_frees)) round_.use = MemoryUse::grows;
  std::vector<std::string_view>& kept =
      gathered.requests.emplace_back(request.words.begin(), request.words.end());
  for (const std::string_view word : request.words) round_.bytes += word.size();
  if (!row.has(fact_script_digest)) return;
  // Propose the text, as other nodes may not know the digest.
  SEMEL_ASSERT(script != nullptr);
  kept[0] = row.is(flag_readonly) ? "EVAL_RO" : "EVAL";
  kept[1] = script->text;
  round_.bytes += script->text.size();
}

/// The session that a claim is bound to is an entry of the log: opens it, and the request runs
/// again.
GroupSession::Opening GroupSession::take_session(const PresentRequest& request, std::string& out) {
  Group& group = *node_.services().group;
  if (const auto outcome = std::exchange(round_.outcome, nullptr)) {
    client_.session = outcome->session;
    if (client_.session != 0) return Opening::open;
    const ErrorCode why = outcome->read == ErrorCode::ok ? ErrorCode::log_busy : outcome->read;
    static_cast<void>(refuse(request, why, out));
    return Opening::refused;
  }
  round_.outcome = std::make_shared<GroupRound::Outcome>();
  group.open_session([&group, handle = client_.handle, outcome = round_.outcome,
                      wait = begin_work(client_)](ErrorCode error, SessionId session) {
    outcome->read = error;
    outcome->session = session;
    handle->reply(wait, {}, [&group, session] {
      if (session != 0) group.close_session(session);
    });
  });
  return Opening::asked;
}

void GroupSession::submit_wait(const PresentRequest& request,
                               std::unique_ptr<BlockingCommand> command) {
  command->set_db(client_.db);
  std::string nothing = command->timeout_reply(client_.dialect);
  if (nothing.empty()) nothing = "$-1\r\n";
  address_round();
  GroupWait::begin({.group = *node_.services().group,
                    .handle = client_.handle,
                    .wait = begin_blocking(client_, request.row, request.words, std::move(nothing)),
                    .request = round_.gathered,
                    .slot = first_slot(*request.row, request.words),
                    .command = std::move(command),
                    .use = request.row->has(fact_frees) ? MemoryUse::frees : MemoryUse::grows});
  round_.clear();
}

void GroupSession::gather_transaction() {
  GroupRound& round = round_;
  round.gathered.is_transaction = true;
  for (const QueuedCommand& queued : client_.transaction->commands) {
    round.gathered.requests.emplace_back(queued.words.begin(), queued.words.end());
    gather_read_keys(*queued.row, round.gathered.requests.back());
    if (queued.row->is(flag_write) && !queued.row->has(fact_frees)) round.use = MemoryUse::grows;
  }
  if (client_.watcher == nullptr) return;
  for (const Watcher::Key& each : client_.watcher->keys) {
    // A touched key must fail the check: no record has this version.
    // mo: relaxed: set by commands that ended before
    const bool touched = client_.watcher->touched.load(std::memory_order_relaxed) ||
                         each.next_end <= node_.services().group->now();
    round.gathered.watched.push_back(
        {each.db, each.key, touched ? limits::version_max : each.version});
  }
}

void GroupSession::address_round() {
  round_.gathered.db = client_.db;
  round_.gathered.dialect = client_.dialect == Resp::three ? 3 : 2;
  round_.gathered.session = client_.session;
}

void GroupSession::submit() {
  GroupRound& round = round_;
  if (is_empty()) return;
  Group& group = *node_.services().group;
  address_round();
  const bool is_transaction = round.gathered.is_transaction;
  const std::size_t replies = is_transaction ? 1 : round.gathered.requests.size();
  const std::vector<std::string_view>& first = round.gathered.requests.front();
  const CommandRow* const row = find_row(first);
  const std::uint16_t slot = row == nullptr ? std::uint16_t{0} : first_slot(*row, first);
  const std::uint64_t wait = client_.handle->begin_work();
  client_.waits = true;
  client_.discards_wait_reply = client_.replies != Replies::on;
  if (client_.replies == Replies::skip) client_.replies = Replies::on;
  group.submit(std::move(round.gathered), round.use,
               [&group, handle = client_.handle, wait, replies, slot,
                message = message_of_reads()](GroupReply reply) {
                 if (reply.error != ErrorCode::ok) {
                   reply.replies.clear();
                   std::string error = group_error(group, reply.error, slot);
                   if (!reply.detail.empty()) error.append(": ").append(reply.detail);
                   for (std::size_t i = 0; i < replies; ++i) {
                     RespWriter{reply.replies, Resp::two}.error(error);
                   }
                 }
                 handle->reply(wait, std::move(reply.replies));
                 if (!message.bytes.empty()) static_cast<void>(message.to->push(message.bytes));
               });
  round.clear();
  if (is_transaction) end_transaction(node_.services(), client_);
}

Taken GroupSession::read(const PresentRequest& request, bool may_join, std::string& out) {
  Group& group = *node_.services().group;
  if (client_.reads_here) return Taken::here;
  // The state of WATCH is on the client's node: WATCH must not run through the log.
  const CommandRow& row = *request.row;
  const bool stays_here = !row.is(flag_readonly) && !row.has(fact_executes);
  if (!group.leads() && group.forwards() && !stays_here) {
    round_.outcome = nullptr;  // of a round that this node did not lead to its end
    // This node led when it planned to run the code here; the code must not go to the log instead.
    if (runs_interpreter(node_.services(), client_, *request.row, request.words)) {
      return refuse(request, ErrorCode::not_leader, out);
    }
    return write(request, may_join, out);
  }
  if (const auto outcome = std::exchange(round_.outcome, nullptr);
      outcome != nullptr && outcome->read != ErrorCode::ok) {
    round_.fresh = 0;
    return refuse(request, outcome->read, out);
  }
  if (request.end <= round_.fresh) return Taken::here;
  if (!group.leads() && !group.forwards()) return refuse(request, ErrorCode::not_leader, out);
  // The read covers all requests that have arrived so far.
  round_.fresh = request.input_end;
  round_.outcome = std::make_shared<GroupRound::Outcome>();
  group.read([handle = client_.handle, outcome = round_.outcome,
              wait = begin_work(client_)](ErrorCode error) {
    outcome->read = error;
    handle->reply(wait, {});
  });
  return Taken::again;
}

void GroupSession::forget_input(std::size_t bytes) noexcept {
  round_.fresh -= std::min(round_.fresh, bytes);
}

}  // namespace semel::net
