#include "gateway/rules/head.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/hex.hpp"
#include "gateway/rules/limits.hpp"
#include "gateway/rules/message.hpp"
#include "gateway/rules/method.hpp"

namespace semel::gateway {
namespace {

Error bad_head(std::string text) {
  return {ErrorCode::syntax, std::move(text)};
}

bool is_token_character(char c) noexcept {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') ||
         std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

bool is_digits(std::string_view text) noexcept {
  constexpr std::size_t digits_max = 18;  // so that every reader gets the same number
  return !text.empty() && text.size() <= digits_max &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The characters of a host and a port (RFC 3986, section 3.2). Two readers of anything else, as
/// "a, b", "a@b" or "a/b", may see two hosts.
bool is_host(std::string_view text) noexcept {
  return text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()*+;=:[]") ==
         std::string_view::npos;
}

/// The fields that frame the message.
struct Framing {
  bool is_1_1 = false;
  unsigned lengths = 0;
  unsigned codings = 0;
  unsigned hosts = 0;
};

Status check_request_line(std::string_view line, Framing& framing) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return bad_head("the request line is not: method, blank, target, blank, version");
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_served_method(method) && method != "CONNECT" && method != "TRACE") {
    constexpr std::size_t shown_max = 40;
    return bad_head("the method '" + std::string{method.substr(0, shown_max)} +
                    "' is not a registered one in capitals");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return bad_head("the version is neither HTTP/1.0 nor HTTP/1.1");
  }
  framing.is_1_1 = version == "HTTP/1.1";
  if (target.size() > limits::target_bytes_max) {
    return bad_head("the target has " + std::to_string(target.size()) + " bytes; the limit is " +
                    std::to_string(limits::target_bytes_max));
  }
  const bool is_options = method == "OPTIONS" && target == "*";
  if (!is_options && !target.starts_with('/')) {
    return bad_head("the target does not begin with '/'");
  }
  const auto is_outside = [](char c) { return c <= ' ' || c > '~' || c == '#'; };
  if (std::any_of(target.begin(), target.end(), is_outside)) {
    return bad_head("the target has a blank, a '#', or a byte that is not ASCII");
  }
  return Done{};
}

Status check_field(std::string_view line, std::size_t number, Framing& framing) {
  const std::string where = " in line " + std::to_string(number) + " of the head";
  if (line.front() == ' ' || line.front() == '\t') return bad_head("a folded line" + where);
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bad_head("no colon" + where);
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) return bad_head("the name of a field is not a token" + where);
  const std::string_view value = without_blanks(line.substr(colon + 1));
  if (equal_names(name, "Content-Length")) {
    if (!is_digits(value)) return bad_head("Content-Length is not one number" + where);
    ++framing.lengths;
  } else if (equal_names(name, "Transfer-Encoding")) {
    if (!equal_names(value, "chunked")) {
      return bad_head("Transfer-Encoding is not chunked" + where);
    }
    ++framing.codings;
  } else if (equal_names(name, "Host")) {
    if (!is_host(value)) return bad_head("Host is not one host, with or without a port" + where);
    ++framing.hosts;
  }
  return Done{};
}

Status check_framing(const Framing& framing) {
  if (framing.lengths > 1) return bad_head("Content-Length is there more than once");
  if (framing.codings > 1) return bad_head("Transfer-Encoding is there more than once");
  if (framing.lengths > 0 && framing.codings > 0) {
    return bad_head("Content-Length and Transfer-Encoding in one request");
  }
  if (framing.codings > 0 && !framing.is_1_1) {
    return bad_head("Transfer-Encoding in a request of HTTP/1.0");
  }
  if (framing.hosts > 1) return bad_head("Host is there more than once");
  if (framing.hosts == 0 && framing.is_1_1) return bad_head("HTTP/1.1 without Host");
  return Done{};
}

}  // namespace

