// Words: the test holds the socket that systemd would hold, and reads the messages.
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include "tests/support/catch.hpp"

#include "net/admin/systemd.hpp"

namespace semel::tests {
namespace {

using net::Systemd;
using net::SystemdEnvironment;

class Listener {
 public:
  /// A path, or a name that begins with '@'.
  explicit Listener(const std::string& name)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(name.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() +
                                              (name.front() == '@' ? 0 : 1));
    REQUIRE(bind(socket_, reinterpret_cast<const sockaddr*>(&address), bytes) == 0);
  }
  ~Listener() { close(socket_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// What is there already; empty: nothing.
  [[nodiscard]] std::string received() const {
    char buffer[4096];
    const ssize_t bytes = recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
    return {buffer, bytes < 0 ? 0 : static_cast<std::size_t>(bytes)};
  }

 private:
  int socket_;
};

std::string folder_of_own() {
  std::string name = (std::filesystem::temp_directory_path() / "semel-notify-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()) != nullptr);
  return name;
}

std::optional<std::chrono::microseconds> every(const std::string& usec, const std::string& pid) {
  return Systemd{{.notify_socket = "/x", .watchdog_usec = usec, .watchdog_pid = pid}}
      .watchdog_every();
}

}  // namespace

TEST_CASE("systemd: it is notified, at a path or an abstract name", "[net][systemd]") {
  const std::string folder = folder_of_own();
  const std::string name =
      GENERATE_COPY(folder + "/notify", "@semel-test-" + std::to_string(getpid()) + folder);
  {
    const Listener listener{name};
    const Systemd systemd{{.notify_socket = name}};
    CHECK(systemd.listens());
    CHECK(systemd.ready().ok());
    CHECK(listener.received() == "READY=1\n");
    CHECK(systemd.ready("serving on 6379").ok());
    CHECK(listener.received() == "READY=1\nSTATUS=serving on 6379\n");
    CHECK(systemd.status("recovering, 40 %").ok());
    CHECK(listener.received() == "STATUS=recovering, 40 %\n");
    CHECK(systemd.watchdog().ok());
    CHECK(listener.received() == "WATCHDOG=1\n");
    CHECK(systemd.stopping("draining").ok());
    CHECK(listener.received() == "STOPPING=1\nSTATUS=draining\n");
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("systemd: a status is one line with a bound", "[net][systemd]") {
  const std::string name = "@semel-test-status-" + std::to_string(getpid());
  const Listener listener{name};
  const Systemd systemd{{.notify_socket = name}};
  CHECK(systemd.status("a\nMAINPID=1\nb").ok());
  CHECK(listener.received() == "STATUS=a MAINPID=1 b\n");
  CHECK(systemd.status(std::string(2'000, 'x')).ok());
  CHECK(listener.received() == "STATUS=" + std::string(net::systemd_status_bytes_max, 'x') + "\n");
  CHECK(systemd.status("").ok());
  CHECK(listener.received().empty());
}

TEST_CASE("systemd: without its socket nothing is sent, and that is not an error",
          "[net][systemd]") {
  const Systemd systemd{SystemdEnvironment{.watchdog_usec = "1000000"}};
  CHECK_FALSE(systemd.listens());
  CHECK(systemd.ready("x").ok());
  CHECK(systemd.watchdog().ok());
  CHECK_FALSE(systemd.watchdog_every());
}

TEST_CASE("systemd: a message that cannot be sent is an error with its reason", "[net][systemd]") {
  const auto failure = [](const std::string& name) {
    return Systemd{{.notify_socket = name}}.ready().error().detail;
  };
  CHECK(failure("/nowhere/notify") ==
        "systemd: cannot notify /nowhere/notify: No such file or directory");
  CHECK(failure("relative") ==
        "systemd: cannot notify relative: neither a path nor an abstract name");
  const std::string too_long = "/" + std::string(107, 'x');
  CHECK(failure(too_long) == "systemd: cannot notify " + too_long + ": longer than 107 bytes");
  const std::string longest = "/" + std::string(106, 'x');
  CHECK(failure(longest) == "systemd: cannot notify " + longest + ": No such file or directory");
}

TEST_CASE("systemd: the watchdog is fed twice within its time, by whom it means",
          "[net][systemd]") {
  using std::chrono::microseconds;
  const std::string own = std::to_string(getpid());
  CHECK(every("30000000", "") == microseconds{15'000'000});
  CHECK(every("30000000", own) == microseconds{15'000'000});
  CHECK_FALSE(every("30000000", std::to_string(getpid() + 1)));
  CHECK_FALSE(every("30000000", "x"));
  CHECK_FALSE(every("", own));
  CHECK_FALSE(every("0", own));
  CHECK_FALSE(every("1", own));
  CHECK(every("2", own) == microseconds{1});
  CHECK_FALSE(every("soon", own));
  CHECK_FALSE(every("-5", own));
}

TEST_CASE("systemd: its variables are read from the environment", "[net][systemd]") {
  REQUIRE(setenv("NOTIFY_SOCKET", "/run/x", 1) == 0);
  REQUIRE(setenv("WATCHDOG_USEC", "7", 1) == 0);
  REQUIRE(unsetenv("WATCHDOG_PID") == 0);
  const SystemdEnvironment environment = SystemdEnvironment::read();
  REQUIRE(unsetenv("NOTIFY_SOCKET") == 0);
  REQUIRE(unsetenv("WATCHDOG_USEC") == 0);
  CHECK(environment.notify_socket == "/run/x");
  CHECK(environment.watchdog_usec == "7");
  CHECK(environment.watchdog_pid.empty());
}

}  // namespace semel::tests
