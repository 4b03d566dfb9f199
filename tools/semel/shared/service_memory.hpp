// The heap of a program that serves.
#pragma once

#include <malloc.h>

namespace semel::tool {

/// A large buffer of a connection goes back to the system as soon as it is let go of. Left to
/// itself glibc keeps what has the size of one that was freed before. To be called before the first
/// thread is made.
inline void give_back_large_buffers() {
  constexpr int large_bytes = 128 << 10;
  static_cast<void>(mallopt(M_MMAP_THRESHOLD, large_bytes));
}

}  // namespace semel::tool
