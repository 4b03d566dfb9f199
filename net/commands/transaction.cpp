#include "net/commands/transaction.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "net/commands/access.hpp"
#include "net/commands/handlers.hpp"
#include "net/session/clients.hpp"
#include "net/session/watches.hpp"

namespace semel::net {
namespace {

constexpr std::size_t command_bytes = sizeof(QueuedCommand);

// Redis has no bound of these either.
constexpr std::size_t watched_bytes_max = std::size_t{32} << 20;
constexpr std::size_t watched_key_bytes = 256;  // of a key, beside its name

void unwatch_all(Services& services, ClientState& client) {
  client.watched_bytes = 0;
  if (client.watcher == nullptr) return;
  services.watches.forget(*client.watcher);
  client.watcher.reset();
}

/// True: the command may be part of a transaction on a full disk. A script may do anything.
bool adds_nothing(const QueuedCommand& command) noexcept {
  const CommandRow& row = *command.row;
  constexpr unsigned scripts = fact_script_text | fact_script_digest | fact_function;
  return row.has(fact_frees) || (!row.is(flag_write) && (row.facts.bits & scripts) == 0);
}

void run(Call& call, const std::vector<QueuedCommand>& commands) {
  call.reply.array(commands.size());
  std::vector<std::string_view> words;
  for (const QueuedCommand& command : commands) {
    words.assign(command.words.begin(), command.words.end());
    call.reply.set_dialect(call.client.dialect);  // HELLO may have changed it
    Call inner{call.services, call.engine, call.client, words, call.reply, command.row};
    if (const Status allowed = may_run_queued(inner); !allowed) [[unlikely]] {
      const std::size_t before = call.reply.size();
      inner.fail(allowed.error().detail);
      if (StatsLane* const lane = call.client.lane; lane != nullptr) {
        lane->rejected(index_of(*command.row), call.reply.since(before));
      }
      continue;
    }
    execute(inner);
  }
}

}  // namespace

void enqueue(Call& call) {
  SEMEL_ASSERT(call.client.transaction != nullptr && call.row != nullptr);
  Transaction& transaction = *call.client.transaction;
  std::size_t bytes = command_bytes;
  for (const std::string_view word : call.args) bytes += sizeof(std::string) + word.size();
  const std::size_t bytes_max =
      call.client.is_master ? transaction_of_master_bytes_max : transaction_bytes_max;
  if (transaction.bytes + bytes > bytes_max) {
    transaction.failed = true;
    return call.fail("ERR a transaction is limited to " + std::to_string(bytes_max) + " bytes");
  }
  transaction.bytes += bytes;
  transaction.commands.push_back(
      {call.row, std::vector<std::string>{call.args.begin(), call.args.end()}});
  call.reply.simple("QUEUED");
}

void end_transaction(Services& services, ClientState& client) {
  client.transaction.reset();
  unwatch_all(services, client);
}

namespace handlers {

void multi(Call& call) {
  if (call.client.transaction != nullptr) return call.fail("ERR MULTI calls can not be nested");
  call.client.transaction = std::make_unique<Transaction>();
  call.reply.ok();
}

void discard(Call& call) {
  if (call.client.transaction == nullptr) return call.fail("ERR DISCARD without MULTI");
  end_transaction(call.services, call.client);
  call.reply.ok();
}

void exec(Call& call) {
  if (call.client.transaction == nullptr) return call.fail("ERR EXEC without MULTI");
  const std::unique_ptr<Transaction> transaction = std::move(call.client.transaction);
  if (transaction->failed) {
    unwatch_all(call.services, call.client);
    return call.fail("EXECABORT Transaction discarded because of previous errors.");
  }
  Result<Section> section = call.engine.section({});
  if (!section) {
    unwatch_all(call.services, call.client);
    return call.fail(section.error());
  }
  if (std::all_of(transaction->commands.begin(), transaction->commands.end(), adds_nothing)) {
    section->only_frees();
  }
  const bool changed =
      call.client.watcher != nullptr && call.services.watches.has_changed(*call.client.watcher);
  // Before the commands run: their own changes must not count as changes of watched keys.
  unwatch_all(call.services, call.client);
  if (changed) return call.reply.null_array();
  const ExecutionScope scope{call.client.context, ExecutionMode::transaction};
  run(call, transaction->commands);
}

void watch(Call& call) {
  if (call.client.transaction != nullptr) {
    return call.fail("ERR WATCH inside MULTI is not allowed");
  }
  if (call.client.watcher == nullptr) call.client.watcher = std::make_unique<Watcher>();
  const std::size_t count = call.client.watcher->keys.size() + call.args.size() - 1;
  if (count > Watches::keys_max) {
    return call.fail("ERR a client would watch " + std::to_string(count) + " keys, the limit is " +
                     std::to_string(Watches::keys_max));
  }
  for (const std::string_view key : call.args.subspan(1)) {
    std::size_t& bytes = call.client.watched_bytes;
    const std::size_t more = watched_key_bytes + 2 * key.size();
    if (bytes + more > watched_bytes_max) {
      return call.fail("ERR what a client watches is limited to " +
                       std::to_string(watched_bytes_max) + " bytes, " +
                       std::to_string(watched_key_bytes) + " for each key and twice its own");
    }
    const std::size_t before = call.client.watcher->keys.size();
    const Status watched = call.services.watches.watch(*call.client.watcher, call.client.db, key);
    if (!watched) return call.fail(watched.error());
    if (call.client.watcher->keys.size() != before) bytes += more;
  }
  call.reply.ok();
}

void unwatch(Call& call) {
  unwatch_all(call.services, call.client);
  call.reply.ok();
}

}  // namespace handlers
}  // namespace semel::net
