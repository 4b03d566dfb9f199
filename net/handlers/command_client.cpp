// CLIENT: the connected clients, and what a client says of itself.
#include <algorithm>
#include <limits>
#include <set>

#include "net/acl/acl.hpp"
#include "net/cluster/end_session.hpp"
#include "net/commands/handlers.hpp"
#include "net/commands/transaction.hpp"
#include "net/events/monitor.hpp"
#include "net/events/pubsub.hpp"
#include "net/resp/text.hpp"
#include "net/session/clients.hpp"
#include "net/session/tracking.hpp"

namespace semel::net {
namespace {

bool is_printable(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

/// None: an error has been written.
std::optional<bool> on_or_off(Call& call) {
  if (is_word(call.args[2], "on")) return true;
  if (is_word(call.args[2], "off")) return false;
  call.fail_syntax();
  return std::nullopt;
}

/// The error of a subcommand that is known, but not with these words.
void fail_words(Call& call) {
  call.fail("ERR unknown subcommand or wrong number of arguments for '" +
            std::string{call.args[1]} + "'. Try CLIENT HELP.");
}

/// "normal", "pubsub", "master" or "replica"; none: an error has been written.
std::optional<std::string_view> read_type(Call& call, std::string_view word) {
  for (const std::string_view type : {"normal", "pubsub", "master", "replica"}) {
    if (is_word(word, type)) return type;
  }
  if (is_word(word, "slave")) return "replica";
  call.fail("ERR Unknown client type '" + std::string{word} + "'");
  return std::nullopt;
}

/// What CLIENT KILL looks for; all that is named must hold.
struct Filter {
  std::optional<std::uint64_t> id{};
  std::optional<std::string_view> address{};
  std::optional<std::string_view> local_address{};
  std::optional<std::string_view> type{};
  std::optional<std::string_view> user{};
  std::optional<std::int64_t> age_seconds{};
  bool skips_me = true;
};

/// False: an error has been written.
bool read_filter_word(Call& call, std::string_view name, std::string_view value, Filter& filter) {
  const auto fail = [&](std::string_view text) {
    call.fail(text);
    return false;
  };
  if (is_word(name, "id")) {
    const auto id = integer_of(value);
    if (!id || *id < 1) return fail("ERR client-id should be greater than 0");
    filter.id = static_cast<std::uint64_t>(*id);
  } else if (is_word(name, "type")) {
    filter.type = read_type(call, value);
    return filter.type.has_value();
  } else if (is_word(name, "addr")) {
    filter.address = value;
  } else if (is_word(name, "laddr")) {
    filter.local_address = value;
  } else if (is_word(name, "user")) {
    if (call.services.acl.find(value) == nullptr)
      return fail("ERR No such user '" + std::string{value} + "'");
    filter.user = value;
  } else if (is_word(name, "skipme") && (is_word(value, "yes") || is_word(value, "no"))) {
    filter.skips_me = is_word(value, "yes");
  } else if (is_word(name, "maxage")) {
    const auto age = integer_of(value);
    if (!age) return fail("ERR maxage is not an integer or out of range");
    if (*age <= 0) return fail("ERR maxage should be greater than 0");
    filter.age_seconds = *age;
  } else {
    call.fail_syntax();
    return false;
  }
  return true;
}

bool meets(const ClientHandle& handle, const Filter& filter, Timestamp now) {
  if (filter.id && handle.origin.id != *filter.id) return false;
  if (filter.address && handle.origin.address != *filter.address) return false;
  if (filter.local_address && handle.origin.local_address != *filter.local_address) return false;
  if (filter.type && type_of(handle) != *filter.type) return false;
  if (filter.user && handle.names().user != *filter.user) return false;
  const std::int64_t age_ms = now.time_since_epoch().count() - handle.origin.connected_ms;
  return !filter.age_seconds || age_ms / 1000 >= *filter.age_seconds;
}

std::uint64_t kill(Call& call, const Filter& filter) {
  std::uint64_t killed = 0;
  const Timestamp now = call.engine.clock().now();
  for (const auto& handle : call.services.clients.all()) {
    const bool is_me = handle == call.client.handle;
    if ((is_me && filter.skips_me) || !meets(*handle, filter, now)) continue;
    ++killed;
    if (is_me) {
      call.client.closes = true;  // after the reply
    } else {
      handle->kill();
    }
  }
  return killed;
}

/// The bytes of the request, if it came in RESP.
std::size_t bytes_of_request(std::span<const std::string_view> words) {
  constexpr std::size_t marks = 3;  // one before a number, and the end of its line
  std::size_t bytes = marks + std::to_string(words.size()).size();
  for (const std::string_view word : words) {
    bytes += marks + std::to_string(word.size()).size() + word.size() + 2;
  }
  return bytes;
}

/// What the others see of this client would else be of its round before. As in redis-server, the
/// present request is in the query buffer.
void show_me(Call& call) {
  show_client(call.client, call.engine.clock().now());
  // mo: relaxed: for people
  call.client.handle->shown.input.store(bytes_of_request(call.args), std::memory_order_relaxed);
}

void set_name(Call& call, std::string ClientHandle::Names::*field, std::string_view value) {
  if (value.size() > ClientHandle::name_bytes_max) return fail_client_name(call, value);
  call.client.handle->change_names([&](ClientHandle::Names& names) { names.*field = value; });
  call.reply.ok();
}

}  // namespace

namespace handlers {

void client_id(Call& call) {
  call.reply.integer(static_cast<std::int64_t>(call.client.handle->origin.id));
}

void client_getname(Call& call) {
  const std::string name = call.client.handle->names().name;
  name.empty() ? call.reply.null() : call.reply.bulk(name);
}

void client_setname(Call& call) {
  if (!is_printable(call.args[2])) {
    return call.fail("ERR Client names cannot contain spaces, newlines or special characters.");
  }
  set_name(call, &ClientHandle::Names::name, call.args[2]);
}

void client_setinfo(Call& call) {
  const bool is_name = is_word(call.args[2], "lib-name");
  if (!is_name && !is_word(call.args[2], "lib-ver")) {
    return call.fail("ERR Unrecognized option '" + std::string{call.args[2]} + "'");
  }
  if (!is_printable(call.args[3])) {
    return call.fail("ERR " + std::string{call.args[2]} +
                     " cannot contain spaces, newlines or special characters.");
  }
  set_name(call, is_name ? &ClientHandle::Names::library : &ClientHandle::Names::library_version,
           call.args[3]);
}

void client_info(Call& call) {
  show_me(call);
  call.reply.verbatim(line_of(*call.client.handle, call.engine.clock().now()));
}

void client_list(Call& call) {
  std::optional<std::string_view> type;
  std::set<std::uint64_t> ids;
  const std::size_t count = call.args.size();
  if (count == 4 && is_word(call.args[2], "type")) {
    type = read_type(call, call.args[3]);
    if (!type) return;
  } else if (count > 3 && is_word(call.args[2], "id")) {
    for (const std::string_view word : call.args.subspan(3)) {
      const auto id = integer_of(word);
      if (!id) return call.fail("ERR Invalid client ID");
      ids.insert(static_cast<std::uint64_t>(*id));
    }
  } else if (count != 2) {
    return call.fail_syntax();
  }
  show_me(call);
  const Timestamp now = call.engine.clock().now();
  std::string lines;
  for (const auto& handle : call.services.clients.all()) {
    if (!ids.empty() && !ids.contains(handle->origin.id)) continue;
    if (!type || type_of(*handle) == *type) lines += line_of(*handle, now);
  }
  call.reply.verbatim(lines);
}

void client_kill(Call& call) {
  Filter filter;
  if (call.args.size() == 3) {
    filter = {.address = call.args[2], .skips_me = false};
    return kill(call, filter) == 0 ? call.fail("ERR No such client") : call.reply.ok();
  }
  for (std::size_t i = 2; i < call.args.size(); i += 2) {
    if (i + 1 == call.args.size()) return call.fail_syntax();
    if (!read_filter_word(call, call.args[i], call.args[i + 1], filter)) return;
  }
  call.reply.integer(static_cast<std::int64_t>(kill(call, filter)));
}

void client_reply(Call& call) {
  Replies& replies = call.client.replies;
  if (is_word(call.args[2], "on")) {
    replies = Replies::on;
    return call.reply.ok();
  }
  if (is_word(call.args[2], "off")) {
    replies = Replies::off;
  } else if (is_word(call.args[2], "skip")) {
    if (replies != Replies::off) replies = Replies::skip_next;
  } else {
    call.fail_syntax();
  }
}

void client_no_evict(Call& call) {
  const auto on = on_or_off(call);
  if (!on) return;
  // mo: relaxed: shown to people.
  call.client.handle->shown.no_evict.store(*on, std::memory_order_relaxed);
  call.reply.ok();
}

void client_no_touch(Call& call) {
  const auto on = on_or_off(call);
  if (!on) return;
  // mo: relaxed: shown to people.
  call.client.handle->shown.no_touch.store(*on, std::memory_order_relaxed);
  call.client.no_touch = *on;
  call.reply.ok();
}

void client_pause(Call& call) {
  if (call.args.size() > 4) return fail_words(call);
  Pause kind = Pause::all;
  if (call.args.size() == 4) {
    if (is_word(call.args[3], "write")) {
      kind = Pause::writes;
    } else if (!is_word(call.args[3], "all")) {
      return call.fail("ERR CLIENT PAUSE mode must be WRITE or ALL");
    }
  }
  const auto ms = integer_of(call.args[2]);
  if (!ms) return call.fail("ERR timeout is not an integer or out of range");
  if (*ms < 0) return call.fail("ERR timeout is negative");
  const Timestamp now = call.engine.clock().now();
  const std::int64_t room =
      std::numeric_limits<std::int64_t>::max() - now.time_since_epoch().count();
  call.services.clients.pause(kind, now + Millis{std::min(*ms, room)});
  call.reply.ok();
}

void client_unpause(Call& call) {
  call.services.clients.unpause();
  call.reply.ok();
}

void client_unblock(Call& call) {
  bool with_error = false;
  if (call.args.size() > 4) return fail_words(call);
  if (call.args.size() == 4) {
    with_error = is_word(call.args[3], "error");
    if (!with_error && !is_word(call.args[3], "timeout")) {
      return call.fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    }
  }
  const auto id = integer_of(call.args[2]);
  if (!id) return call.fail_number();
  const auto handle = call.services.clients.find(static_cast<std::uint64_t>(*id));
  call.reply.integer(handle != nullptr && handle->unblock(with_error) ? 1 : 0);
}

void client_capa(Call& call) {
  call.reply.ok();  // what a client can do changes nothing here
}

void reset(Call& call) {
  ClientState& client = call.client;
  end_transaction(call.services, client);
  client.user = call.services.acl.open_session(client.user);
  const std::string& user = client.user.user().name();
  client.handle->change_names([&](ClientHandle::Names& names) {
    names.name.clear();
    names.user = user;
  });
  // mo: relaxed: shown to people.
  client.handle->shown.no_evict.store(false, std::memory_order_relaxed);
  client.handle->shown.no_touch.store(false, std::memory_order_relaxed);
  client.no_touch = false;
  call.services.pubsub.forget(client);
  call.services.monitors.remove(client);
  call.services.tracking.disable(client.tracker);
  end_session(call.services, client);
  client.dialect = Resp::two;
  show_dialect(client);
  client.db = 0;
  client.replies = Replies::on;
  call.reply.set_dialect(client.dialect);
  call.reply.simple("RESET");
}

}  // namespace handlers
}  // namespace semel::net
