// What a server asks of its process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace semel::net {

/// Raises the number of files that this process may have open to `wanted`, or as far as the system
/// lets it; never lowers it. What it is afterwards.
[[nodiscard]] std::size_t raise_file_limit(std::size_t wanted);

/// Whether the machine has this address (IPv4 or IPv6, as numbers) as its own.
[[nodiscard]] bool can_listen_on(const std::string& address);

/// Has this process sent SIGTERM when `parent`, the process that started it, ends. False: it has
/// ended already. To be called by the child itself, on its main thread.
[[nodiscard]] bool exit_with_parent(pid_t parent);

/// Writes `text` to `path` so that whoever sees the file sees all of it. None: done.
[[nodiscard]] std::optional<std::string> write_ready_file(const std::string& path,
                                                          std::string_view text);
/// The same, and it is on the disk when this returns.
[[nodiscard]] std::optional<std::string> replace_file(const std::string& path,
                                                      std::string_view text);

}  // namespace semel::net
