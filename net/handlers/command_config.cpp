// CONFIG: the settings of the node as clients of Redis ask for them.
#include <vector>

#include "net/commands/handlers.hpp"
#include "net/node/node.hpp"

namespace semel::net::handlers {

void config_get(Call& call) {
  const auto found = call.node.settings.get(call.words.subspan(2));
  call.reply.map(found.size());
  for (const auto& [name, value] : found) {
    call.reply.bulk(name);
    call.reply.bulk(value);
  }
}

void config_set(Call& call) {
  if (call.words.size() % 2 != 0) return call.fail_arity();
  std::vector<Settings::NamedView> pairs;
  for (std::size_t i = 2; i < call.words.size(); i += 2) {
    pairs.emplace_back(call.words[i], call.words[i + 1]);
  }
  const auto problem = call.node.settings.set(pairs);
  problem ? call.fail(*problem) : call.reply.ok();
}

void config_resetstat(Call& call) {
  call.node.stats.reset();
  call.reply.ok();
}

void config_rewrite(Call& call) {
  if (!call.node.hooks.rewrite_config) {
    return call.fail("ERR The server is running without a config file");
  }
  const auto problem = call.node.hooks.rewrite_config();
  problem ? call.fail(*problem) : call.reply.ok();
}

}  // namespace semel::net::handlers
