#include "net/node/request_writes.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "net/scripts/script_host.hpp"

namespace semel::net {
namespace {

/// Whether a script or function declares that it does not write. That is enforced when it runs.
bool declares_no_writes(Node& node, const ClientState& client, const CommandRow& row,
                        std::span<const std::string_view> words) {
  if (row.has(fact_function)) {
    const FunctionStore::Found found = node.scripts.functions.find(words[1]);
    return found.library != nullptr && (found.function->flags & script_no_writes) != 0;
  }
  const bool is_text = row.has(fact_script_text);
  const std::string sha = is_text ? sha1_hex(words[1]) : std::string{words[1]};
  if (const SharedScript& known = client.scripts->thread.find(sha); known != nullptr) {
    return known->has_shebang && (known->flags & script_no_writes) != 0;
  }
  if (!is_text || !words[1].starts_with("#!")) return false;
  Script script;
  script.text = words[1].substr(0, words[1].find('\n') + 1);
  return read_shebang(script).ok() && (script.flags & script_no_writes) != 0;
}

bool may_write_itself(Node& node, const ClientState& client, const CommandRow& row,
                      std::span<const std::string_view> words) {
  constexpr std::uint16_t runs_code = fact_script_text | fact_script_digest | fact_function;
  if ((row.facts.bits & runs_code) != 0 && !row.is(flag_readonly)) {
    return !declares_no_writes(node, client, row, words);
  }
  return row.is(flag_write) || row.is(flag_may_replicate) || row.has(fact_publishes) ||
         row.has(fact_caches);
}

}  // namespace

bool may_write(Node& node, const ClientState& client, const CommandRow& row,
               std::span<const std::string_view> words) {
  if (may_write_itself(node, client, row, words)) return true;
  if (!row.has(fact_executes) || client.transaction == nullptr) return false;
  const auto& commands = client.transaction->commands;
  return std::any_of(commands.begin(), commands.end(), [&](const QueuedCommand& queued) {
    const std::vector<std::string_view> views{queued.words.begin(), queued.words.end()};
    return may_write_itself(node, client, *queued.row, views);
  });
}

}  // namespace semel::net
