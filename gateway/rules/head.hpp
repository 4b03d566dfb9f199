// Valid heads of requests. Two servers that read one head differently see two different requests
// (request smuggling), so every head with more than one reading is refused before a lenient parser
// sees it. Pure functions.
// Source: RFC 9112, sections 2.2, 3, 5, 6 and 11.2
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/rules/message.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

/// Checks the bytes of a head, from the method to the empty line. Refused (400): a method that is
/// not a registered one in capitals, a line that does not end in CR LF, a control character, a
/// blank before a colon or a folded line, a name that is no token, two Content-Length or a list of
/// them, Content-Length beside Transfer-Encoding, another coding than chunked, no Host or two in
/// HTTP/1.1, a target that does not begin with '/'. Error: syntax, the detail says what and in
/// which line.
[[nodiscard]] Status check_head(std::string_view head);

/// Where the head in `bytes` ends: behind its empty line. None: it is not complete.
[[nodiscard]] std::optional<std::size_t> end_of_head(std::string_view bytes) noexcept;

/// Whether a field is for one connection and not passed on (RFC 9110, section 7.6.1). `connection`
/// is the value of Connection, which may name more of them.
[[nodiscard]] bool is_hop_by_hop(std::string_view name, std::string_view connection) noexcept;

/// Whether the upstream will get the fields of a request as they are. Refused (400): a Connection
/// that names a field of the request that is not for one connection by the standard. Such a name
/// would let a client remove signed fields, or fields of a proxy in front. Error: syntax.
[[nodiscard]] Status check_fields(Fields fields);

/// Whether a field of this name is passed on. Servers that make variables of names (CGI, WSGI, PHP)
/// read "X_Limit" as X-Limit, so names of anything but letters, digits and '-' are dropped.
[[nodiscard]] bool is_passed_name(std::string_view name) noexcept;

/// How a server may read a path; those of Java strip parameters, most join slashes.
struct PathReading {
  bool keeps_parameters = false;  ///< of a segment (";a=b")
  bool keeps_slashes = false;     ///< repeated ones
};

/// The path in one form, for the choice of a route: percent-decoded, without parameters, repeated
/// slashes as one. An upstream may decode a path once more, so what could become another path by
/// that is refused: a dot segment, an encoded slash, percent sign or control character, a
/// backslash, and a '%' that is no escape. Error: syntax, the detail says what.
[[nodiscard]] Result<std::string> normal_path(std::string_view path, PathReading reading = {});

}  // namespace semel::gateway
