// The node as a whole: its time, its end, its disk, and the roles that Redis gives to servers.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "net/cluster/group.hpp"
#include "net/commands/handlers.hpp"
#include "net/commands/node_hooks.hpp"
#include "net/handlers/command_server.hpp"
#include "net/handlers/info.hpp"
#include "net/resp/text.hpp"
#include "net/session/busy_scripts.hpp"
#include "net/session/node_role.hpp"
#include "net/settings/settings.hpp"
#include "net/time/deadlines.hpp"
#include "net/time/wall_clock.hpp"

namespace semel::net {
namespace {

/// The connection waits until all earlier changes are on the disk, and then answers `reply`.
void wait_for_disk(Call& call, const std::string& reply) {
  if (call.context().is_part()) {
    const Status confirmed = call.engine.confirm(Durability::synced);
    if (!confirmed) return call.fail(confirmed.error());
    return call.reply.prepared(reply);
  }
  const std::uint64_t wait = call.client.handle->begin_wait(reply);
  call.client.waits = true;
  const std::weak_ptr<ClientHandle> weak = call.client.handle;
  call.engine.confirm_async(Durability::synced, [weak, wait, reply](const Status& confirmed) {
    const auto handle = weak.lock();
    if (handle == nullptr) return;
    if (confirmed) return handle->reply(wait, reply);
    std::string error;
    const ErrorCode code = confirmed.error().code;
    RespWriter{error, Resp::two}.error(std::string{resp_prefix_of(code)} + " " +
                                       std::string{sentence_of(code)});
    handle->reply(wait, std::move(error));
  });
}

/// None: an error has been written.
std::optional<std::int64_t> timeout_of(Call& call, std::string_view word) {
  const auto ms = integer_of(word);
  if (!ms) {
    call.fail("ERR timeout is not an integer or out of range");
    return std::nullopt;
  }
  if (*ms < 0) {
    call.fail("ERR timeout is negative");
    return std::nullopt;
  }
  return ms;
}

}  // namespace

void wait_for_time(Call& call, std::int64_t ms, const std::string& reply) {
  ClientState& client = call.client;
  const std::uint64_t wait = client.handle->begin_wait(reply);
  client.waits = true;
  if (ms == 0) return;
  const Timestamp now = call.engine.clock().now();
  const std::int64_t room =
      std::numeric_limits<std::int64_t>::max() - now.time_since_epoch().count();
  const std::weak_ptr<ClientHandle> weak = client.handle;
  client.deadline =
      call.services.deadlines.add(now + Millis{std::min(ms, room)}, [weak, wait, reply] {
        if (const auto handle = weak.lock()) handle->reply(wait, reply);
      });
}

namespace {

void write_followed(Call& call, const FollowView& view) {
  constexpr std::size_t fields = 5;
  call.reply.array(fields);
  call.reply.bulk("slave");
  call.reply.bulk(view.master.host);
  call.reply.integer(view.master.port);
  call.reply.bulk(name_of(view.link));
  call.reply.integer(view.offset);
}

void write_leader(Call& call, const GroupView& view) {
  constexpr std::size_t fields = 3;
  const auto offset = static_cast<std::int64_t>(view.applied);
  call.reply.array(fields);
  call.reply.bulk("master");
  call.reply.integer(offset);
  call.reply.array(view.members.empty() ? 0 : view.members.size() - 1);
  for (const GroupMember& each : view.members) {
    if (each.id == view.node_id) continue;
    const auto [host, port] = host_and_port(each.client_address);
    call.reply.array(fields);
    call.reply.bulk(host);
    call.reply.bulk(port);
    call.reply.bulk(std::to_string(offset));
  }
}

/// The setting follows the command, so that CONFIG GET shows it and CONFIG REWRITE keeps it.
void note_master(Call& call, const std::string& text) {
  static_cast<void>(call.services.settings.assign(Setting::replicaof, text,
                                                  {.kind = Origin::Kind::config_set, .where = {}}));
}

void follow(Call& call, const MasterAddress& master) {
  Following& following = *call.services.following;
  if (call.services.role.follows() && following.view().master == master) {
    return call.reply.simple("OK Already connected to specified master");
  }
  if (const Status followed = following.follow(master); !followed) {
    return call.fail(followed.error().detail);
  }
  note_master(call, master.host + " " + std::to_string(master.port));
  call.reply.ok();
}

}  // namespace

namespace handlers {

void info(Call& call) {
  call.reply.verbatim(info_text(call.services, call.args.subspan(1)));
}

void time(Call& call) {
  const std::int64_t script_us = call.client.script_unix_us;
  // By one clock with scripts, or the time of a script could be before that of a TIME before it.
  const std::int64_t us = script_us != 0 ? script_us : unix_us_of(call.engine);
  call.reply.array(2);
  call.reply.bulk_of(us / 1'000'000);
  call.reply.bulk_of(us % 1'000'000);
}

void role(Call& call) {
  if (call.services.role.follows() && call.services.following != nullptr) {
    return write_followed(call, call.services.following->view());
  }
  const GroupView view =
      call.services.group == nullptr ? GroupView{{.leads = true}} : call.services.group->view();
  if (view.leads) return write_leader(call, view);
  std::string address;
  for (const GroupMember& each : view.members) {
    if (each.id == view.leader) address = each.client_address;
  }
  const auto [host, port] = host_and_port(address);
  call.reply.array(5);
  call.reply.bulk("slave");
  call.reply.bulk(host);
  call.reply.integer(std::strtoll(port.c_str(), nullptr, 10));
  call.reply.bulk(view.leader == 0 ? "connect" : "connected");
  call.reply.integer(static_cast<std::int64_t>(view.applied));
}

void wait(Call& call) {
  const auto replicas = integer_of(call.args[1]);
  if (!replicas) return call.fail_number();
  const auto ms = timeout_of(call, call.args[2]);
  if (!ms) return;
  if (call.services.group != nullptr) {
    // Whatever was answered is on a majority: that many, and this node is not counted.
    const GroupView view = call.services.group->view();
    const auto voters = std::count_if(view.members.begin(), view.members.end(),
                                      [](const GroupMember& each) { return each.is_voter; });
    return call.reply.integer(voters / 2);
  }
  if (*replicas <= 0 || call.context().is_part()) return call.reply.integer(0);
  wait_for_time(call, *ms, ":0\r\n");
}

void waitaof(Call& call) {
  const auto local = integer_of(call.args[1]);
  const auto replicas = integer_of(call.args[2]);
  if (!local || !replicas) return call.fail_number();
  if (*local < 0 || *local > 1 || *replicas < 0) {
    return call.fail("ERR value is out of range, must be positive");
  }
  const auto ms = timeout_of(call, call.args[3]);
  if (!ms) return;
  if (*local == 1 && !call.services.facts.journals) {
    return call.fail("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  }
  if (*replicas > 0 && !call.context().is_part())
    return wait_for_time(call, *ms, "*2\r\n:0\r\n:0\r\n");
  if (*local == 1) return wait_for_disk(call, "*2\r\n:1\r\n:0\r\n");
  call.reply.array(2);
  call.reply.integer(0);
  call.reply.integer(0);
}

void lolwut(Call& call) {
  if (call.args.size() > 2 && is_word(call.args[1], "version") && !integer_of(call.args[2])) {
    return call.fail_number();
  }
  call.reply.verbatim("Once, and only once.\nRedis ver. " + std::string{reported_redis_version} +
                      "\n");
}

void module_list(Call& call) {
  call.reply.array(0);
}

/// MODULE LOAD and its like.
void no_modules(Call& call) {
  call.fail(
      "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", "
      "you can run it from a local connection, otherwise you need to set this option in the "
      "configuration file, and then restart the server.");
}

void shutdown(Call& call) {
  bool saves = false;
  bool saves_not = false;
  bool aborts = false;
  for (const std::string_view word : call.args.subspan(1)) {
    if (is_word(word, "nosave")) {
      saves_not = true;
    } else if (is_word(word, "save")) {
      saves = true;
    } else if (is_word(word, "abort")) {
      aborts = true;
    } else if (!is_word(word, "now") && !is_word(word, "force")) {
      return call.fail_syntax();
    }
  }
  if ((aborts && call.args.size() > 2) || (saves && saves_not)) {
    return call.fail_syntax();
  }
  if (call.services.busy_scripts.any() && !saves_not)
    return call.fail(call.services.busy_scripts.text());
  if (aborts) return call.fail("ERR No shutdown in progress.");
  const auto& hook = call.services.hooks.shutdown;
  if (!hook) return call.fail("ERR Errors trying to SHUTDOWN. Check logs.");
  hook();
  call.client.closes = true;  // without a reply
}

/// Only then there are backups; without them each write counts as saved.
bool makes_backups(const Services& services) {
  return services.hooks.start_backup && !services.settings.text(Setting::backup_dir).empty();
}

void lastsave(Call& call) {
  const NodeFacts& facts = call.services.facts;
  if (makes_backups(call.services)) {
    const std::int64_t done = call.services.hooks.backup_state().done_unix_ms;
    return call.reply.integer((done == 0 ? facts.started_unix_ms : done) / 1000);
  }
  const std::int64_t ms = facts.journals ? call.engine.clock().unix_ms() : facts.started_unix_ms;
  call.reply.integer(ms / 1000);
}

void save(Call& call) {
  if (!call.services.facts.journals) return call.reply.ok();
  wait_for_disk(call, "+OK\r\n");
}

void bgsave(Call& call) {
  if (call.args.size() > 2 || (call.args.size() == 2 && !is_word(call.args[1], "schedule"))) {
    return call.fail_syntax();
  }
  if (makes_backups(call.services)) {
    const NodeHooks& hooks = call.services.hooks;
    if (hooks.backup_state().stage == BackupState::Stage::running) {
      return call.fail("ERR Background save already in progress");
    }
    const std::int64_t now_ms = call.engine.clock().unix_ms();
    const Status started = hooks.start_backup("bgsave-" + std::to_string(now_ms));
    if (!started) return call.fail("ERR " + started.error().detail);
  }
  call.reply.simple("Background saving started");
}

/// It does nothing, in redis-server's words: within EXEC it would be for later.
void bgrewriteaof(Call& call) {
  const bool is_later = call.context().is_part();
  call.reply.simple(is_later ? "Background append only file rewriting scheduled"
                             : "Background append only file rewriting started");
}

void replicaof(Call& call) {
  const bool ends = is_word(call.args[1], "no") && is_word(call.args[2], "one");
  // Both wait for the master's command that runs, which may wait for the section of an EXEC.
  if (call.context().is_part()) {
    return call.fail("ERR REPLICAOF is not allowed in a transaction");
  }
  if (ends) {
    if (call.services.following != nullptr) call.services.following->stop();
    note_master(call, "");
    return call.reply.ok();
  }
  constexpr std::int64_t port_max = 65'535;
  const auto port = integer_of(call.args[2]);
  if (!port || *port < 0 || *port > port_max) return call.fail("ERR Invalid master port");
  if (call.services.group != nullptr) {
    return call.fail("ERR REPLICAOF is not allowed in a group: its nodes follow the group's log");
  }
  if (call.services.following == nullptr) {
    return call.fail(
        "ERR REPLICAOF is for nodes that run by themselves, and not for a node that "
        "is a part of a program");
  }
  follow(call, {std::string{call.args[1]}, static_cast<std::uint16_t>(*port)});
}

/// What a replica says of itself before PSYNC, which is refused.
void replconf(Call& call) {
  if (call.args.size() % 2 == 0) return call.fail_syntax();
  for (std::size_t i = 1; i < call.args.size(); i += 2) {
    const std::string_view option = call.args[i];
    if (is_word(option, "listening-port")) {
      if (!integer_of(call.args[i + 1])) return call.fail_number();
    } else if (!is_word(option, "ip-address") && !is_word(option, "capa") &&
               !is_word(option, "rdb-only") && !is_word(option, "rdb-filter-only")) {
      return call.fail("ERR Unrecognized REPLCONF option: " + std::string{option});
    }
  }
  call.reply.ok();
}

/// A command changes one record in one step here, beside others, and there is no one order of all
/// commands that a stream of them could have.
void psync(Call& call) {
  call.fail(
      "ERR this node sends no stream of commands, and no replica can follow it; for copies "
      "of it make a group of nodes");
}

void no_cluster(Call& call) {
  call.fail("ERR This instance has cluster support disabled");
}

void container(Call& call) {
  call.fail_arity();
}

}  // namespace handlers
}  // namespace semel::net
