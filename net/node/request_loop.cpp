#include "net/node/request_loop.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "net/commands/transaction.hpp"
#include "net/node/request_writes.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

/// Requests that only an HTTP client begins with.
bool is_of_http(std::string_view word) noexcept {
  constexpr std::string_view header = "host:";
  return is_word(word, "post") || is_word(word.substr(0, header.size()), header);
}

/// As if the command had been refused: EXEC takes its transaction with it, another command fails
/// the one that it would have been a part of.
void fail_by_fault(Call& call, std::string_view text) {
  call.row = find_row(call.args);
  if (call.row != nullptr && call.row->has(fact_executes)) {
    end_transaction(call.services, call.client);
  } else if (call.client.transaction != nullptr) {
    call.client.transaction->failed = true;
  }
  const std::size_t before = call.reply.size();
  call.fail(text);
  const std::size_t command = call.row == nullptr ? StatsLane::no_command : index_of(*call.row);
  call.client.lane->rejected(command, call.reply.since(before));
}

}  // namespace

RequestLoop::RequestLoop(Node& node, Batch& batch, ClientState& client, LargeReplies& large)
    : node_(node), batch_(batch), client_(client), large_(large) {
  if (node.services().group != nullptr) {
    group_ = std::make_unique<GroupSession>(node, client_, large_);
  }
}

void RequestLoop::end() noexcept {
  if (group_ != nullptr) group_->end();
}

// --- reading --------------------------------------------------------------------------------

/// Limits of a request: of an argument the longest value, of the request the memory of clients.
void RequestLoop::set_limits() {
  const auto bytes = [&](Setting setting) {
    return static_cast<std::size_t>(node_.settings.integer(setting));
  };
  limits_.bulk_bytes_max = bytes(Setting::proto_max_bulk_len);
  limits_.kept_bytes_max = limits::value_bytes_max;
  limits_.request_bytes_max =
      std::min(bytes(Setting::client_query_buffer_limit), node_.client_memory->limit());
}

std::size_t RequestLoop::run(std::string_view input, std::string& out) {
  SEMEL_ASSERT(batch_.is_empty());
  RespWriter unwritten{out, client_.dialect};
  Call planned{node_.services(), node_.engine(), client_, {}, unwritten};
  Round round{.input = input, .out = out, .planned = planned};
  wanted_ = 0;
  has_more_ = false;
  batches_.reset();
  set_limits();
  static_cast<void>(client_.lane->lap(node_.ticks()));
  const std::size_t begin = out.size();
  client_.begin_round(out);
  while (!client_.closes && !client_.waits && !client_.held_back) {
    if (out.size() - begin + large_.unsent() > replies_bytes_max) {
      has_more_ = true;
      break;
    }
    const RespParser::Step step =
        parser_.parse(input, client_.user.needs_auth() ? limits_before_auth : limits_);
    if (step == RespParser::Step::command) [[likely]] {
      if (!parser_.arguments().empty()) {
        if (!accept(input.data(), round)) break;
        ++count_;
        if (round.left != nullptr) break;
      }
    } else if (!pass(step, input.data(), round)) {
      break;
    }
    input.remove_prefix(parser_.consumed());
  }
  if (round.left == nullptr) flush(round);
  if (group_ != nullptr) [[unlikely]] {
    group_->submit();
    group_->forget_input(round.input.size() - input.size());
  }
  if (round.left != nullptr) {  // they are read again, when the replies before them are sent
    input = round.input.substr(static_cast<std::size_t>(round.left - round.input.data()));
    parser_.reset();
    wanted_ = 0;
    has_more_ = true;
  }
  node_.events.drain();
  node_.tracking.send(true);
  client_.end_round();
  parser_.rest();
  large_.begin();  // the sender of the replies holds the large values of this round
  return round.input.size() - input.size();
}

bool RequestLoop::pass(RespParser::Step step, const char* start, Round& round) {
  using Step = RespParser::Step;
  switch (step) {
    case Step::command:
      break;
    case Step::incomplete: {
      const auto at = static_cast<std::size_t>(start - round.input.data());
      wanted_ = parser_.wanted() - std::min(parser_.wanted(), round.input.size() - at);
      return false;
    }
    case Step::passing:
      return true;
    case Step::too_long:
      if (!flush(round)) return false;
      refuse_too_long(round.out);
      ++count_;
      return true;
    case Step::bad:
      if (!flush(round)) return false;
      // With CLIENT REPLY OFF and SKIP it is not told, as in Redis.
      if (client_.replies == Replies::on) {
        RespWriter{round.out, client_.dialect}.error("ERR " + parser_.error());
      }
      client_.closes = true;
      return false;
  }
  return false;
}

