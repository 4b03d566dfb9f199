// Question: what do Redis and the disk itself do with the same work?
// Method:   redis-server and redis-benchmark from the package, over a Unix socket; write and
//           fdatasync. What the server says it holds is compared with what was asked.
// Compare:  with ours in the same round.
// Report:   answers a second, for a CPU second of the server; records loaded; batches synced.
#include "bench/storage/storage_peers.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "bench/engine/ours.hpp"
#include "bench/harness/keys.hpp"
#include "bench/storage/storage_redis.hpp"

namespace semel::bench {

namespace {

constexpr double benchmark_seconds_max = 180;
/// redis-benchmark draws keys from so many: few come twice.
constexpr std::uint64_t key_range = 2'000'000'000;

/// The second column of the last line: "command","requests a second",..
double rate_of(const std::string& csv) {
  const std::size_t end = csv.find_last_not_of("\r\n");
  const std::size_t line = end == std::string::npos ? end : csv.rfind('\n', end);
  const std::size_t comma = csv.find("\",\"", line == std::string::npos ? 0 : line);
  double rate = 0;
  require(comma != std::string::npos && std::sscanf(csv.c_str() + comma + 3, "%lf", &rate) == 1 &&
              rate > 0,
          "redis-benchmark reported no rate");
  return rate;
}

}  // namespace

bool redis_available() {
  return is_installed("redis-server") && is_installed("redis-benchmark");
}

std::string redis_version() {
  const std::string words = output_of({"redis-server", "--version"}, 10);
  const std::size_t begin = words.find("v=");
  return begin == std::string::npos ? words
                                    : words.substr(begin + 2, words.find(' ', begin) - begin - 2);
}

RedisFigures measure_redis_load(const RedisLoad& load) {
  // Without a rewrite of the file in between: the kindest case.
  RedisServer server{
      load.directory,
      {"--appendonly", "yes", "--appendfsync", load.sync, "--auto-aof-rewrite-percentage", "0"}};
  const double cpu_begin = server.cpu_seconds();
  const std::uint64_t begin = __rdtsc();
  const std::string csv = output_of({"redis-benchmark",
                                     "-s",
                                     RedisServer::socket_name,
                                     "-c",
                                     std::to_string(load.clients),
                                     "--threads",
                                     std::to_string(load.threads),
                                     "-P",
                                     std::to_string(load.pipeline),
                                     "-n",
                                     std::to_string(load.requests),
                                     "-r",
                                     std::to_string(key_range),
                                     "--csv",
                                     "SET",
                                     "key:__rand_int__",
                                     "v",
                                     "NX",
                                     "GET",
                                     "PX",
                                     "60000"},
                                    benchmark_seconds_max);
  const double seconds = static_cast<double>(__rdtsc() - begin) / ticks_per_ns() * 1e-9;
  const double cpu = server.cpu_seconds() - cpu_begin;
  RedisClient& client = server.client();
  const std::uint64_t records = client.number("DBSIZE");
  // Some keys are drawn twice, and redis-benchmark sends a little more than it was asked for.
  require(records >= load.requests / 100 * 98 && records <= load.requests + 4096,
          "redis-server holds another number of keys than it was given");
  const std::string persistence = client.ask("INFO persistence");
  require(persistence.find("aof_enabled:1") != std::string::npos &&
              persistence.find("aof_last_write_status:ok") != std::string::npos,
          "redis-server did not write its append-only file");
  require(client.ask("INFO errorstats").find("errorstat_") == std::string::npos,
          "redis-server answered with errors");
  const auto requests = static_cast<double>(load.requests);
  return {.rate = rate_of(csv),
          .per_cpu_second = requests / std::max(cpu, 0.01),
          .server_share = cpu / seconds};
}

double make_snapshot(const std::string& directory, std::uint64_t records) {
  constexpr std::uint64_t at_once = 1'000;
  RedisServer server{directory, {}};
  RedisClient& client = server.client();
  const std::string ttl = std::to_string(long_ttl.count());
  std::string commands;
  std::uint64_t answered = 0;
  const auto read_until = [&](std::uint64_t index) {
    for (; answered < index; ++answered) {
      require(client.reply() == "+OK", "redis-server refused a SET");
    }
  };
  for (std::uint64_t next = 0; next < records;) {
    const std::uint64_t begin = next;
    const std::uint64_t end = std::min(records, next + at_once);
    commands.clear();
    for (; next < end; ++next) {
      const Key key = key_of(next);
      const std::uint64_t value = value_of(next);
      add_command(commands, {"SET", bytes_of(key), bytes_of(value), "PX", ttl});
    }
    client.send(commands);
    read_until(begin);  // one block ahead, so that the server does not wait for us
  }
  read_until(records);
  require(client.ask("SAVE") == "+OK", "redis-server could not save its snapshot");
  struct stat status {};
  require(stat("dump.rdb", &status) == 0, "redis-server left no snapshot");
  return static_cast<double>(status.st_size);
}

double measure_snapshot_load(const std::string& directory, std::uint64_t records) {
  const std::uint64_t begin = __rdtsc();
  RedisServer server{directory, {}};
  const double seconds = static_cast<double>(__rdtsc() - begin) / ticks_per_ns() * 1e-9;
  RedisClient& client = server.client();
  require(client.number("DBSIZE") == records, "redis-server loaded another number of keys");
  for (std::uint64_t i = 0; i < records; i += records / 100 + 1) {
    const Key key = key_of(i);
    std::string command;
    add_command(command, {"GET", bytes_of(key)});
    client.send(command);
    require(number_of(client.reply()) == value_of(i), "redis-server loaded another value");
  }
  return static_cast<double>(records) / seconds;
}

double measure_bare_loop(const std::string& directory, std::size_t bytes, double seconds) {
  const std::string path = directory + "/bare";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  require(file >= 0, "no file for the bare loop");
  const std::string batch(bytes, 'b');
  const auto ticks = static_cast<std::uint64_t>(seconds * 1e9 * ticks_per_ns());
  std::uint64_t batches = 0;
  const std::uint64_t begin = __rdtsc();
  std::uint64_t passed = 0;
  for (; passed < ticks; passed = __rdtsc() - begin, ++batches) {
    require(write(file, batch.data(), bytes) == static_cast<ssize_t>(bytes),
            "the bare loop could not write");
    require(fdatasync(file) == 0, "the bare loop could not sync");
  }
  struct stat status {};
  require(
      fstat(file, &status) == 0 && static_cast<std::uint64_t>(status.st_size) == batches * bytes,
      "the bare loop left another number of bytes than it wrote");
  close(file);
  return static_cast<double>(batches) / (static_cast<double>(passed) / ticks_per_ns() * 1e-9);
}

}  // namespace semel::bench
