// Responses of the console, with headers that restrict what a browser does with them.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "net/admin/admin_route.hpp"
#include "semel/local_redis.hpp"

namespace semel::net {

[[nodiscard]] AdminResponse json_response(unsigned status, const boost::json::value& value);
/// {"error": word, "message": text}
[[nodiscard]] AdminResponse error_response(unsigned status, std::string_view word,
                                           std::string_view message);
/// The same for the error reply of a command.
[[nodiscard]] AdminResponse error_response(const Reply& error, std::string_view leader);
/// The response if the commands were not answered in time.
[[nodiscard]] AdminResponse unknown_outcome_response();
/// A file of the page. Status 404: there is none at `path`.
[[nodiscard]] AdminResponse file_response(std::string_view path);

}  // namespace semel::net
