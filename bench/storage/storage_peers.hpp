// What the storage is set beside: Redis 7.0 with its append-only file or its snapshot, and a loop
// that appends and syncs, which no log on that disk can be quicker than.
#pragma once

#include <cstdint>
#include <string>

namespace semel::bench {

[[nodiscard]] bool redis_available();
/// "7.0.15", or what the program says.
[[nodiscard]] std::string redis_version();

/// `SET key:__rand_int__ v NX GET PX 60000` by redis-benchmark.
struct RedisLoad {
  std::string directory;
  const char* sync;  ///< appendfsync: everysec or always
  unsigned clients;
  unsigned threads;  ///< of redis-benchmark
  unsigned pipeline;
  std::uint64_t requests;
};
struct RedisFigures {
  double rate = 0;            ///< answers a second, as redis-benchmark reports
  double per_cpu_second = 0;  ///< answers for a second of the server's CPU time
  double server_share = 0;    ///< of one processor, that the server was busy
};
[[nodiscard]] RedisFigures measure_redis_load(const RedisLoad& load);

/// Makes dump.rdb with the records of a Load of SETs, from 0 on, with the same ttl. Its bytes.
[[nodiscard]] double make_snapshot(const std::string& directory, std::uint64_t records);
/// From the start of a redis-server on that directory until it answers. Records a second.
[[nodiscard]] double measure_snapshot_load(const std::string& directory, std::uint64_t records);

/// Batches of `bytes` a second that one thread appends to a new file, each followed by fdatasync.
[[nodiscard]] double measure_bare_loop(const std::string& directory, std::size_t bytes,
                                       double seconds);

}  // namespace semel::bench
