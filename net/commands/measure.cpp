#include "net/commands/measure.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "net/resp/text.hpp"
#include "net/stats/latency_events.hpp"
#include "net/stats/slow_log.hpp"

namespace semel::net {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;

void add_slow(const Services& services, const ClientHandle& handle, const CommandRow& row,
              std::int64_t ns, std::span<const std::string_view> words) {
  services.slow_log.add({.unix_seconds = services.engine.clock().unix_ms() / 1000,
                         .us = ns / 1000,
                         .address = handle.origin.address,
                         .name = handle.names().name},
                        without_secrets(row, words));
}

void record(const Call& call, std::int64_t ns, std::span<const std::string_view> words) {
  const Services& services = call.services;
  const bool slow = services.slow_log.takes(ns) && !call.row->is(flag_skip_slowlog) &&
                    call.client.waits_for == nullptr;
  const bool latent = services.latency.takes(ns);
  if (slow) add_slow(services, *call.client.handle, *call.row, ns, words);
  if (latent) {
    const std::int64_t unix_seconds = call.engine.clock().unix_ms() / 1000;
    services.latency.add(call.row->is(flag_fast) ? "fast-command" : "command", unix_seconds,
                         ns / ns_per_ms);
  }
}

using Shown = std::span<std::string_view>;

void hide(Shown words, std::size_t first, std::size_t end) {
  constexpr std::string_view hidden = "(redacted)";
  for (std::size_t i = first; i < std::min(end, words.size()); ++i) words[i] = hidden;
}

/// Up to so many words behind each `option`. From the end on, so that an option is found whose word
/// is hidden because the word before it reads like one as well (SETNAME auth AUTH ..).
void hide_behind(Shown words, std::string_view option, std::size_t count) {
  for (std::size_t i = words.size(); i-- > 1;) {
    if (is_word(words[i], option)) hide(words, i + 1, i + 1 + count);
  }
}

void hide_secrets(const SecretWords& secrets, Shown words) {
  if (secrets.from != 0) hide(words, secrets.from, words.size());
  if (secrets.count != 0) hide_behind(words, secrets.option, secrets.count);
  if (secrets.settings_from == 0) return;
  // The names of secret settings contain "pass" or "auth": requirepass, masterauth,
  // tls-key-file-pass.
  for (std::size_t i = secrets.settings_from; i + 1 < words.size(); i += 2) {
    const std::string name = base::lower_of(words[i]);
    if (name.find("pass") != std::string::npos || name.find("auth") != std::string::npos) {
      hide(words, i + 1, i + 2);
    }
  }
}

const CommandRow* row_of_words(std::span<const std::string_view> words) noexcept {
  const CommandRow* const row = find_command(words[0]);
  if (row == nullptr || !is_container(*row) || words.size() < 2) return row;
  return find_subcommand(*row, words[1]);
}

}  // namespace

std::vector<std::string_view> without_secrets(const CommandRow& row,
                                              std::span<const std::string_view> words) {
  std::vector<std::string_view> shown{words.begin(), words.end()};
  const CommandRow* present = &row;
  std::size_t at = 0;
  // A command that is an argument of another may be one whose argument is a command.
  while (present != nullptr) {
    hide_secrets(present->facts.secrets, std::span{shown}.subspan(at));
    const std::size_t inner = present->facts.inner_at;
    if (inner == 0 || at + inner >= words.size()) break;
    at += inner;
    present = row_of_words(words.subspan(at));
  }
  return shown;
}

void measured(const Call& call, std::int64_t ns, std::string_view reply) {
  SEMEL_ASSERT(call.client.lane != nullptr);
  StatsLane& lane = *call.client.lane;
  ns += std::exchange(call.client.slept_ns, 0);
  const std::size_t command = index_of(*call.row);
  lane.called(command, ns);
  const bool is_counted = std::exchange(call.client.error_is_counted, false);
  if (reply.starts_with('-')) is_counted ? lane.failed_again(command) : lane.failed(command, reply);
  record(call, ns, call.args);
}

void measured_wait(Services& services, ClientState& client, const QueuedCommand& waited,
                   std::string_view reply) {
  const bool has_failed = reply.starts_with('-') && client.lane != nullptr;
  if (has_failed) client.lane->failed(index_of(*waited.row), reply);
  if (!services.slow_log.takes(0) || waited.row->is(flag_skip_slowlog)) return;
  const std::vector<std::string_view> words{waited.words.begin(), waited.words.end()};
  add_slow(services, *client.handle, *waited.row, 0, words);
}

void measured_together(const Call& call, std::int64_t ns_each, std::uint64_t count,
                       std::string_view key) {
  call.client.lane->called(index_of(*call.row), ns_each, count);
  const std::array<std::string_view, 2> words{call.row->name, key};
  record(call, ns_each, words);
}

}  // namespace semel::net
