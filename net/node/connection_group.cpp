// A connection of a node that belongs to a group: requests that change anything are gathered,
// handed to the group together, and answered when they are applied. Reads wait until this node is
// known to lead. Everything else is as in a node by itself.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "net/cluster/group_wait.hpp"
#include "net/cluster/key_slot.hpp"
#include "net/commands/access.hpp"
#include "net/commands/claim_words.hpp"
#include "net/commands/transaction.hpp"
#include "net/node/connection.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/script_host.hpp"
#include "net/scripts/scripts.hpp"

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

/// Whether a request, or one of its transaction, may bind a claim to its connection. A word that
/// only looks like it costs a session that nothing is bound to.
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

/// Of a transaction, whether any of its commands does.
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

/// A transaction that changes something is carried out by every node, so that all of it must be
/// about keys: a SUBSCRIBE would be the node's own, and a SHUTDOWN that of all nodes.
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
  // A script's effect, and a change of libraries, is a step of its own.
  if (most == GroupKind::script || most == GroupKind::library) return GroupKind::not_here;
  // Also one that only reads would be run by every node, on the thread that applies entries.
  return most == GroupKind::write && (has_here || runs_code) ? GroupKind::not_here : most;
}

}  // namespace

bool Connection::accept_in_group(const CommandRow* row, const char* start, std::string& out) {
  const auto words = parser_.arguments();
  GroupRound& round = *group_;
  if (row != nullptr && is_container(*row)) row = find_row(words);
  if (round.script != nullptr) return script_in_group(*row, out);    // it goes on
  if (round.library != nullptr) return library_in_group(*row, out);  // the same
  GroupKind kind = GroupKind::here;
  const bool is_transaction = row != nullptr && row->has(fact_executes) &&
                              client_.transaction != nullptr && !client_.transaction->failed;
  const bool is_queued_now = client_.transaction != nullptr && row != nullptr && is_queued(*row);
  if (is_transaction) {
    kind = kind_of_transaction(node_.services(), client_);
  } else if (row != nullptr && row->takes(words.size()) && !is_queued_now) {
    kind = group_kind(node_.services(), client_, *row, words);
  }
  // Replies come in the order of requests: whatever is not gathered comes after what is.
  if (!round.is_empty() && (kind != GroupKind::write || is_transaction)) {
    submit_round();
    return false;
  }
  switch (kind) {
    case GroupKind::here:
      dispatch_now(out);
      return true;
    case GroupKind::read:
      return read_in_group(*row, start, out);
    case GroupKind::not_here:
      return refuse_in_group(
          "ERR in a group a transaction that changes something has only commands about keys, and "
          "no scripts but known ones",
          out);
    case GroupKind::library:
      return library_in_group(*row, out);
    case GroupKind::script:
      return script_in_group(*row, out);
    case GroupKind::write:
      break;
  }
  return write_in_group(*row, out);
}

/// As the command would have been refused: a transaction goes with it.
bool Connection::refuse_in_group(std::string_view text, std::string& out) {
  if (client_.transaction != nullptr) end_transaction(node_.services(), client_);
  RespWriter reply{out, client_.dialect};
  reply.error(text);
  return true;
}