bool RequestLoop::accept(const char* start, Round& round) {
  const CommandRow* const row = find_command(parser_.arguments()[0]);
  if (row == nullptr && is_of_http(parser_.arguments()[0])) [[unlikely]] {
    if (!flush(round)) return false;
    refuse_http();
    return true;
  }
  if (node_.clients.pausing() && is_held_back(row)) [[unlikely]]
    return false;
  if (group_ != nullptr) [[unlikely]]
    return accept_in_group(row, start, round);
  if (node_.test_clock != nullptr && node_.test_clock->faults.any()) [[unlikely]]
    return accept_with_faults(row, round);
  if (row != nullptr && Batch::takes(*row) && may_wait(*row) && is_allowed_in_batch(*row)) {
    round.planned.args = parser_.arguments();
    round.planned.row = row;
    if (batch_.add(round.planned, start)) {
      if (batch_.is_full()) flush(round);
      return true;
    }
  }
  if (!flush(round)) return false;
  dispatch_now(row, round.out);
  return true;
}

bool RequestLoop::accept_in_group(const CommandRow* row, const char* start, Round& round) {
  const auto words = parser_.arguments();
  if (row != nullptr && is_container(*row)) row = find_row(words);
  batches_.reset();
  const bool may_join = group_->is_empty() || (row != nullptr && may_wait(*row));
  const auto at = static_cast<std::size_t>(start - round.input.data());
  const Taken taken = group_->take({.row = row,
                                    .words = words,
                                    .in_place = parser_.in_place(),
                                    .end = at + parser_.consumed(),
                                    .input_end = round.input.size()},
                                   may_join, round.out);
  if (taken == Taken::here) dispatch_now(row, round.out);
  if (taken == Taken::done && client_.tracker != nullptr) forget_caching(row);
  return taken != Taken::again;
}

/// The fault that acts on the request; it is asked for once for each.
std::optional<FaultTerms> RequestLoop::next_fault() {
  const auto words = parser_.arguments();
  const CommandRow* const row = find_row(words);
  if (row == nullptr || delayed_ == count_ + 1) return std::nullopt;
  // Tests remove their faults with these commands.
  if (row->name.starts_with("semel.fault") || row->name.starts_with("semel.clock")) {
    return std::nullopt;
  }
  static const std::uint32_t of_connection = 1U << acl_category_of("connection").value();
  const UsedKeys used = used_keys(row->keys, words);
  std::vector<std::string_view> keys;
  for (const UsedKey& key : used.keys) keys.push_back(key.name);
  return node_.test_clock->faults.next(
      {.command = row->name, .needs_name = (row->categories & of_connection) != 0, .keys = keys});
}

/// Each request is run by itself, so that a fault sees them in their order.
bool RequestLoop::accept_with_faults(const CommandRow* row, Round& round) {
  if (!flush(round)) return false;
  const std::optional<FaultTerms> fault = next_fault();
  if (!fault) {
    dispatch_now(row, round.out);
    return true;
  }
  switch (fault->action) {
    case FaultAction::delay:
      delay(fault->delay);
      return false;
    case FaultAction::error:
      dispatch_now(row, round.out, fault->error);
      return true;
    case FaultAction::drop:
      break;
    case FaultAction::drop_reply: {
      std::string nowhere;
      client_.replies = Replies::off;  // nor by reference
      dispatch_now(row, nowhere);
      break;
    }
  }
  client_.closes = true;
  return true;
}

/// The request is read again when the time has come.
void RequestLoop::delay(Millis time) {
  delayed_ = count_ + 1;
  client_.held_back = true;
  client_.deadline = node_.deadlines.add(deadline_after(node_.engine().clock().now(), time),
                                         [weak = std::weak_ptr<ClientHandle>{client_.handle}] {
                                           if (const auto handle = weak.lock()) handle->resume();
                                         });
}

/// By CLIENT PAUSE.
bool RequestLoop::is_held_back(const CommandRow* row) {
  const auto words = parser_.arguments();
  if (row != nullptr && is_container(*row) && words.size() > 1) {
    row = find_subcommand(*row, words[1]);
  }
  // What will be refused is refused now.
  if (row == nullptr || !row->takes(words.size()) || client_.user.needs_auth()) return false;
  client_.held_back = node_.clients.wait_for_end(
      client_.handle, may_write(node_, client_, *row, words), node_.engine().clock().now());
  return client_.held_back;
}

