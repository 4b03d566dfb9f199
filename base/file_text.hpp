// Files as text. std::ifstream opens a directory, and throws where a disk fails under
// std::istreambuf_iterator.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace semel::base {

inline constexpr std::size_t file_bytes_max = std::size_t{64} << 20;

/// All bytes of a file. None: it cannot be read, is a directory, or has more than file_bytes_max
/// (/dev/zero has no end); errno says why.
/// Exceptions: std::bad_alloc.
[[nodiscard]] inline std::optional<std::string> read_file(const std::string& path) {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file{std::fopen(path.c_str(), "rbe"), close};
  if (file == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 4'096> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), file.get())) {
    text.append(part.data(), count);
    if (text.size() > file_bytes_max) {
      errno = EFBIG;
      return std::nullopt;
    }
  }
  if (std::ferror(file.get()) != 0) return std::nullopt;
  return text;
}

}  // namespace semel::base
