// Backups of the storage, made beside the running node.
#include "net/commands/handlers.hpp"
#include "net/commands/node_hooks.hpp"
#include "net/commands/services.hpp"

namespace semel::net::handlers {
namespace {

std::string_view word_of(BackupState::Stage stage) {
  switch (stage) {
    case BackupState::Stage::none:
      return "none";
    case BackupState::Stage::running:
      return "running";
    case BackupState::Stage::done:
      return "done";
    case BackupState::Stage::failed:
      return "failed";
  }
  return "none";
}

}  // namespace

void semel_backup(Call& call) {
  call.fail_arity();  // a subcommand is always meant
}

void semel_backup_start(Call& call) {
  const NodeHooks& hooks = call.services.hooks;
  if (!hooks.start_backup) return call.fail("ERR this node has no storage");
  const Status started = hooks.start_backup(std::string{call.args[2]});
  if (!started) return call.fail("ERR " + started.error().detail);
  call.reply.ok();
}

void semel_backup_status(Call& call) {
  const NodeHooks& hooks = call.services.hooks;
  const BackupState state = hooks.backup_state ? hooks.backup_state() : BackupState{};
  call.reply.map(7);
  call.reply.bulk("state");
  call.reply.bulk(word_of(state.stage));
  call.reply.bulk("name");
  call.reply.bulk(state.name);
  call.reply.bulk("started_ms");
  call.reply.integer(state.started_unix_ms);
  call.reply.bulk("seconds");
  call.reply.integer(state.seconds);
  call.reply.bulk("error");
  call.reply.bulk(state.error);
  call.reply.bulk("bytes");
  call.reply.integer(static_cast<std::int64_t>(state.bytes));
  call.reply.bulk("bytes_total");
  call.reply.integer(static_cast<std::int64_t>(state.bytes_total));
}

void semel_backup_cancel(Call& call) {
  const NodeHooks& hooks = call.services.hooks;
  if (!hooks.cancel_backup) return call.fail("ERR this node has no storage");
  const Status cancelled = hooks.cancel_backup();
  if (!cancelled) return call.fail("ERR " + cancelled.error().detail);
  call.reply.ok();
}

}  // namespace semel::net::handlers
