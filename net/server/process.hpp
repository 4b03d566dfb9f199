// The process of a server: its limits, addresses, parent and files.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "semel/result.hpp"

namespace semel::net {

/// Raises the number of files that this process may have open to `wanted`, or as far as the system
/// allows; never lowers it. Returns the new limit.
[[nodiscard]] std::size_t raise_file_limit(std::size_t wanted);

/// Whether the machine has this address (IPv4 or IPv6, as numbers) as its own.
[[nodiscard]] bool can_listen_on(const std::string& address);

/// Has this process sent SIGTERM when `parent`, the process that started it, ends. False: it has
/// ended already. To be called by the child itself, on its main thread.
[[nodiscard]] bool exit_with_parent(pid_t parent);

/// Replaces the file at `path` by `text` in one step: a reader never sees part of it.
[[nodiscard]] Status write_ready_file(const std::string& path, std::string_view text);
/// Removes the file of an earlier process, which would announce this one before it serves. No file
/// is no error.
[[nodiscard]] Status remove_old_ready_file(const std::string& path);
/// Removes the file if it holds `text`: another process may have written its own since.
void remove_own_ready_file(const std::string& path, std::string_view text);
/// As write_ready_file(), and the file is on the disk when this returns.
[[nodiscard]] Status replace_file(const std::string& path, std::string_view text);

}  // namespace semel::net
