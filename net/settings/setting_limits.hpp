// Limits of settings that other rooms share.
#pragma once

#include <cstddef>

namespace semel::net {

/// The largest value of io-threads. The server and the heartbeats of a node are sized by it.
inline constexpr std::size_t io_threads_max = 64;

}  // namespace semel::net
