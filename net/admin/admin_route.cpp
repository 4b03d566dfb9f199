#include "net/admin/admin_route.hpp"

#include "net/admin/metrics.hpp"

namespace semel::net {

bool AdminRoute::allows(const AdminRequest& request) const noexcept {
  if (request.is_post()) return methods != Methods::read;
  return request.is_read() && methods != Methods::post;
}

bool AdminRoute::serves(std::string_view wanted) const noexcept {
  if (!wanted.starts_with(path)) return false;
  const std::string_view rest = wanted.substr(path.size());
  return rest.empty() || (has_below && rest.front() == '/');
}

AdminResponse text_response(unsigned status, std::string text) {
  return {.status = status, .body = std::move(text)};
}

std::vector<AdminRoute> common_routes(std::function<std::string()> metrics,
                                      std::function<Status()> ready) {
  using Access = AdminRoute::Access;
  const auto live = [](const AdminRequest&, const AdminRespond& respond) {
    respond(text_response(200, "ok\n"));
  };
  const auto readiness = [ready = std::move(ready)](const AdminRequest& request,
                                                    const AdminRespond& respond) {
    const Status status = ready();
    if (status) return respond(text_response(200, "ok\n"));
    respond(text_response(503, request.is_admitted ? status.error().detail + "\n" : "not ready\n"));
  };
  const auto figures = [metrics = std::move(metrics)](const AdminRequest&,
                                                      const AdminRespond& respond) {
    respond({.content_type = std::string{metrics_content_type}, .body = metrics()});
  };
  return {{.path = "/metrics", .handle = figures},
          {.path = "/livez", .access = Access::open, .handle = live},
          {.path = "/healthz", .access = Access::open, .handle = live},
          {.path = "/readyz", .access = Access::open, .handle = readiness}};
}

}  // namespace semel::net
