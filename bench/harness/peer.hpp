// What the peers share: the record, the hash, the clock. All have the same, and the same as ours.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/harness/keys.hpp"
#include "bench/harness/workloads.hpp"
#include "semel/clock.hpp"

namespace semel::bench {

inline constexpr std::int64_t peer_ttl_ms = 3'600'000;

struct PeerRecord {
  std::uint64_t value = 0;
  std::int64_t due = 0;
};

/// The key as a peer stores it, seen from the key as it is asked for.
inline const Key& lookup_form(const Key& key, const Key*) noexcept {
  return key;
}
inline std::string_view lookup_form(const Key& key, const std::string*) noexcept {
  return bytes_of(key);
}
template <class Stored>
decltype(auto) asked(const Key& key) noexcept {
  return lookup_form(key, static_cast<const Stored*>(nullptr));
}

struct PeerHash {
  using is_transparent = void;
  using is_avalanching = void;  // spares Boost's map a second mixing
  static constexpr std::uint64_t seed = 0x7f4a'7c15'9e37'79b9;
  std::size_t operator()(const Key& key) const noexcept {
    return XXH3_64bits_withSeed(key.data(), sizeof(key), seed);
  }
  std::size_t operator()(std::string_view key) const noexcept {
    return XXH3_64bits_withSeed(key.data(), key.size(), seed);
  }
};

struct PeerEqual {
  using is_transparent = void;
  bool operator()(const Key& one, const Key& other) const noexcept { return one == other; }
  bool operator()(std::string_view one, std::string_view other) const noexcept {
    return one == other;
  }
};

/// Milliseconds for one operation, from the same clock as the engine's.
class PeerClock {
 public:
  [[nodiscard]] std::int64_t now() const noexcept {
    return clock_.now().time_since_epoch().count();
  }

 private:
  const Clock& clock_ = bench_clock();
};

/// Grants an ended record anew, or says what lives there.
inline Claimed claim_existing(PeerRecord& record, std::uint64_t value, std::int64_t now) noexcept {
  if (record.due > now) return {.granted = false, .previous = record.value};
  record = {.value = value, .due = now + peer_ttl_ms};
  return {.granted = true};
}

template <class Map>
struct NoScope {
  explicit NoScope(Map&) noexcept {}
};

}  // namespace semel::bench
