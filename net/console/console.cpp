#include "net/console/console.hpp"

#include <string>
#include <utility>

#include "net/console/console_impl.hpp"
#include "net/console/console_limits.hpp"
#include "net/console/request_guard.hpp"

namespace semel::net {

AdminRoute console_route(std::function<void(AdminRequest, AdminRespond)> respond) {
  return {.path = "/console",
          .has_below = true,
          .methods = AdminRoute::Methods::read_and_post,
          .access = AdminRoute::Access::own,
          .body_bytes_max = console_limits::body_bytes_max,
          .handle = std::move(respond)};
}

Status Console::check(const ConsoleOptions& options) {
  if (options.origins.size() > console_limits::origins_max) {
    return Error{ErrorCode::bad_option,
                 "console-origin: " + std::to_string(options.origins.size()) +
                     " origins; there may be " + std::to_string(console_limits::origins_max)};
  }
  for (const std::string& origin : options.origins) SEMEL_CHECK(check_console_origin(origin));
  return Done{};
}

Console::Console(Node& node, const Clock& clock, std::shared_ptr<AdminThread> thread,
                 const ConsoleOptions& options, ConsoleSources sources)
    : impl_(std::make_shared<ConsoleImpl>(node, clock, std::move(thread), options,
                                          std::move(sources))) {}

Console::~Console() {
  close();
}

void Console::close() {
  impl_->close();
}

void Console::respond(AdminRequest request, AdminRespond then) {
  impl_->respond(std::move(request), std::move(then));
}

void Console::tick() {
  impl_->tick();
}

}  // namespace semel::net
