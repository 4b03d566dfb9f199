#include "net/console/console_reply.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "net/console/console_files.hpp"
#include "net/console/console_json.hpp"
#include "net/console/key_text.hpp"

namespace semel::net {
namespace {

namespace json = boost::json;

/// Source: https://www.w3.org/TR/CSP3/, https://owasp.org/www-project-secure-headers/
AdminResponse with_headers(AdminResponse response) {
  response.headers = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
       "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
       "require-trusted-types-for 'script'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
      {"Cache-Control", "no-store"},
  };
  return response;
}

}  // namespace

AdminResponse json_response(unsigned status, const json::value& value) {
  return with_headers({.status = status,
                       .content_type = "application/json",
                       .body = json::serialize(value),
                       .headers = {}});
}

AdminResponse error_response(unsigned status, std::string_view word, std::string_view message) {
  return json_response(status,
                       json::object{{"error", json_text(word)}, {"message", json_text(message)}});
}

AdminResponse error_response(const Reply& error, std::string_view leader) {
  const std::string_view text = error.text;
  if (text.starts_with("NOPERM") || text.starts_with("NOAUTH")) {
    return error_response(403, "no_permission", key_text(text));
  }
  if (text.starts_with("MOVED") || text.starts_with("CLUSTERDOWN")) {
    return json_response(409, json::object{{"error", "not_leader"},
                                           {"message", "this node does not lead its group"},
                                           {"leader", json_text(leader)}});
  }
  if (text.starts_with("TRYAGAIN")) {
    return error_response(503, "outcome_unknown", key_text(text));
  }
  return error_response(409, "command_failed", key_text(text));
}

AdminResponse unknown_outcome_response() {
  return error_response(503, "outcome_unknown",
                        "the node did not answer in time: what became of it is not known. Log in "
                        "again and look the key up");
}

AdminResponse file_response(std::string_view path) {
  const auto files = console_files();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const ConsoleFile& file) { return file.path == path; });
  if (found == files.end()) return error_response(404, "not_found", "there is no such page");
  return with_headers({.status = 200,
                       .content_type = std::string{found->type},
                       .body = std::string{found->bytes},
                       .headers = {}});
}

}  // namespace semel::net
