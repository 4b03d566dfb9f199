// The limits of one script.
#pragma once

#include <cstddef>
#include <cstdint>

namespace semel::lua {

struct Bounds {
  std::uint64_t steps = 500'000'000;                 ///< in the virtual machine and in libraries
  std::size_t memory_bytes = std::size_t{64} << 20;  ///< of the whole interpreter, at any time
  std::uint64_t allocated_bytes = std::uint64_t{16} << 30;  ///< by one script, in total
  std::size_t reply_bytes = std::size_t{64} << 20;          ///< of one script's reply
  std::size_t reply_depth = 128;                            ///< of nested arrays
};

}  // namespace semel::lua
