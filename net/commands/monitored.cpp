#include "net/commands/monitored.hpp"

#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "base/hex.hpp"
#include "net/commands/measure.hpp"
#include "net/events/monitor.hpp"
#include "net/resp/client_memory.hpp"

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

void show_to_monitors(Call& call, std::string_view source) {
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
  for (const std::string_view word : without_secrets(*call.row, call.args)) {
    line += ' ';
    append_quoted(line, word);
  }
  line += "\r\n";
  call.services.monitors.send(call.client, std::move(line), call.services.client_memory);
}

}  // namespace semel::net