Status check_head(std::string_view head) {
  Framing framing;
  std::size_t number = 0;
  while (!head.empty()) {
    const std::size_t end = head.find('\n');
    if (end == std::string_view::npos || end == 0 || head[end - 1] != '\r') {
      return bad_head("line " + std::to_string(number + 1) + " of the head does not end in CR LF");
    }
    const std::string_view line = head.substr(0, end - 1);
    head.remove_prefix(end + 1);
    ++number;
    const auto is_control = [](char c) {
      return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f';
    };
    if (std::any_of(line.begin(), line.end(), is_control)) {
      return bad_head("a control character in line " + std::to_string(number) + " of the head");
    }
    if (number == 1) {
      SEMEL_CHECK(check_request_line(line, framing));
      continue;
    }
    if (line.empty()) {
      if (head.empty()) return check_framing(framing);
      return bad_head("an empty line within the head");
    }
    if (number > limits::fields_max + 1) {
      return bad_head("more than " + std::to_string(limits::fields_max) + " header fields");
    }
    SEMEL_CHECK(check_field(line, number, framing));
  }
  return bad_head("the head has no empty line at its end");
}

std::optional<std::size_t> end_of_head(std::string_view bytes) noexcept {
  // A line feed alone ends a line for lenient readers: the head ends there, and is then refused.
  for (std::size_t at = bytes.find('\n'); at != std::string_view::npos;
       at = bytes.find('\n', at + 1)) {
    const std::string_view rest = bytes.substr(at + 1);
    if (rest.starts_with('\n')) return at + 2;
    if (rest.starts_with("\r\n")) return at + 3;
  }
  return std::nullopt;
}

bool is_hop_by_hop(std::string_view name, std::string_view connection) noexcept {
  constexpr std::array<std::string_view, 10> known{"Connection",
                                                   "HTTP2-Settings",
                                                   "Keep-Alive",
                                                   "Proxy-Connection",
                                                   "Proxy-Authenticate",
                                                   "Proxy-Authorization",
                                                   "TE",
                                                   "Trailer",
                                                   "Transfer-Encoding",
                                                   "Upgrade"};
  const auto is_name = [&](std::string_view each) { return equal_names(each, name); };
  return std::any_of(known.begin(), known.end(), is_name) || has_token(connection, name);
}

Status check_fields(Fields fields) {
  for (const Field& connection : fields) {
    if (!equal_names(connection.name, "Connection")) continue;
    for (const Field& field : fields) {
      if (has_token(connection.value, field.name) && !is_hop_by_hop(field.name, "")) {
        return bad_head("Connection names the field '" + std::string{field.name} + "'");
      }
    }
  }
  return Done{};
}

bool is_passed_name(std::string_view name) noexcept {
  return name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "0123456789-") == std::string_view::npos;
}

Result<std::string> normal_path(std::string_view path, PathReading reading) {
  std::string out;
  out.reserve(path.size());
  bool is_parameter = false;  // of a segment; servers for Java take "/pay;a=b" for "/pay"
  for (std::size_t i = 0; i < path.size(); ++i) {
    char c = path[i];
    if (c == '%') {
      const bool is_whole = path.size() - i > 2;
      const int high = is_whole ? base::hex_value(path[i + 1]) : -1;
      const int low = is_whole ? base::hex_value(path[i + 2]) : -1;
      if (high < 0 || low < 0) return bad_head("a '%' in the path that is no escape");
      c = static_cast<char>(high * 16 + low);
      i += 2;
      if (c == '/' || c == '%') return bad_head("an encoded slash or percent sign in the path");
    }
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f' || c == '\\') {
      return bad_head("a control character or backslash in the path");
    }
    is_parameter = c != '/' && !reading.keeps_parameters && (is_parameter || c == ';');
    if (is_parameter || (c == '/' && !reading.keeps_slashes && out.ends_with('/'))) continue;
    out += c;
  }
  for (const char* const segment : {"/./", "/../"}) {
    if (out.find(segment) != std::string::npos) return bad_head("a dot segment in the path");
  }
  if (out.ends_with("/.") || out.ends_with("/..")) return bad_head("a dot segment in the path");
  return out;
}

}  // namespace semel::gateway