bool Connection::write_in_group(const CommandRow& row, std::string& out) {
  const auto words = parser_.arguments();
  Group& group = *node_.services().group;
  GroupRound& round = *group_;
  const bool is_transaction = row.has(fact_executes) && client_.transaction != nullptr;
  const bool may_propose = group.leads() || group.forwards();
  // Kept: another thread may forget it meanwhile.
  const SharedScript script =
      row.has(fact_script_digest) ? client_.scripts->thread.find(words[1]) : nullptr;
  if (row.has(fact_script_digest) && script == nullptr && may_propose) {
    // It was there, or another node led, when this was to be proposed: the handler says NOSCRIPT.
    if (!round.is_empty()) {
      submit_round();
      return false;
    }
    dispatch_now(out);
    return true;
  }
  // Nothing waits for a reply that is not wanted.
  const bool waits = row.is(flag_blocking) && !is_transaction && client_.replies == Replies::on;
  const bool opens = client_.session == 0 && binds(row, words, client_);
  if (!round.is_empty() && (!may_wait(row) || waits || opens)) {
    submit_round();
    return false;
  }
  if (round.is_empty()) {
    RespWriter reply{out, client_.dialect};
    large_.begin();
    if (large_.is_enabled()) reply.set_large(&large_);
    reply.set_bound(out.size() + node_.client_memory->reply_bytes_max());
    Call call{node_.services(), node_.engine(), client_, words, reply};
    if (admit(call) == nullptr) return true;  // the error is written
    if (row.has(fact_repeats) && client_.replies == Replies::on && repeat(call, group)) return true;
    if (!may_propose) {
      return refuse_in_group(group_error(group, ErrorCode::not_leader, first_slot(row, words)),
                             out);
    }
  }
  if (opens && !take_session(row, out)) return !client_.waits;
  if (is_transaction) {
    gather_transaction();
    submit_round();
    return true;
  }
  round.gathered.grows = round.gathered.grows || !row.has(fact_frees);
  std::vector<std::string_view>& kept =
      round.gathered.requests.emplace_back(words.begin(), words.end());
  for (const std::string_view word : words) round.bytes += word.size();
  if (row.has(fact_script_digest)) {  // the others need not know the text by its digest
    SEMEL_ASSERT(script != nullptr);
    kept[0] = row.is(flag_readonly) ? "EVAL_RO" : "EVAL";
    kept[1] = script->text;
    round.bytes += script->text.size();
  }
  if (waits && submit_wait(row)) return true;
  // The words of an inline command are gone when the next is read.
  if (!parser_.in_place() || round.gathered.requests.size() == GroupRound::requests_max ||
      round.bytes >= GroupRound::bytes_max) {
    submit_round();
  }
  return true;
}

/// The session that a claim is bound to is an entry of the log: it is opened, and the request comes
/// again. False: it waits for that, or an error has been written.
bool Connection::take_session(const CommandRow& row, std::string& out) {
  Group& group = *node_.services().group;
  GroupRound& round = *group_;
  if (const auto outcome = std::exchange(round.outcome, nullptr)) {
    client_.session = outcome->session;
    if (client_.session != 0) return true;
    const ErrorCode why = outcome->read == ErrorCode::ok ? ErrorCode::log_busy : outcome->read;
    static_cast<void>(
        refuse_in_group(group_error(group, why, first_slot(row, parser_.arguments())), out));
    return false;
  }
  round.outcome = std::make_shared<GroupRound::Outcome>();
  const std::uint64_t wait = client_.handle->begin_work();
  client_.waits = true;
  client_.discards_wait_reply = false;
  group.open_session([&group, handle = client_.handle, outcome = round.outcome, wait](
                         ErrorCode error, SessionId session) {
    outcome->read = error;
    outcome->session = session;
    handle->reply(wait, {}, [&group, session] {
      if (session != 0) group.close_session(session);
    });
  });
  return false;
}

/// False: what it says is wrong, as the log will answer.
bool Connection::submit_wait(const CommandRow& row) {
  GroupRound& round = *group_;
  Group& group = *node_.services().group;
  const auto words = parser_.arguments();
  Millis timeout{0};
  ClaimWords claim;
  WordSpan rest = words.subspan(std::min<std::size_t>(words.size(), 4));
  if (!read_ms("timeout-ms", words[1], 0, timeout) || !read_claim_words(rest, false, claim)) {
    return false;
  }
  round.gathered.db = client_.db;
  round.gathered.dialect = client_.dialect == Resp::three ? 3 : 2;
  round.gathered.session = client_.session;
  const std::uint64_t wait = client_.handle->begin_wait();
  client_.waits = true;
  client_.discards_wait_reply = false;
  // The answer may be a result: it is for those who may still read it then.
  client_.waits_for =
      std::make_unique<QueuedCommand>(QueuedCommand{&row, {words.begin(), words.end()}});
  client_.waits_since = 0;
  GroupWait::begin(
      {.group = group,
       .handle = client_.handle,
       .wait = wait,
       .request = round.gathered,
       .slot = first_slot(row, words),
       .deadline = timeout == Millis{0} ? no_end : deadline_after(group.now(), timeout),
       .is_named = claim.request.claim_id.has_value()});
  round.gathered = {};
  round.bytes = 0;
  return true;
}

