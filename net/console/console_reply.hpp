// Responses of the console: headers that keep a browser from doing more with them than it should.
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
/// The same for an error that a command answered.
[[nodiscard]] AdminResponse error_response(const Reply& error, std::string_view leader);
/// Commands were not answered in time.
[[nodiscard]] AdminResponse unknown_outcome_response();
/// A file of the page. Status 404: there is none at `path`.
[[nodiscard]] AdminResponse file_response(std::string_view path);

}  // namespace semel::net
