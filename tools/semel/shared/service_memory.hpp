// The heap of a serving program.
#pragma once

#include <malloc.h>

namespace semel::tool {

/// Makes glibc return a connection's large buffer to the system as soon as it is freed. By default
/// glibc keeps a block of a size that was freed before. Call it before the first thread.
inline void give_back_large_buffers() {
  constexpr int large_bytes = 128 << 10;
  static_cast<void>(mallopt(M_MMAP_THRESHOLD, large_bytes));
}

}  // namespace semel::tool
