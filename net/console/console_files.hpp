// The files of the page, as they are in net/console/page; a step of the build embeds them.
#pragma once

#include <span>
#include <string_view>

namespace semel::net {

struct ConsoleFile {
  std::string_view path;  ///< "/console/console.js"
  std::string_view type;
  std::string_view bytes;
};

[[nodiscard]] std::span<const ConsoleFile> console_files() noexcept;

}  // namespace semel::net
