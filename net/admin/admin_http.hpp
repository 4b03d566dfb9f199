// Requests and responses of the admin port, without sockets.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <string>
#include <vector>

#include "net/admin/admin_page.hpp"

namespace semel::net::admin {

using Request = boost::beast::http::request<boost::beast::http::string_body>;
using Response = boost::beast::http::response<boost::beast::http::string_body>;

[[nodiscard]] Response response_of(boost::beast::http::status status, std::string body);
[[nodiscard]] Response response_of(AdminResponse page);

/// Why a request is refused with 400.
[[nodiscard]] std::string reason_for(boost::beast::error_code error);

/// Whether AdminAnswers::pages is to respond.
[[nodiscard]] bool is_for_pages(const Request& request, const AdminAnswers& answers);
/// Whether a request with this header may have a body.
[[nodiscard]] bool may_have_body(const Request& request, const AdminAnswers& answers);

/// The response to a request that is not for the pages. `hosts`: AdminOptions::hosts.
[[nodiscard]] Response answer(const Request& request, const AdminAnswers& answers,
                              const std::vector<std::string>& hosts);

/// `request` for AdminAnswers::pages; its body is moved. GET, HEAD and POST only.
[[nodiscard]] AdminRequest page_request(Request& request,
                                        const boost::asio::ip::tcp::endpoint& peer,
                                        const boost::asio::ip::tcp::endpoint& local);

}  // namespace semel::net::admin