// --- running --------------------------------------------------------------------------------

/// Whether requests may wait for the rest of their batch: as far as it depends on the client and on
/// the node.
bool RequestLoop::may_batch() {
  if (client_.transaction != nullptr || client_.replies != Replies::on || client_.subscribes() ||
      node_.tracking.any() || node_.monitors.any() || node_.busy_scripts.any() ||
      node_.slow_log.takes(0) || node_.role.follows() ||
      (client_.no_touch && node_.memory.guard.has_caches())) {
    return false;
  }
  // A user with rights to some things only is asked about in its turn.
  return node_.acl.refresh(client_.user) == AclChange::none && !client_.user.needs_auth() &&
         client_.user.user().is_unlimited();
}

bool RequestLoop::flush(Round& round) {
  if (batch_.is_empty()) return round.left == nullptr;
  batches_.reset();
  const Batch::Rest rest = batch_.apply(node_, client_, round.out, replies_bytes_max);
  count_ -= rest.count;
  round.left = rest.start;
  return rest.start == nullptr;
}

/// As if the command had been called and refused: a transaction fails with it.
void RequestLoop::refuse_too_long(std::string& out) {
  RespWriter reply{out, client_.dialect};
  const std::size_t before = out.size();
  if (client_.transaction != nullptr) client_.transaction->failed = true;
  reply.error("ERR " + parser_.error());
  client_.lane->rejected(StatsLane::no_command, reply.since(before));
  // CLIENT REPLY SKIP and OFF hold for it as well.
  if (client_.replies != Replies::on) out.resize(before);
  if (client_.replies == Replies::skip) client_.replies = Replies::on;
}

/// A page in a browser can send a request to any port, and each line of its body would run as a
/// command. So nothing after the first line runs, and there is no reply that the page could use.
void RequestLoop::refuse_http() {
  client_.closes = true;
  node_.stats.http_refused();
  node_.hooks.report({.level = LogLevel::warning,
                      .name = "http_refused",
                      .address = client_.handle->origin.address,
                      .user = client_.user.user().name(),
                      .text =
                          "POST or Host: came instead of a command: a possible attack by way of "
                          "another program; the connection is closed"});
}

/// CLIENT CACHING is about the next command, or the whole transaction.
void RequestLoop::forget_caching(const CommandRow* row) {
  const bool is_of_client = row != nullptr && row->name.starts_with("client");
  if (client_.transaction == nullptr && !client_.has_yielded && !is_of_client)
    client_.tracker->caching = false;
}

void RequestLoop::dispatch_now(const CommandRow* row, std::string& out, std::string_view fault) {
  SEMEL_ASSERT(batch_.is_empty());  // earlier requests have replies
  // With CLIENT REPLY OFF, drop only the reply: messages pushed during the command go to `out`.
  const bool is_reply_on = client_.replies == Replies::on;
  std::string discarded;
  std::string& answer = is_reply_on ? out : discarded;
  const std::size_t before = answer.size();
  RespWriter reply{answer, client_.dialect};
  large_.begin();
  if (is_reply_on && large_.is_enabled()) reply.set_large(&large_);
  reply.set_bound(before + node_.client_memory->reply_bytes_max());
  Call call{node_.services(), node_.engine(), client_, parser_.arguments(), reply, row};
  batches_.reset();
  fault.empty() ? dispatch(call) : fail_by_fault(call, fault);
  if (client_.waits) client_.discards_wait_reply = !is_reply_on;
  if (client_.replies != Replies::on) {
    reply.take_back(before);
    if (client_.replies == Replies::skip) {
      client_.replies = Replies::on;
    } else if (client_.replies == Replies::skip_next) {
      client_.replies = Replies::skip;
    }
  } else if (!is_reply_on) {
    out += discarded;
  }
  if (client_.held != nullptr && !client_.has_yielded) [[unlikely]]
    node_.pubsub.release(client_);
  node_.tracking.send(false);
  if (client_.tracker != nullptr) [[unlikely]]
    forget_caching(call.row);
  // A command may have added output to many other connections.
  if (node_.client_memory->is_over()) [[unlikely]]
    node_.clients.evict(*node_.client_memory);
}

}  // namespace semel::net
