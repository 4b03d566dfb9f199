#include "net/server/process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/file_text.hpp"
#include "net/server/descriptor.hpp"

namespace semel::net {

std::size_t raise_file_limit(std::size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  rlimit better{.rlim_cur = wanted, .rlim_max = std::max<rlim_t>(limit.rlim_max, wanted)};
  if (setrlimit(RLIMIT_NOFILE, &better) == 0) return better.rlim_cur;
  // Only root may raise the hard limit.
  better = {.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted), .rlim_max = limit.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &better) == 0 ? better.rlim_cur : limit.rlim_cur;
}

bool can_listen_on(const std::string& address) {
  sockaddr_in four{};
  sockaddr_in6 six{};
  four.sin_family = AF_INET;
  six.sin6_family = AF_INET6;
  const bool is_four = inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1;
  if (!is_four && inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) != 1) return false;
  const int probe = socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  // Port 0 is free wherever the address is one of the machine's.
  const bool bound = is_four
                         ? bind(probe, reinterpret_cast<const sockaddr*>(&four), sizeof four) == 0
                         : bind(probe, reinterpret_cast<const sockaddr*>(&six), sizeof six) == 0;
  close(probe);
  return bound;
}

bool exit_with_parent(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return false;
  return getppid() == parent;  // it may have ended before the call above
}

namespace {

Status replace(const std::string& path, std::string_view text, bool durably) {
  const std::string fresh = path + '.' + std::to_string(getpid());
  const auto refused = [&] {
    Error error{ErrorCode::storage_failed, "'" + path + "': " + std::strerror(errno)};
    ::unlink(fresh.c_str());
    return error;
  };
  Descriptor file{::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (!file) return refused();
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return refused();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (durably && ::fsync(file.get()) != 0) return refused();
  file.reset();
  if (::rename(fresh.c_str(), path.c_str()) != 0) return refused();
  if (!durably) return Done{};
  const std::string folder = std::filesystem::path{path}.parent_path().string();
  Descriptor directory{
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!directory || ::fsync(directory.get()) != 0) return refused();
  return Done{};
}

}  // namespace

Status write_ready_file(const std::string& path, std::string_view text) {
  const Status written = replace(path, text, false);
  if (!written) return Error{written.error().code, "ready file " + written.error().detail};
  return Done{};
}

Status remove_old_ready_file(const std::string& path) {
  const auto refused = [&path](const char* why) {
    return Error{ErrorCode::storage_failed, "ready file '" + path + "': " + why};
  };
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0) {
    return errno == ENOENT ? Status{Done{}} : refused(std::strerror(errno));
  }
  // Root could remove a device.
  if (!S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode)) return refused("is not a regular file");
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Done{};
  return refused(std::strerror(errno));
}

void remove_own_ready_file(const std::string& path, std::string_view text) {
  if (base::read_file(path) == text) ::unlink(path.c_str());
}

Status replace_file(const std::string& path, std::string_view text) {
  return replace(path, text, true);
}

}  // namespace semel::net
