#include "net/node/connection.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "net/cluster/end_session.hpp"
#include "net/commands/access.hpp"
#include "net/commands/transaction.hpp"
#include "net/resp/release_capacity.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/script_host.hpp"

namespace semel::net {

Batch::Batch()
    : ops_(count_max),
      outcomes_(count_max),
      rows_(count_max),
      natives_(count_max),
      starts_(count_max) {}
Batch::~Batch() = default;

Connection::Connection(Node& node, Batch& batch, ClientHost* host, ClientHandle::Origin origin)
    : node_(node), batch_(batch), large_(node.client_memory) {
  client_.handle = std::make_shared<ClientHandle>(std::move(origin), host, node.client_memory);
  client_.large = &large_;
  open_user();
  if (node.services().group != nullptr) {
    group_ = std::make_unique<GroupSession>(node, client_, large_);
  }
  client_.lane = &node.stats.lane(batch.lane_.lane);
  client_.lane->connected();
  if (batch.scripts_ == nullptr || &batch.scripts_->thread.scripts() != &node.scripts) {
    batch.scripts_ = std::make_shared<ScriptHost>(node.scripts);
  }
  client_.scripts = batch.scripts_;
  client_.may_yield = host != nullptr && host->serves_others();
  // A wait for a long script, instead of BUSY, would stop all connections of this thread.
  if (client_.may_yield) static_cast<void>(node.engine().set_no_wait(true));
  node.clients.add(client_.handle);
}

/// The user of a client that has not logged in.
void Connection::open_user() {
  const ClientHandle::Origin& origin = client_.handle->origin;
  client_.user = node_.acl.open_session();
  if (origin.is_remote && node_.settings.boolean(Setting::protected_mode)) client_.user.guard();
  if (origin.certificate_user.empty()) return;
  if (node_.acl.log_in_by_certificate(client_.user, origin.certificate_user)) {
    note_user(client_);
  } else {
    node_.hooks.report({.level = LogLevel::notice,
                        .name = "certificate_unknown",
                        .address = origin.address,
                        .user = origin.certificate_user,
                        .text = "no such user that is on: the client begins as default"});
  }
}

namespace {

/// Requests that only an HTTP client begins with.
bool is_of_http(std::string_view word) noexcept {
  constexpr std::string_view header = "host:";
  return is_word(word, "post") || is_word(word.substr(0, header.size()), header);
}

/// Whether a script or function declares that it does not write. That is enforced when it runs.
bool declares_no_writes(Node& node, ClientState& client, const CommandRow& row,
                        std::span<const std::string_view> words) {
  if (row.has(fact_function)) {
    const FunctionStore::Found found = node.scripts.functions.find(words[1]);
    return found.library != nullptr && (found.function->flags & script_no_writes) != 0;
  }
  const bool is_text = row.has(fact_script_text);
  const std::string sha = is_text ? sha1_hex(words[1]) : std::string{words[1]};
  if (const SharedScript& known = client.scripts->thread.find(sha); known != nullptr) {
    return known->has_shebang && (known->flags & script_no_writes) != 0;
  }
  if (!is_text || !words[1].starts_with("#!")) return false;
  Script script;
  script.text = words[1].substr(0, words[1].find('\n') + 1);
  return read_shebang(script).ok() && (script.flags & script_no_writes) != 0;
}

bool may_write(Node& node, ClientState& client, const CommandRow& row,
               std::span<const std::string_view> words) {
  constexpr std::uint16_t runs_code = fact_script_text | fact_script_digest | fact_function;
  if ((row.facts.bits & runs_code) != 0 && !row.is(flag_readonly)) {
    return !declares_no_writes(node, client, row, words);
  }
  return row.is(flag_write) || row.is(flag_may_replicate) || row.has(fact_publishes);
}

}  // namespace

Connection::~Connection() {
  end();
}

void Connection::end() {
  if (client_.has_yielded) client_.scripts->run.abandon();
  if (group_ != nullptr) group_->end();
  node_.clients.remove(client_.handle);
  client_.handle->end();
  node_.client_memory->remove(std::exchange(charged_, 0));
  static_cast<void>(large_.take());
  large_.begin();
  node_.pubsub.forget(client_);
  node_.monitors.remove(client_);
  node_.deadlines.cancel(client_.deadline);
  end_transaction(node_.services(), client_);
  end_session(node_.services(), client_);
}

void Connection::receive(std::string_view bytes, std::string& out) {
  const std::size_t before = out.size();
  // Most often nothing is left of the last time, and the requests are read where they are.
  if (input_.empty()) {
    keep(bytes.substr(run(bytes, out)));
  } else {
    keep(bytes);
    input_.erase(0, run(input_, out));
    give_back_room();
  }
  note(bytes.size(), out.size() - before);
}

/// Behind what is kept already. The room grows to what the request has said that it needs,
/// in steps, so that what was only announced costs little.
void Connection::keep(std::string_view bytes) {
  const std::size_t size = input_.size() + bytes.size();
  if (size > input_.capacity()) {
    constexpr std::size_t step = 4096;
    std::string larger;
    larger.reserve(std::max(size, std::min(size + wanted_, 2 * input_.size() + step)));
    larger.append(input_);
    input_.swap(larger);
  }
  input_.append(bytes);
}

void Connection::note(std::size_t received, std::size_t sent) {
  client_.lane->moved(received, sent);
  account();
  show_client(client_, node_.engine().clock().now());
}

namespace {

/// Up to where the system gives pages as they are written to, the whole room counts.
std::size_t held_of(const std::string& input) noexcept {
  constexpr std::size_t in_pages = std::size_t{128} << 10;
  if (input.empty()) return 0;
  return std::max(input.size(), std::min(input.capacity(), in_pages));
}

}  // namespace

void Connection::account() {
  ClientHandle::Shown& shown = client_.handle->shown;
  const std::size_t arguments = parser_.held_bytes();
  const std::size_t transaction = client_.transaction == nullptr ? 0 : client_.transaction->bytes;
  const std::size_t kept = client_.kept_bytes();
  const std::size_t held = held_of(input_) + arguments + transaction + kept + output_;
  if (held != charged_ || held != 0) {
    // mo: relaxed: for people and eviction
    shown.input.store(input_.size(), std::memory_order_relaxed);
    shown.input_spare.store(input_.capacity() - input_.size(), std::memory_order_relaxed);
    // mo: relaxed: as the two above
    shown.arguments.store(arguments, std::memory_order_relaxed);
    shown.transaction.store(transaction, std::memory_order_relaxed);
    shown.kept.store(kept, std::memory_order_relaxed);
  }
  if (held > charged_) node_.client_memory->add(held - charged_);
  if (held < charged_) node_.client_memory->remove(charged_ - held);
  charged_ = held;
  if (node_.client_memory->is_over()) [[unlikely]]
    node_.clients.evict(*node_.client_memory);
}

void Connection::hold_output(std::size_t own, std::size_t large, std::size_t parts) {
  ClientHandle::Shown& shown = client_.handle->shown;
  // mo: relaxed: for people and eviction
  shown.output.store(own, std::memory_order_relaxed);
  shown.large.store(large, std::memory_order_relaxed);
  shown.parts.store(parts, std::memory_order_relaxed);
  output_ = own;
  account();
}

void Connection::collect(std::string& out) {
  const std::size_t before = out.size();
  if (client_.has_yielded) client_.scripts->run.go_on();
  review_wait(node_.services(), client_);
  const ClientHandle::Collected found = client_.handle->collect(out, large_);
  // Wakeups until now were for this turn.
  if (client_.has_yielded) client_.handle->wake_host();
  if (found.killed) client_.closes = true;
  if (found.replied) {
    if (std::exchange(client_.discards_wait_reply, false)) {
      out.erase(before, found.reply_bytes);
      large_.erase(before, found.reply_bytes);
    }
    node_.deadlines.cancel(std::exchange(client_.deadline, 0));
    client_.waits = false;
    client_.waits_for.reset();
  }
  if (found.resumed) client_.held_back = false;
  if (found.reviewed) review();
  if (found.replied || found.resumed || more_) {
    input_.erase(0, run(input_, out));
    give_back_room();
  }
  note(0, out.size() - before);
}

/// What is idle costs nothing, and what had large requests once does not keep their room.
void Connection::give_back_room() {
  constexpr std::size_t room_kept = 4096;
  if (input_.empty()) {
    give_back(input_);
  } else if (input_.capacity() > 2 * input_.size() + room_kept) {
    input_.shrink_to_fit();
  }
}

/// The rights of some user have changed. A connection whose user is gone, or that may not receive
/// what it is subscribed to, is closed at once, and not with its next command.
void Connection::review() {
  bool goes = node_.acl.refresh(client_.user) == AclChange::gone;
  if (client_.handle->origin.is_remote && node_.settings.boolean(Setting::protected_mode) &&
      !client_.user.is_guarded()) {
    client_.user.guard();
    goes = goes || client_.user.needs_auth();
  }
  if (goes || !may_still_hear(client_)) client_.closes = true;
}

/// What a request may hold: an argument what can be stored, all of it what there is for clients.
void Connection::bound_request() {
  const auto bytes = [&](Setting setting) {
    return static_cast<std::size_t>(node_.settings.integer(setting));
  };
  limits_.bulk_bytes_max = bytes(Setting::proto_max_bulk_len);
  limits_.kept_bytes_max = limits::value_bytes_max;
  limits_.request_bytes_max =
      std::min(bytes(Setting::client_query_buffer_limit), node_.client_memory->limit());
}

/// As if the command had been called and refused: a transaction fails with it.
void Connection::skip_too_long(std::string& out) {
  flush(out);
  if (rewind_ != nullptr) return;
  RespWriter reply{out, client_.dialect};
  const std::size_t before = out.size();
  if (client_.transaction != nullptr) client_.transaction->failed = true;
  reply.error("ERR " + parser_.error());
  client_.lane->rejected(StatsLane::no_command, reply.since(before));
  // CLIENT REPLY SKIP and OFF hold for it as well.
  if (client_.replies != Replies::on) out.resize(before);
  if (client_.replies == Replies::skip) client_.replies = Replies::on;
  ++requests_;
}

std::size_t Connection::run(std::string_view input, std::string& out) {
  const std::size_t all = input.size();
  const char* const end = input.data() + all;
  round_begin_ = input.data();
  round_end_ = end;
  wanted_ = 0;
  more_ = false;
  rewind_ = nullptr;
  bound_request();
  static_cast<void>(client_.lane->lap(node_.ticks()));
  const std::size_t begin = out.size();
  client_.begin_round(out);
  while (!client_.closes && !waits()) {
    if (out.size() - begin + large_.unsent() > replies_bytes_max) {
      more_ = true;
      break;
    }
    const RespParser::Step step =
        parser_.parse(input, client_.user.needs_auth() ? limits_before_auth : limits_);
    if (step == RespParser::Step::incomplete) {
      wanted_ = parser_.wanted() - std::min(parser_.wanted(), input.size());
      break;
    }
    if (step == RespParser::Step::bad) {
      flush(out);
      if (rewind_ != nullptr) break;
      // With CLIENT REPLY OFF and SKIP it is not told, as in Redis.
      if (client_.replies == Replies::on) {
        RespWriter{out, client_.dialect}.error("ERR " + parser_.error());
      }
      client_.closes = true;
      break;
    }
    if (step == RespParser::Step::too_long) {
      skip_too_long(out);
      if (rewind_ != nullptr) break;
    } else if (step == RespParser::Step::command && !parser_.arguments().empty()) {
      if (!accept_request(input.data(), out)) break;
      ++requests_;
      if (rewind_ != nullptr) break;
    }
    input.remove_prefix(parser_.consumed());
  }
  if (rewind_ == nullptr) flush(out);
  if (group_ != nullptr) [[unlikely]] {
    group_->submit();
    group_->forget_input(static_cast<std::size_t>(input.data() - round_begin_));
  }
  if (rewind_ != nullptr) {  // the rest of a batch, when what it has answered is sent
    input = {rewind_, static_cast<std::size_t>(end - rewind_)};
    parser_.reset();
    wanted_ = 0;
    more_ = true;
  }
  node_.events.drain();
  client_.end_round();
  parser_.rest();
  large_.begin();  // what was met is held by those who send it
  return all - input.size();
}

bool Connection::accept_request(const char* start, std::string& out) {
  const CommandRow* const row = find_command(parser_.arguments()[0]);
  if (row == nullptr && is_of_http(parser_.arguments()[0])) [[unlikely]] {
    refuse_http(out);
    return rewind_ == nullptr;
  }
  batch_.starts_[batch_.count_] = start;
  if (node_.clients.pausing() && is_held_back(row)) [[unlikely]]
    return false;
  if (group_ != nullptr) [[unlikely]]
    return accept_in_group(row, start, out);
  RespWriter reply{out, client_.dialect};
  if (row != nullptr &&
      (row->single != nullptr ? enqueue_single(*row, reply) : enqueue_native(*row, reply))) {
    if (batch_.count_ == Batch::count_max) flush(out);
    return true;
  }
  flush(out);
  if (rewind_ != nullptr) return false;
  dispatch_now(out);
  return true;
}

bool Connection::accept_in_group(const CommandRow* row, const char* start, std::string& out) {
  const auto words = parser_.arguments();
  if (row != nullptr && is_container(*row)) row = find_row(words);
  const auto offset = [&](const char* at) { return static_cast<std::size_t>(at - round_begin_); };
  const bool may_join = group_->is_empty() || (row != nullptr && may_wait(*row));
  const Taken taken = group_->take({.row = row,
                                    .words = words,
                                    .in_place = parser_.in_place(),
                                    .end = offset(start) + parser_.consumed(),
                                    .input_end = offset(round_end_)},
                                   may_join, out);
  if (taken == Taken::here) dispatch_now(out);
  return taken != Taken::again;
}

/// A page in a browser can send a request to any port, and each line of its body would run as a
/// command. So nothing after the first line runs, and there is no reply that the page could use.
void Connection::refuse_http(std::string& out) {
  flush(out);
  if (rewind_ != nullptr) return;  // it is parsed again after the requests before it
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

bool Connection::is_held_back(const CommandRow* row) {
  const auto words = parser_.arguments();
  if (row != nullptr && is_container(*row) && words.size() > 1) {
    row = find_subcommand(*row, words[1]);
  }
  // What will be refused is refused now.
  if (row == nullptr || !row->takes(words.size()) || client_.user.needs_auth()) return false;
  bool does_write = may_write(node_, client_, *row, words);
  if (row->has(fact_executes) && client_.transaction != nullptr) {
    for (const QueuedCommand& queued : client_.transaction->commands) {
      const std::vector<std::string_view> views{queued.words.begin(), queued.words.end()};
      does_write = does_write || may_write(node_, client_, *queued.row, views);
    }
  }
  client_.held_back =
      node_.clients.wait_for_end(client_.handle, does_write, node_.engine().clock().now());
  return client_.held_back;
}

void Connection::dispatch_now(std::string& out) {
  SEMEL_ASSERT(batch_.count_ == 0);  // earlier requests have replies
  // With CLIENT REPLY OFF, drop the reply only: messages that are pushed meanwhile go to `out`.
  const bool is_reply_on = client_.replies == Replies::on;
  std::string discarded;
  std::string& answer = is_reply_on ? out : discarded;
  const std::size_t before = answer.size();
  RespWriter reply{answer, client_.dialect};
  large_.begin();
  if (is_reply_on && large_.is_enabled()) reply.set_large(&large_);
  reply.set_bound(before + node_.client_memory->reply_bytes_max());
  Call call{node_.services(), node_.engine(), client_, parser_.arguments(), reply};
  dispatch(call);
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
  // A command may have added output to many other connections.
  if (node_.client_memory->is_over()) [[unlikely]]
    node_.clients.evict(*node_.client_memory);
}

}  // namespace semel::net
