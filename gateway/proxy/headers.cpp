#include "gateway/proxy/headers.hpp"

#include <algorithm>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/verb.hpp>

#include "base/hex.hpp"

namespace semel::gateway {
namespace {

using http::field;

Error refused(std::string what) {
  return {ErrorCode::bad_option, std::move(what)};
}

constexpr field hop_fields[] = {
    field::connection,       field::keep_alive,         field::te,
    field::trailer,          field::transfer_encoding,  field::upgrade,
    field::proxy_connection, field::proxy_authenticate, field::proxy_authorization};

}  // namespace

std::vector<std::string_view> values_of(const http::fields& fields, std::string_view name) {
  std::vector<std::string_view> found;
  const auto [first, last] =
      fields.equal_range(boost::beast::string_view{name.data(), name.size()});
  for (auto at = first; at != last; ++at) found.push_back(view(at->value()));
  return found;
}

namespace {

/// Whether an upstream could read the path as another one, and so miss its route here: empty and
/// dot segments, backslashes, and percent signs before what needs none.
bool has_other_form(std::string_view path) {
  if (path.find("//") != std::string_view::npos || path.find('\\') != std::string_view::npos) {
    return true;
  }
  for (std::size_t at = path.find("/."); at != std::string_view::npos;
       at = path.find("/.", at + 1)) {
    std::string_view rest = path.substr(at + 2);
    if (rest.starts_with('.')) rest.remove_prefix(1);
    if (rest.empty() || rest[0] == '/' || rest[0] == ';') return true;
  }
  for (std::size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    const int high = at + 1 < path.size() ? base::hex_value(path[at + 1]) : -1;
    const int low = at + 2 < path.size() ? base::hex_value(path[at + 2]) : -1;
    if (high < 0 || low < 0) return true;
    const char meant = static_cast<char>(16 * high + low);
    const bool is_word = (meant >= 'a' && meant <= 'z') || (meant >= 'A' && meant <= 'Z') ||
                         (meant >= '0' && meant <= '9');
    if (is_word || meant == 0 ||
        std::string_view{"-._~/\\;"}.find(meant) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

Status check_head(const http::request_header<>& head) {
  const auto encodings = values_of(head, "Transfer-Encoding");
  const auto lengths = values_of(head, "Content-Length");
  if (encodings.size() > 1 ||
      (encodings.size() == 1 &&
       !boost::beast::iequals(boost::beast::string_view{encodings[0].data(), encodings[0].size()},
                              "chunked"))) {
    return refused("Transfer-Encoding may be chunked, and nothing else");
  }
  if (!encodings.empty() && head.version() < 11) {
    return refused("Transfer-Encoding is not for HTTP/1.0");
  }
  if (!encodings.empty() && !lengths.empty()) {
    return refused("Transfer-Encoding and Content-Length exclude each other");
  }
  if (lengths.size() > 1) return refused("Content-Length was sent more than once");
  if (head.version() >= 11 && values_of(head, "Host").size() != 1) {
    return refused("one Host is needed");
  }
  const std::string_view target = view(head.target());
  if (target.empty() || target[0] != '/') return refused("the target has to be a path");
  for (const char c : target) {
    if (c <= 0x20 || c >= 0x7f || c == '#') return refused("the target has a character it may not");
  }
  if (has_other_form(target.substr(0, target.find('?')))) {
    return refused("the path has more than one form: //, /./, or % before what needs none");
  }
  if (head.method() == http::verb::connect || head.method() == http::verb::trace) {
    return refused("this method is not passed on");
  }
  if (!values_of(head, "Upgrade").empty()) return refused("upgrades are not passed on");
  return Done{};
}

void drop_hop_headers(http::fields& fields) {
  std::vector<std::string> named;
  for (const std::string_view value : values_of(fields, "Connection")) {
    for (const auto& token :
         http::token_list{boost::beast::string_view{value.data(), value.size()}}) {
      named.emplace_back(token.data(), token.size());
    }
  }
  for (const std::string& name : named) {
    // A client could name them here to have them dropped, and the body read as another request.
    if (!boost::beast::iequals(name, "Content-Length") && !boost::beast::iequals(name, "Host")) {
      fields.erase(name);
    }
  }
  for (const field each : hop_fields) fields.erase(each);
}

void drop_own_headers(http::fields& fields) {
  fields.erase("Semel-Epoch");
  fields.erase("Semel-Attempt");
}

void add_forwarded(http::request_header<>& head, const std::string& client, bool is_tls) {
  std::string chain;
  for (const std::string_view value : values_of(head, "X-Forwarded-For")) {
    chain += std::string{value} + ", ";
  }
  head.set("X-Forwarded-For", chain + client);
  if (head.find("X-Forwarded-Proto") == head.end()) {
    head.set("X-Forwarded-Proto", is_tls ? "https" : "http");
  }
  if (head.find("X-Forwarded-Host") == head.end()) {
    head.set("X-Forwarded-Host", std::string{view(head[field::host])});
  }
}

Reply reply_of(const http::response_header<>& head, std::string body) {
  http::fields fields{head};
  drop_hop_headers(fields);
  for (const field each : {field::content_length, field::date, field::set_cookie}) {
    fields.erase(each);
  }
  Reply reply{.status = head.result_int(), .headers = {}, .body = std::move(body)};
  for (const auto& each : fields) {
    reply.headers.emplace_back(view(each.name_string()), view(each.value()));
  }
  return reply;
}

}  // namespace semel::gateway
