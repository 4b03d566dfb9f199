// What a client says about itself and asks about the other side.
#include <algorithm>
#include <array>

#include "net/commands/access.hpp"
#include "net/commands/handlers.hpp"
#include "net/events/pubsub.hpp"
#include "net/handlers/info.hpp"
#include "net/resp/text.hpp"
#include "net/session/clients.hpp"
#include "net/session/node_role.hpp"
#include "semel/version.hpp"

namespace semel::net::handlers {
namespace {

bool is_client_name(std::string_view name) noexcept {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

}  // namespace

void ping(Call& call) {
  if (call.args.size() > 2) return call.fail_arity();
  if (call.client.only_listens()) {
    call.reply.array(2);
    call.reply.bulk("pong");
    return call.reply.bulk(call.args.size() == 2 ? call.args[1] : std::string_view{});
  }
  call.args.size() == 2 ? call.reply.bulk(call.args[1]) : call.reply.simple("PONG");
}

void echo(Call& call) {
  call.reply.bulk(call.args[1]);
}

void quit(Call& call) {
  call.client.closes = true;
  call.reply.ok();
}

void hello(Call& call) {
  std::optional<Resp> dialect;
  if (call.args.size() > 1) {
    const auto version = integer_of(call.args[1]);
    if (!version) return call.fail("ERR Protocol version is not an integer or out of range");
    if (*version < 2 || *version > 3) return call.fail("NOPROTO unsupported protocol version");
    dialect = *version == 3 ? Resp::three : Resp::two;
  }
  std::optional<std::string_view> name;
  std::optional<std::array<std::string_view, 2>> login;
  for (std::size_t i = 2; i < call.args.size(); ++i) {
    const std::size_t more = call.args.size() - 1 - i;
    if (is_word(call.args[i], "setname") && more >= 1) {
      name = call.args[++i];
      if (name->size() > ClientHandle::name_bytes_max) return fail_client_name(call, *name);
      if (is_client_name(*name)) continue;
      return call.fail("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    if (is_word(call.args[i], "auth") && more >= 2) {
      login = {call.args[i + 1], call.args[i + 2]};
      i += 2;
      continue;
    }
    return call.fail("ERR Syntax error in HELLO option '" + std::string{call.args[i]} + "'");
  }
  if (login) {
    NodeAclHost host{call};
    AclCall about = acl_call(call, host);
    if (!log_in_or_refuse(about, (*login)[0], (*login)[1])) return;
    note_login(call);
  }
  if (call.client.user.needs_auth()) {
    return call.fail(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  }
  if (dialect) {
    call.client.dialect = *dialect;
    show_dialect(call.client);
    call.services.pubsub.change_dialect(call.client);
  }
  if (name) {
    call.client.handle->change_names([&](ClientHandle::Names& names) { names.name = *name; });
  }
  call.reply.set_dialect(call.client.dialect);
  constexpr std::size_t fields = 7;
  call.reply.map(fields);
  call.reply.bulk("server"), call.reply.bulk("redis");
  call.reply.bulk("version"), call.reply.bulk(reported_redis_version);
  call.reply.bulk("proto"), call.reply.integer(static_cast<std::int64_t>(call.client.dialect));
  call.reply.bulk("id"),
      call.reply.integer(static_cast<std::int64_t>(call.client.handle->origin.id));
  call.reply.bulk("mode");
  call.reply.bulk(call.services.group == nullptr ? "standalone" : "cluster");
  call.reply.bulk("role");
  call.reply.bulk(call.services.role.follows() ? "replica" : "master");
  call.reply.bulk("modules"), call.reply.array(0);
}

}  // namespace semel::net::handlers
