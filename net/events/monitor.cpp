#include "net/events/monitor.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "base/hex.hpp"
#include "net/commands/handlers.hpp"
#include "net/commands/measure.hpp"
#include "net/node/node.hpp"

namespace semel::net {
namespace {

/// In quotes, with everything but printable ASCII escaped.
void append_quoted(std::string& line, std::string_view word) {
  constexpr std::string_view plain = "\\\"\n\r\t\a\b";
  constexpr std::string_view letters = "\\\"nrtab";
  line += '"';
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (const std::size_t at = plain.find(c); at != std::string_view::npos) {
      line += '\\';
      line += letters[at];
    } else if (byte >= ' ' && byte <= '~') {
      line += c;
    } else {
      line += "\\x";
      base::append_hex(line, byte);
    }
  }
  line += '"';
}

std::string address_of(const ClientHandle& handle) {
  const std::string& address = handle.origin.address;
  if (!handle.origin.is_unix) return address;
  return "unix:" + address.substr(0, address.rfind(':'));
}

}  // namespace

void Monitors::add(ClientState& client) {
  client.monitors = true;
  client.handle->shown.monitors.store(true, std::memory_order_relaxed);  // mo: relaxed: for people
  const std::lock_guard lock{mutex_};
  handles_.push_back(client.handle);
  count_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in any()
}

void Monitors::remove(ClientState& client) {
  if (!client.monitors) return;
  client.monitors = false;
  client.handle->shown.monitors.store(false, std::memory_order_relaxed);  // mo: relaxed: for people
  const std::lock_guard lock{mutex_};
  std::erase(handles_, client.handle);
  count_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: as in any()
}

void Monitors::show(Call& call, std::string_view source) {
  // Scripts are shown before what they ask for, by themselves.
  const bool is_begun = source == script_begins;
  if ((call.row->is(flag_skip_monitor) && !is_begun) || call.row->is(flag_admin)) return;
  if (is_begun) source = {};
  const std::int64_t ms = call.engine.clock().unix_ms();
  std::array<char, 48> time{};
  std::snprintf(time.data(), time.size(), "+%lld.%06lld [%u ", static_cast<long long>(ms / 1000),
                static_cast<long long>(ms % 1000 * 1000), unsigned{call.client.db});
  std::string line{time.data()};
  line += source.empty() ? address_of(*call.client.handle) : std::string{source};
  line += ']';
  for (const std::string_view word : without_secrets(*call.row, call.words)) {
    line += ' ';
    append_quoted(line, word);
  }
  line += "\r\n";
  const bool is_within = call.client.executing || call.client.held != nullptr;
  const auto shared = std::make_shared<const LargeBytes>(std::move(line), call.node.client_memory);
  const std::lock_guard lock{mutex_};
  for (const auto& handle : handles_) {
    if (is_within && handle == call.client.handle) {
      PubSub::hold_own(call.client, shared->view());
    } else {
      static_cast<void>(handle->push(shared));  // false: it is being closed
    }
  }
}

namespace handlers {

void monitor(Call& call) {
  if (call.client.executing) {
    return call.fail("ERR MONITOR isn't allowed for DENY BLOCKING client");
  }
  // mo: relaxed: a setting
  if (!call.node.monitors.allowed.load(std::memory_order_relaxed)) {
    return call.fail("ERR MONITOR is not allowed on this node; the setting 'monitor' allows it");
  }
  if (call.client.monitors) return;  // a second one is not answered, as in redis-server
  call.node.monitors.add(call.client);
  call.client.push_directly();
  call.reply.ok();
}

}  // namespace handlers
}  // namespace semel::net
