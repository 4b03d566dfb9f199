#include "net/admin/systemd.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/assert.hpp"
#include "net/admin/escape.hpp"

namespace semel::net {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Error failure(std::string_view socket, std::string_view why) {
  return {ErrorCode::bad_option,
          "systemd: cannot notify " + std::string{socket} + ": " + std::string{why}};
}

Error failure(std::string_view socket, int error) {
  return failure(socket, std::generic_category().message(error));
}

}  // namespace

SystemdEnvironment SystemdEnvironment::read() {
  return {.notify_socket = variable("NOTIFY_SOCKET"),
          .watchdog_usec = variable("WATCHDOG_USEC"),
          .watchdog_pid = variable("WATCHDOG_PID")};
}

Status Systemd::ready(std::string_view status) const {
  return notify("READY=1\n", status);
}
Status Systemd::stopping(std::string_view status) const {
  return notify("STOPPING=1\n", status);
}
Status Systemd::status(std::string_view text) const {
  return notify("", text);
}
Status Systemd::watchdog() const {
  return notify("WATCHDOG=1\n", {});
}

std::optional<std::chrono::microseconds> Systemd::watchdog_every() const {
  const auto within = number_of(environment_.watchdog_usec);
  if (!listens() || !within || *within < 2) return std::nullopt;
  // A child process of the service inherits the variables, but systemd does not watch it.
  const auto meant = number_of(environment_.watchdog_pid);
  if (!environment_.watchdog_pid.empty() && meant != static_cast<std::uint64_t>(getpid())) {
    return std::nullopt;
  }
  const auto longest = static_cast<std::uint64_t>(std::chrono::microseconds::max().count());
  return std::chrono::microseconds{std::min(*within / 2, longest)};
}

Status Systemd::notify(std::string_view state, std::string_view status) const {
  const std::string& name = environment_.notify_socket;
  if (name.empty()) return Done{};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.front() != '/' && name.front() != '@') {
    return failure(name, "neither a path nor an abstract name");
  }
  if (name.size() >= sizeof(address.sun_path)) {
    return failure(name, "longer than " + std::to_string(sizeof(address.sun_path) - 1) + " bytes");
  }
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';
  const std::size_t bytes = offsetof(sockaddr_un, sun_path) + name.size() +
                            (name.front() == '/' ? 1 : 0);  // a path ends with a zero

  std::string message{state};
  if (!status.empty()) {
    message += "STATUS=";
    message += cut_at_character(status, systemd_status_bytes_max);
    // A line end would begin another variable.
    std::replace(message.begin() + static_cast<std::ptrdiff_t>(state.size()), message.end(), '\n',
                 ' ');
    message += '\n';
  }
  if (message.empty()) return Done{};

  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return failure(name, errno);
  ssize_t sent = 0;
  do {
    sent = sendto(socket, message.data(), message.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(bytes));
  } while (sent < 0 && errno == EINTR);
  const int error = errno;
  close(socket);
  if (sent < 0) return failure(name, error);
  return Done{};
}

}  // namespace semel::net
