// Requests and responses of an admin port, from and to Beast's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <string>

#include "net/admin/admin_route.hpp"

namespace semel::net::admin {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;
using HttpResponse = boost::beast::http::response<boost::beast::http::string_body>;

/// Without the body, which may not have arrived.
[[nodiscard]] AdminRequest request_of(const HttpRequest& request,
                                      const boost::asio::ip::tcp::endpoint& peer,
                                      const boost::asio::ip::tcp::endpoint& local);

[[nodiscard]] HttpResponse response_of(AdminResponse response);

/// Why a request is refused with 400. `body_bytes_max`: of its route.
[[nodiscard]] std::string reason_for(boost::beast::error_code error, std::size_t body_bytes_max);

}  // namespace semel::net::admin
