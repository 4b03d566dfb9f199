// MIGRATE: its words. The keys are moved in net/dump/migration.cpp, while the client waits.
#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "net/commands/handlers.hpp"
#include "net/commands/node_hooks.hpp"
#include "net/dump/migration.hpp"
#include "net/resp/text.hpp"
#include "net/session/blocking.hpp"

namespace semel::net::handlers {

namespace {

/// None: the error has been written.
std::optional<Migration> read_migration(Call& call) {
  constexpr std::size_t options_at = 6;
  Migration migration;
  std::vector<std::string> keys{std::string{call.args[3]}};
  for (std::size_t i = options_at; i < call.args.size(); ++i) {
    const std::size_t left = call.args.size() - i - 1;
    if (is_word(call.args[i], "copy")) {
      migration.copies = true;
    } else if (is_word(call.args[i], "replace")) {
      migration.replaces = true;
    } else if (is_word(call.args[i], "auth") && left >= 1) {
      migration.login = {"AUTH", std::string{call.args[i + 1]}};
      i += 1;
    } else if (is_word(call.args[i], "auth2") && left >= 2) {
      migration.login = {"AUTH", std::string{call.args[i + 1]}, std::string{call.args[i + 2]}};
      i += 2;
    } else if (is_word(call.args[i], "keys")) {
      if (!call.args[3].empty()) {
        call.fail(
            "ERR When using MIGRATE KEYS option, the key argument must be set to the empty "
            "string");
        return std::nullopt;
      }
      keys.assign(call.args.begin() + static_cast<std::ptrdiff_t>(i) + 1, call.args.end());
      break;
    } else {
      return call.fail_syntax(), std::nullopt;
    }
  }
  const auto timeout = integer_of(call.args[5]);
  const auto db = timeout ? integer_of(call.args[4]) : std::nullopt;
  if (!timeout || !db) return call.fail_number(), std::nullopt;
  constexpr std::int64_t timeout_default_ms = 1000;
  constexpr std::int64_t timeout_max_ms = std::int64_t{24} * 3600 * 1000;
  const std::int64_t ms = *timeout > 0 ? *timeout : timeout_default_ms;
  migration.target = {.host = std::string{call.args[1]},
                      .port = std::string{call.args[2]},
                      .idle_max = Millis{std::min(ms, timeout_max_ms)}};
  migration.target_db = *db;
  migration.db = call.client.db;
  migration.keys = std::move(keys);
  return migration;
}

/// Those that are there. None: the error has been written.
std::optional<std::vector<std::string>> present(Call& call, const std::vector<std::string>& keys) {
  std::vector<std::string> found;
  for (const std::string& key : keys) {
    if (key.empty()) continue;  // there is none of this name
    const auto kind = call.store().type(key);
    if (!kind.ok()) return call.fail(kind.error()), std::nullopt;
    if (*kind) found.push_back(key);
  }
  return found;
}

}  // namespace

void migrate(Call& call) {
  auto migration = read_migration(call);
  if (!migration) return;
  if (call.services.group != nullptr) {
    return call.fail(
        "ERR a node of a group does not move keys: use 'semel export' and 'semel "
        "import'");
  }
  auto keys = present(call, migration->keys);
  if (!keys) return;
  if (keys->empty()) return call.reply.simple("NOKEY");
  migration->keys = *std::move(keys);
  const NodeHooks& hooks = call.services.hooks;
  if (!hooks.connect_peer || !hooks.run_aside) {
    return call.fail("ERR this node has no connections to others");
  }
  if (call.context().is_part()) {
    return call.fail("ERR MIGRATE waits for the target, which a transaction or a script cannot");
  }
  const auto handle = call.client.handle;
  const std::uint64_t wait =
      begin_blocking(call.client, call.row, call.args, "-ERR the keys are still being moved\r\n");
  const bool runs =
      hooks.run_aside([&services = call.services, handle, wait, migration = *std::move(migration)] {
        std::string reply;
        try {
          reply = net::migrate(services, migration);
        } catch (const std::bad_alloc&) {
          reply = "-OOM the heap has no memory left: the keys that were not moved stay here\r\n";
        }
        handle->reply(wait, std::move(reply));
      });
  if (!runs) handle->reply(wait, "-ERR too many MIGRATE commands are running\r\n");
}

}  // namespace semel::net::handlers
