// What is asked of every map in the comparison, ours and the peers', and what it answers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/histogram.hpp"

namespace semel::bench {

/// W1 new keys from empty, with growth; W2 repeats, uniform; W3 90 % repeats, 10 % new;
/// W4 repeats, zipf 0.99; W5 claim + complete + release of new keys.
inline constexpr std::size_t workload_count = 5;

struct Setup {
  std::uint64_t records = 10'000'000;      ///< of W1; the others work on them
  std::uint64_t operations = 5'000'000;    ///< of each of W2..W5, all threads together
  unsigned threads = 2;                    ///< pinned to cores 0, 1, ..
  std::size_t workloads = workload_count;  ///< the first so many
  std::span<const std::uint32_t> zipf{};   ///< indices for W4, as many as operations
};

struct Throughput {
  std::array<double, workload_count> rate{};  ///< operations a second
  double bytes_per_record = 0;                ///< resident, after W1
  double bytes_per_record_peak = 0;           ///< most resident during W1
};

struct Contestant {
  std::string name;
  Throughput (*throughput)(const Setup&) = nullptr;  ///< none: not built in
  Tail (*growth_tail)(const Setup&) = nullptr;       ///< W1 with every single claim timed
  [[nodiscard]] bool available() const noexcept { return throughput != nullptr; }
};

/// Each with 32-byte keys and values in the record: the kindest case for a peer.
[[nodiscard]] Contestant libcuckoo();
[[nodiscard]] Contestant onetbb();
[[nodiscard]] Contestant urcu();
[[nodiscard]] Contestant boost_flat_shards();
[[nodiscard]] Contestant std_shards();
[[nodiscard]] Contestant boost_concurrent();
/// The same with keys of any length, which is what a user has.
[[nodiscard]] Contestant libcuckoo_strings();
[[nodiscard]] Contestant onetbb_strings();
[[nodiscard]] Contestant boost_flat_shards_strings();
[[nodiscard]] Contestant std_shards_strings();
[[nodiscard]] Contestant boost_concurrent_strings();

/// All peers with 32-byte keys, at the places that Peer names.
enum Peer : std::size_t {
  peer_libcuckoo,
  peer_flat_shards,
  peer_onetbb,
  peer_urcu,
  peer_std_shards,
  peer_concurrent
};
[[nodiscard]] inline std::vector<Contestant> inline_peers() {
  return {libcuckoo(), boost_flat_shards(), onetbb(), urcu(), std_shards(), boost_concurrent()};
}

/// The engine. It has one kind of key, so it stands in both tables with the same code.
[[nodiscard]] Contestant semel_store();

}  // namespace semel::bench
