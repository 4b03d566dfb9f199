// Headers between two connections: what belongs to one of them alone is left out.
#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/core/reply.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

namespace http = boost::beast::http;

[[nodiscard]] inline std::string_view view(boost::beast::string_view text) noexcept {
  return {text.data(), text.size()};
}
[[nodiscard]] std::vector<std::string_view> values_of(const http::fields& fields,
                                                      std::string_view name);

/// Whether two ends could read the request as two different ones (request smuggling), or its head
/// says what this gateway does not do. The detail is for the client.
[[nodiscard]] Status check_head(const http::request_header<>& head);

/// Without Connection, what it names, Keep-Alive, TE, Trailer, Transfer-Encoding, Upgrade and
/// Proxy-*. Content-Length stays.
void drop_hop_headers(http::fields& fields);
/// What this gateway alone says to an upstream: from a client it would be forged.
void drop_own_headers(http::fields& fields);
/// X-Forwarded-For, -Proto and -Host, behind what was there.
void add_forwarded(http::request_header<>& head, const std::string& client, bool is_tls);

/// For keeping: without hop headers, Content-Length, Date and Set-Cookie of another's session.
[[nodiscard]] Reply reply_of(const http::response_header<>& head, std::string body);

}  // namespace semel::gateway
