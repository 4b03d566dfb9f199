// CONFIG: the settings of the node as clients of Redis ask for them.
#include <string>
#include <vector>

#include "net/commands/handlers.hpp"
#include "net/commands/node_hooks.hpp"
#include "net/resp/text.hpp"
#include "net/settings/setting_units.hpp"
#include "net/settings/settings.hpp"
#include "net/stats/node_stats.hpp"

namespace semel::net::handlers {

namespace {

/// A setting that only a node of ours has, and has already: a client that writes back all that
/// CONFIG GET has shown changes nothing. redis-server's own are judged as by it.
bool is_kept_own(const Settings& settings, std::string_view name, std::string_view value) {
  const auto found = find_setting(name);
  return found && row_of(found->setting).redis_names.empty() &&
         settings.text(found->setting) == value;
}

}  // namespace

void config_get(Call& call) {
  const auto found = call.services.settings.get(call.args.subspan(2));
  call.reply.map(found.size());
  for (const auto& [name, value] : found) {
    call.reply.bulk(name);
    call.reply.bulk(value);
  }
}

void config_set(Call& call) {
  if (call.args.size() % 2 != 0) return call.fail_arity();
  // To redis-server 0 is unlimited; here the value of the start comes back.
  const std::string maxmemory = std::to_string(call.services.facts.maxmemory);
  std::vector<Settings::NamedView> pairs;
  for (std::size_t i = 2; i < call.args.size(); i += 2) {
    if (is_kept_own(call.services.settings, call.args[i], call.args[i + 1])) continue;
    const bool takes_back = is_word(call.args[i], "maxmemory") && bytes_of(call.args[i + 1]) == 0;
    pairs.emplace_back(call.args[i], takes_back ? std::string_view{maxmemory} : call.args[i + 1]);
  }
  if (pairs.empty()) return call.reply.ok();
  const Status status = call.services.settings.set(pairs);
  status ? call.reply.ok() : call.fail(status.error().detail);
}

void config_resetstat(Call& call) {
  call.services.stats.reset();
  call.reply.ok();
}

void config_rewrite(Call& call) {
  if (!call.services.hooks.rewrite_config) {
    return call.fail("ERR The server is running without a config file");
  }
  const Status status = call.services.hooks.rewrite_config();
  status ? call.reply.ok() : call.fail(status.error().detail);
}

}  // namespace semel::net::handlers
