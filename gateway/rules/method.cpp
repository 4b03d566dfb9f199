#include "gateway/rules/method.hpp"

#include <algorithm>
#include <array>

namespace semel::gateway {
namespace {

constexpr std::array<std::string_view, 37> methods{"ACL",
                                                   "BASELINE-CONTROL",
                                                   "BIND",
                                                   "CHECKIN",
                                                   "CHECKOUT",
                                                   "COPY",
                                                   "DELETE",
                                                   "GET",
                                                   "HEAD",
                                                   "LABEL",
                                                   "LINK",
                                                   "LOCK",
                                                   "MERGE",
                                                   "MKACTIVITY",
                                                   "MKCALENDAR",
                                                   "MKCOL",
                                                   "MKREDIRECTREF",
                                                   "MKWORKSPACE",
                                                   "MOVE",
                                                   "OPTIONS",
                                                   "ORDERPATCH",
                                                   "PATCH",
                                                   "POST",
                                                   "PROPFIND",
                                                   "PROPPATCH",
                                                   "PUT",
                                                   "QUERY",
                                                   "REBIND",
                                                   "REPORT",
                                                   "SEARCH",
                                                   "UNBIND",
                                                   "UNCHECKOUT",
                                                   "UNLINK",
                                                   "UNLOCK",
                                                   "UPDATE",
                                                   "UPDATEREDIRECTREF",
                                                   "VERSION-CONTROL"};

}  // namespace

std::span<const std::string_view> served_methods() noexcept {
  return methods;
}

bool is_served_method(std::string_view method) noexcept {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

}  // namespace semel::gateway
