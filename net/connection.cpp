#include "net/connection.hpp"

#include <utility>

#include "net/claim_session.hpp"
#include "net/single.hpp"
#include "net/transaction.hpp"

namespace semel::net {

Connection::Connection(Node& node, Batch& batch, ClientHost* host, ClientHandle::Origin origin)
    : node_(node), batch_(batch) {
  client_.handle = std::make_shared<ClientHandle>(std::move(origin), host);
  client_.user = node.acl.open_session();
}

Connection::~Connection() {
  end();
}

void Connection::end() {
  client_.handle->end();
  node_.pubsub.forget(client_);
  node_.monitors.remove(client_);
  end_transaction(node_, client_);
  end_session(node_.engine(), client_);
}

void Connection::receive(std::string_view bytes, std::string& out) {
  // Most often nothing is left of the last time, and the requests are read where they are.
  if (input_.empty()) {
    input_ = bytes.substr(run(bytes, out));
    return;
  }
  input_.append(bytes);
  input_.erase(0, run(input_, out));
}

void Connection::collect(std::string& out) {
  const ClientHandle::Collected found = client_.handle->collect(out);
  if (found.killed) client_.closes = true;
  if (found.replied) client_.waits = false;
  if (!found.replied && !more_) return;
  input_.erase(0, run(input_, out));
}

std::size_t Connection::run(std::string_view input, std::string& out) {
  const std::size_t all = input.size();
  wanted_ = 0;
  more_ = false;
  limits_.bulk_bytes_max =
      static_cast<std::size_t>(node_.settings.integer(Setting::proto_max_bulk_len));
  const std::size_t begin = out.size();
  client_.begin_round(out);
  while (!client_.closes && !client_.waits) {
    if (out.size() - begin > replies_bytes_max) {
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
      RespWriter{out, client_.dialect}.error("ERR " + parser_.error());
      client_.closes = true;
      break;
    }
    if (!parser_.arguments().empty()) {
      ++requests_;
      take(out);
    }
    input.remove_prefix(parser_.consumed());
  }
  flush(out);
  node_.events.drain();
  client_.end_round();
  return all - input.size();
}

void Connection::take(std::string& out) {
  const CommandRow* const row = find_command(parser_.arguments()[0]);
  RespWriter reply{out, client_.dialect};
  if (row != nullptr && row->single != nullptr && take_single(*row, reply)) {
    if (batch_.count_ == Batch::count_max) flush(out);
    return;
  }
  flush(out);
  carry_out(out);
}

bool Connection::take_single(const CommandRow& row, RespWriter& reply) {
  // The words of an inline command are gone when the next is read.
  if (!parser_.in_place() || client_.transaction != nullptr || client_.replies != Replies::on ||
      client_.subscribes() || node_.monitors.any() || !row.takes(parser_.arguments().size())) {
    return false;
  }
  StoreOp& op = batch_.ops_[batch_.count_];
  op = StoreOp{.db = client_.db, .key = parser_.arguments()[1]};
  Call call{node_, node_.engine(), client_, parser_.arguments(), reply, &row};
  // A user with rights to some things only is asked about in its turn.
  if (node_.acl.refresh(client_.user) != AclChange::none || client_.user.needs_auth() ||
      !client_.user.user().is_unlimited()) {
    return false;
  }
  if (row.single->plan(call, op) != Fault::none) return false;
  batch_.rows_[batch_.count_++] = &row;
  return true;
}

void Connection::flush(std::string& out) {
  const std::size_t count = std::exchange(batch_.count_, 0);
  if (count == 0) return;
  Engine& engine = node_.engine();
  if (count == 1) {
    engine.apply(batch_.ops_[0], batch_.outcomes_[0]);
  } else {
    engine.apply(std::span{batch_.ops_}.first(count), std::span{batch_.outcomes_}.first(count));
  }
  RespWriter reply{out, client_.dialect};
  Call call{node_, engine, client_, {}, reply};
  for (std::size_t i = 0; i < count; ++i) {
    call.row = batch_.rows_[i];
    answer_single(call, *call.row->single, batch_.ops_[i], batch_.outcomes_[i]);
    if (call.row->is(flag_write)) node_.watches.touched(client_.db, batch_.ops_[i].key);
  }
}

void Connection::carry_out(std::string& out) {
  // What is not answered must not take along what is pushed meanwhile, which stands in `out`.
  const bool is_heard = client_.replies == Replies::on;
  std::string unheard;
  std::string& answer = is_heard ? out : unheard;
  const std::size_t before = answer.size();
  RespWriter reply{answer, client_.dialect};
  Call call{node_, node_.engine(), client_, parser_.arguments(), reply};
  dispatch(call);
  if (client_.replies != Replies::on) {
    answer.resize(before);
    if (client_.replies == Replies::skip) {
      client_.replies = Replies::on;
    } else if (client_.replies == Replies::skip_next) {
      client_.replies = Replies::skip;
    }
  } else if (!is_heard) {
    out += unheard;
  }
  if (client_.held != nullptr) [[unlikely]]
    node_.pubsub.release(client_);
}

}  // namespace semel::net
