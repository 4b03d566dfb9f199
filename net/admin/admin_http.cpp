#include "net/admin/admin_http.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "net/admin/metrics.hpp"

namespace semel::net::admin {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string_view view_of(beast::string_view text) {
  return {text.data(), text.size()};
}

std::string text_of(const asio::ip::tcp::endpoint& at) {
  const std::string address = at.address().to_string();
  return (at.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(at.port());
}

bool is_local(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return address.is_loopback();
}

/// Whether it was meant for this port. The name of a page that somebody else serves may be turned
/// to this machine's address (DNS rebinding): then a browser sends its requests here, as to the
/// page's own origin, with that name as Host. Addresses are no names.
bool is_for_this_port(const Request& request, const std::vector<std::string>& hosts) {
  if (request.count(http::field::host) != 1) return false;
  std::string_view host = view_of(request[http::field::host]);
  const std::size_t last = host.find_last_not_of("0123456789");
  if (last != std::string_view::npos && host[last] == ':') host = host.substr(0, last);
  const auto is_host = [&](std::string_view known) {
    return beast::iequals({known.data(), known.size()}, {host.data(), host.size()});
  };
  if (is_host("localhost") || std::any_of(hosts.begin(), hosts.end(), is_host)) return true;
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  beast::error_code unknown;
  const auto address = asio::ip::make_address(std::string{host}, unknown);
  return !unknown && address.is_v6() == has_brackets;
}

}  // namespace

Response response_of(http::status status, std::string body) {
  Response response{status, 11};
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  response.set(http::field::cache_control, "no-store");
  response.body() = std::move(body);
  return response;
}

Response response_of(AdminResponse page) {
  Response response = response_of(http::int_to_status(page.status), std::move(page.body));
  response.set(http::field::content_type, page.content_type);
  for (const auto& [name, value] : page.headers) response.set(name, value);
  return response;
}

std::string reason_for(beast::error_code error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return "the request's header exceeds " + std::to_string(admin_limits::header_bytes_max) +
           " bytes\n";
  }
  if (error == http::error::body_limit) {
    return "the request's body exceeds " + std::to_string(admin_limits::body_bytes_max) +
           " bytes\n";
  }
  if (error == http::error::unexpected_body) return "a request has no body here\n";
  return "not an HTTP request: " + error.message() + "\n";
}

bool is_for_pages(const Request& request, const AdminAnswers& answers) {
  if (!answers.pages) return false;
  const std::string_view target = view_of(request.target());
  if (!target.starts_with(admin_pages)) return false;
  const std::string_view rest = target.substr(admin_pages.size());
  return rest.empty() || rest.front() == '/' || rest.front() == '?';
}

bool may_have_body(const Request& request, const AdminAnswers& answers) {
  return request.method() == http::verb::post && is_for_pages(request, answers);
}

Response answer(const Request& request, const AdminAnswers& answers,
                const std::vector<std::string>& hosts) {
  const std::string_view target = view_of(request.target());
  const std::string_view path = target.substr(0, target.find('?'));
  const bool is_page = is_for_pages(request, answers);
  if (!is_page && path != "/metrics" && path != "/livez" && path != "/readyz") {
    return response_of(http::status::not_found, "there is /metrics, /livez and /readyz\n");
  }
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    Response refused = response_of(http::status::method_not_allowed,
                                   is_page ? "GET, HEAD or POST\n" : "GET or HEAD\n");
    refused.set(http::field::allow, is_page ? "GET, HEAD, POST" : "GET, HEAD");
    return refused;
  }
  if (path == "/livez") return response_of(http::status::ok, "ok\n");
  const bool is_meant = is_for_this_port(request, hosts);
  if (path == "/readyz") {
    const Status ready = answers.ready();
    if (ready) return response_of(http::status::ok, "ok\n");
    return response_of(http::status::service_unavailable,
                       is_meant ? ready.error().detail + "\n" : "not ready\n");
  }
  if (!is_meant) {
    return response_of(http::status::forbidden,
                       "Host has to be an address, localhost or one of admin-hosts\n");
  }
  Response response = response_of(http::status::ok, answers.metrics());
  response.set(http::field::content_type,
               beast::string_view{metrics_content_type.data(), metrics_content_type.size()});
  return response;
}

AdminRequest page_request(Request& request, const asio::ip::tcp::endpoint& peer,
                          const asio::ip::tcp::endpoint& local) {
  AdminRequest page;
  page.is_post = request.method() == http::verb::post;
  const std::string_view target = view_of(request.target());
  const std::size_t mark = target.find('?');
  page.path = target.substr(0, mark);
  if (mark != std::string_view::npos) page.query = target.substr(mark + 1);
  page.peer = text_of(peer);
  page.peer_is_local = is_local(peer.address());
  page.local_port = local.port();
  struct Header {
    std::string_view name;
    std::string* value;
  };
  const std::array headers{
      Header{"Host", &page.host},
      Header{"Origin", &page.origin},
      Header{"Cookie", &page.cookie},
      Header{"Content-Type", &page.content_type},
      Header{"X-Semel-Csrf", &page.csrf_token},
      Header{"Sec-Fetch-Site", &page.fetch_site},
  };
  for (const Header& header : headers) {
    const beast::string_view name{header.name.data(), header.name.size()};
    if (request.count(name) > 1) page.repeated_header = header.name;
    *header.value = view_of(request[name]);
  }
  page.body = std::move(request.body());
  return page;
}

}  // namespace semel::net::admin
