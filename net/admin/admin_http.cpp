#include "net/admin/admin_http.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace semel::net::admin {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string_view view_of(beast::string_view text) {
  return {text.data(), text.size()};
}

bool is_local(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return address.is_loopback();
}

}  // namespace

AdminRequest request_of(const HttpRequest& request, const asio::ip::tcp::endpoint& peer,
                        const asio::ip::tcp::endpoint& local) {
  AdminRequest made;
  made.method = view_of(request.method_string());
  const std::string_view target = view_of(request.target());
  const std::size_t mark = target.find('?');
  made.path = target.substr(0, mark);
  if (mark != std::string_view::npos) made.query = target.substr(mark + 1);
  made.peer_address = peer.address().to_string();
  made.peer = (peer.address().is_v6() ? "[" + made.peer_address + "]" : made.peer_address) + ":" +
              std::to_string(peer.port());
  made.peer_is_local = is_local(peer.address());
  made.local_port = local.port();
  struct Header {
    std::string_view name;
    std::string* value;
  };
  const std::array headers{
      Header{"Host", &made.host},
      Header{"Origin", &made.origin},
      Header{"Cookie", &made.cookie},
      Header{"Content-Type", &made.content_type},
      Header{"X-Semel-Csrf", &made.csrf_token},
      Header{"Sec-Fetch-Site", &made.fetch_site},
      Header{"Authorization", &made.authorization},
      Header{"Semel-Admin", &made.semel_admin},
  };
  for (const Header& header : headers) {
    const beast::string_view name{header.name.data(), header.name.size()};
    if (request.count(name) > 1) made.repeated_header = header.name;
    *header.value = view_of(request[name]);
  }
  return made;
}

HttpResponse response_of(AdminResponse response) {
  HttpResponse made{http::int_to_status(response.status), 11};
  made.set(http::field::cache_control, "no-store");
  made.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) made.set(name, value);
  made.body() = std::move(response.body);
  return made;
}

std::string reason_for(beast::error_code error, std::size_t body_bytes_max) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return "the request's header exceeds " + std::to_string(admin_limits::header_bytes_max) +
           " bytes\n";
  }
  if (error == http::error::body_limit) {
    return "the request's body exceeds " + std::to_string(body_bytes_max) + " bytes\n";
  }
  if (error == http::error::unexpected_body) return "a request has no body here\n";
  return "not an HTTP request: " + error.message() + "\n";
}

}  // namespace semel::net::admin
