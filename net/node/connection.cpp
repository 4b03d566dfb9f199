#include "net/node/connection.hpp"

#include <algorithm>
#include <utility>

#include "net/cluster/end_session.hpp"
#include "net/commands/access.hpp"
#include "net/commands/measure.hpp"
#include "net/commands/transaction.hpp"
#include "net/scripts/script_host.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {

Connection::Connection(Node& node, Batch& batch, ClientHost* host, ClientHandle::Origin origin)
    : node_(node), large_(node.client_memory), requests_(node, batch, client_, large_) {
  client_.handle = std::make_shared<ClientHandle>(std::move(origin), host, node.client_memory);
  client_.large = &large_;
  open_user();
  client_.lane = &batch.lane(node);
  client_.lane->connected();
  client_.scripts = batch.scripts(node);
  client_.may_yield = host != nullptr && host->serves_others();
  // A wait for a long script, instead of BUSY, would stop all connections of this thread.
  if (client_.may_yield) static_cast<void>(node.engine().host().set_no_wait(true));
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

Connection::~Connection() {
  end();
}

void Connection::end() {
  if (client_.has_yielded) client_.scripts->run.abandon();
  requests_.end();
  node_.clients.remove(client_.handle);
  client_.handle->end();
  node_.client_memory->remove(std::exchange(charged_, 0));
  static_cast<void>(large_.take());
  large_.begin();
  node_.pubsub.forget(client_);
  node_.monitors.remove(client_);
  node_.tracking.disable(client_.tracker);
  node_.deadlines.cancel(client_.deadline);
  end_transaction(node_.services(), client_);
  end_session(node_.services(), client_);
}

void Connection::receive(std::string_view bytes, std::string& out) {
  const std::size_t before = out.size();
  // Usually no input is kept: the requests are read in place.
  if (input_.size() == 0) {
    const std::size_t ran = requests_.run(bytes, out);
    input_.keep(bytes.substr(ran), requests_.wanted());
  } else {
    input_.keep(bytes, requests_.wanted());
    input_.drop(requests_.run(input_.bytes(), out));
  }
  note(bytes.size(), out.size() - before);
}

void Connection::note(std::size_t received, std::size_t sent) {
  client_.lane->moved(received, sent);
  account();
  show_client(client_, node_.engine().clock().now());
}

void Connection::account() {
  ClientHandle::Shown& shown = client_.handle->shown;
  const std::size_t arguments = requests_.held_bytes();
  const std::size_t transaction = client_.transaction == nullptr ? 0 : client_.transaction->bytes;
  const std::size_t kept = client_.kept_bytes();
  const std::size_t held = input_.held() + arguments + transaction + kept + output_;
  if (held != charged_ || held != 0) {
    // mo: relaxed: for people and eviction
    shown.input.store(input_.size(), std::memory_order_relaxed);
    shown.input_spare.store(input_.spare(), std::memory_order_relaxed);
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
  // Earlier wakeups belong to this turn: wake the host again for the rest of the script.
  if (client_.has_yielded) client_.handle->wake_host();
  if (found.killed) client_.closes = true;
  if (found.replied) {
    if (client_.waits_for != nullptr) {
      measured_wait(node_.services(), client_, *client_.waits_for,
                    std::string_view{out}.substr(before, found.reply_bytes));
    }
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
  if (found.replied || found.resumed || more()) {
    input_.drop(requests_.run(input_.bytes(), out));
  }
  note(0, out.size() - before);
}

/// Call after rights of users have changed. Closes the connection at once, not at its next command,
/// if its user is gone or may no longer receive one of its subscriptions.
void Connection::review() {
  bool goes = node_.acl.refresh(client_.user) == AclChange::gone;
  if (client_.handle->origin.is_remote && node_.settings.boolean(Setting::protected_mode) &&
      !client_.user.is_guarded()) {
    client_.user.guard();
    goes = goes || client_.user.needs_auth();
  }
  if (goes || !may_still_hear(client_)) client_.closes = true;
}

}  // namespace semel::net