void Connection::gather_transaction() {
  GroupRound& round = *group_;
  round.gathered.is_transaction = true;
  for (const QueuedCommand& queued : client_.transaction->commands) {
    round.gathered.requests.emplace_back(queued.words.begin(), queued.words.end());
    round.gathered.grows =
        round.gathered.grows || (queued.row->is(flag_write) && !queued.row->has(fact_frees));
  }
  if (client_.watcher == nullptr) return;
  for (const Watcher::Key& each : client_.watcher->keys) {
    // A key that was touched is never as it was: no record has this version.
    // mo: relaxed: set by commands that ended before
    const bool touched = client_.watcher->touched.load(std::memory_order_relaxed);
    round.gathered.watched.push_back(
        {each.db, each.key, touched ? limits::version_max : each.version});
  }
}

/// The connection waits for the replies of what was gathered.
void Connection::submit_round() {
  GroupRound& round = *group_;
  if (round.is_empty()) return;
  Group& group = *node_.services().group;
  round.gathered.db = client_.db;
  round.gathered.dialect = client_.dialect == Resp::three ? 3 : 2;
  round.gathered.session = client_.session;
  const bool is_transaction = round.gathered.is_transaction;
  const std::size_t replies = is_transaction ? 1 : round.gathered.requests.size();
  const std::vector<std::string_view>& first = round.gathered.requests.front();
  const CommandRow* const row = find_row(first);
  const std::uint16_t slot = row == nullptr ? std::uint16_t{0} : first_slot(*row, first);
  const std::uint64_t wait = client_.handle->begin_work();
  client_.waits = true;
  client_.discards_wait_reply = client_.replies != Replies::on;
  if (client_.replies == Replies::skip) client_.replies = Replies::on;
  group.submit(std::move(round.gathered),
               [&group, handle = client_.handle, wait, replies, slot](GroupReply reply) {
                 if (reply.error != ErrorCode::ok) {
                   reply.replies.clear();
                   std::string error = group_error(group, reply.error, slot);
                   if (!reply.detail.empty()) error.append(": ").append(reply.detail);
                   for (std::size_t i = 0; i < replies; ++i) {
                     RespWriter{reply.replies, Resp::two}.error(error);
                   }
                 }
                 handle->reply(wait, std::move(reply.replies));
               });
  round.gathered = {};
  round.bytes = 0;
  if (is_transaction) end_transaction(node_.services(), client_);
}

/// False: it waits, and comes again.
bool Connection::read_in_group(const CommandRow& row, const char* start, std::string& out) {
  Group& group = *node_.services().group;
  GroupRound& round = *group_;
  const auto words = parser_.arguments();
  if (client_.reads_here) {
    dispatch_now(out);
    return true;
  }
  if (!group.leads() && group.forwards()) {
    round.outcome = nullptr;  // of a round that this node did not lead to its end
    // It led when this was to be run here. It must not come to the log instead.
    if (runs_interpreter(node_.services(), client_, row, words)) {
      return refuse_in_group(group_error(group, ErrorCode::not_leader, first_slot(row, words)),
                             out);
    }
    return write_in_group(row, out);
  }
  if (round.outcome != nullptr) {
    const ErrorCode error = std::exchange(round.outcome, nullptr)->read;
    if (error != ErrorCode::ok) {
      round.fresh = 0;
      return refuse_in_group(group_error(group, error, first_slot(row, words)), out);
    }
  }
  const auto end = static_cast<std::size_t>(start - round_begin_) + parser_.consumed();
  if (end <= round.fresh) {
    dispatch_now(out);
    return true;
  }
  if (!group.leads()) {
    return refuse_in_group(group_error(group, ErrorCode::not_leader, first_slot(row, words)), out);
  }
  // All that has come so far was sent before the answer of this.
  round.fresh = static_cast<std::size_t>(round_end_ - round_begin_);
  round.outcome = std::make_shared<GroupRound::Outcome>();
  const std::uint64_t wait = client_.handle->begin_work();
  client_.waits = true;
  client_.discards_wait_reply = false;
  group.read([handle = client_.handle, outcome = round.outcome, wait](ErrorCode error) {
    outcome->read = error;
    handle->reply(wait, {});
  });
  return false;
}

}  // namespace semel::net
