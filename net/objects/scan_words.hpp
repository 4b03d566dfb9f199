// The words of SSCAN and its like, behind the key.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "net/commands/command.hpp"

namespace semel::net {

struct ObjectScanWords {
  std::optional<std::string_view> pattern{};
  std::size_t count = 10;
};

/// None: an error has been written.
[[nodiscard]] std::optional<ObjectScanWords> object_scan_words_of(Call& call);

}  // namespace semel::net
