#include "net/follow/master_dialog.hpp"

#include <algorithm>
#include <optional>

#include "net/resp/text.hpp"

namespace semel::net {

namespace {

constexpr std::size_t replid_bytes = 40;

/// Others may show it: no control characters, and not all of a long line.
std::string printable_line(std::string_view line) {
  constexpr std::size_t shown_max = 128;
  std::string text{line.substr(0, shown_max)};
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

bool is_replid(std::string_view text) noexcept {
  return text.size() == replid_bytes && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

std::optional<std::int64_t> count_of(std::string_view text) noexcept {
  const auto number = integer_of(text);
  return number && *number >= 0 ? number : std::nullopt;
}

/// "-NOAUTH Authentication required." and what other releases say of a client that must log in.
bool asks_for_login(std::string_view line) noexcept {
  return line.starts_with("-NOAUTH") || line.starts_with("-NOPERM") ||
         line.starts_with("-ERR operation not permitted");
}

}  // namespace

void append_request(std::string& out, std::initializer_list<std::string_view> words) {
  out.append("*").append(std::to_string(words.size())).append("\r\n");
  for (const std::string_view word : words) {
    out.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
  }
}

void MasterDialog::begin(std::string& out) {
  append_request(out, {"PING"});
}

std::size_t MasterDialog::receive(std::string_view in, std::string& out) {
  std::size_t at = 0;
  while (!has_ended() && at < in.size()) {
    const std::string_view rest = in.substr(at);
    const std::size_t end = rest.find('\n');
    if (std::min(end, rest.size()) > line_bytes_max) {
      fail("a line is too long", rest);
      break;
    }
    if (end == std::string_view::npos) break;
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    at += end + 1;
    // A master that is not ready yet sends empty lines.
    if (!line.empty()) take(line, out);
  }
  return at;
}

void MasterDialog::take(std::string_view line, std::string& out) {
  switch (state_) {
    case State::pong:
      if (!line.starts_with('+') && !asks_for_login(line)) return fail("PING", line);
      if (terms_.password.empty()) return ask_for_port(out);
      state_ = State::auth;
      if (terms_.user.empty()) return append_request(out, {"AUTH", terms_.password});
      return append_request(out, {"AUTH", terms_.user, terms_.password});
    case State::auth:
      if (!line.starts_with('+')) return fail("AUTH", line);
      return ask_for_port(out);
    case State::port:  // what the master shows of us does not matter
      state_ = State::capabilities;
      return append_request(out, {"REPLCONF", "capa", "eof", "capa", "psync2"});
    case State::capabilities:
      return ask_for_stream(out);
    case State::psync:
      return take_psync(line);
    case State::preamble:
      return take_preamble(line);
    case State::transfer:
    case State::stream:
    case State::failed:
      return;
  }
}

void MasterDialog::ask_for_port(std::string& out) {
  state_ = State::port;
  append_request(out, {"REPLCONF", "listening-port", std::to_string(terms_.port)});
}

void MasterDialog::ask_for_stream(std::string& out) {
  state_ = State::psync;
  if (terms_.from.replid.empty()) return append_request(out, {"PSYNC", "?", "-1"});
  append_request(out, {"PSYNC", terms_.from.replid, std::to_string(terms_.from.offset + 1)});
}

void MasterDialog::take_psync(std::string_view line) {
  constexpr std::string_view full = "+FULLRESYNC ";
  constexpr std::string_view partial = "+CONTINUE";
  if (line.starts_with(full)) {
    const std::string_view words = line.substr(full.size());
    const auto blank = words.find(' ');
    if (blank == std::string_view::npos) return fail("PSYNC", line);
    const std::string_view replid = words.substr(0, blank);
    const auto offset = count_of(words.substr(blank + 1));
    if (!is_replid(replid) || !offset) return fail("PSYNC", line);
    position_ = {std::string{replid}, *offset};
    state_ = State::preamble;
    return;
  }
  if (!line.starts_with(partial) || terms_.from.replid.empty()) return fail("PSYNC", line);
  position_ = terms_.from;
  std::string_view replid = line.substr(partial.size());
  if (replid.starts_with(' ')) replid.remove_prefix(1);
  // Behind a failover the same history goes on by another name.
  if (!replid.empty()) {
    if (!is_replid(replid)) return fail("PSYNC", line);
    position_.replid = replid;
  }
  state_ = State::stream;
}

void MasterDialog::take_preamble(std::string_view line) {
  constexpr std::string_view by_mark = "$EOF:";
  if (line.starts_with(by_mark)) {
    mark_ = line.substr(by_mark.size());
    if (mark_.size() != mark_bytes) return fail("the head of the RDB file", line);
  } else {
    const auto length = line.starts_with('$') ? count_of(line.substr(1)) : std::nullopt;
    if (!length || *length == 0) return fail("the head of the RDB file", line);
    length_ = static_cast<std::uint64_t>(*length);
  }
  state_ = State::transfer;
}

void MasterDialog::fail(std::string_view what, std::string_view line) {
  state_ = State::failed;
  error_ = std::string{what} + ": " + printable_line(line);
}

}  // namespace semel::net
