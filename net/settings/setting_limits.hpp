// Limits of settings that other rooms share.
#pragma once

#include <cstddef>

namespace semel::net {

/// The largest value of io-threads. The server and the heartbeats of a node are sized by it.
inline constexpr std::size_t io_threads_max = 64;
/// The largest value of slowlog-max-len.
inline constexpr std::size_t slowlog_entries_max = std::size_t{1} << 20;
/// The largest value of acllog-max-len. An entry has up to 3 KiB.
inline constexpr std::size_t acllog_entries_max = 10'000;

}  // namespace semel::net
