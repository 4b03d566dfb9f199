// The server's counters, readable from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace semel::net {

/// Why a connection ended.
enum class Ended : std::uint8_t {
  by_client,
  after_reply,  ///< the session asked for it
  lost,         ///< an error of the network
  no_session,
  idle,
  request_late,
  input_limit,
  output_limit,
  handshake_late,
  handshake_failed,
  tls_failed,  ///< after the handshake
  drained,
  cut,
  killed,  ///< by another client, or over a memory limit
  no_memory,
};
inline constexpr std::size_t endings = 15;

[[nodiscard]] constexpr std::string_view name_of(Ended why) noexcept {
  constexpr std::array<std::string_view, endings> names{"client hung up",
                                                        "closed after a reply",
                                                        "connection lost",
                                                        "no session",
                                                        "idle for too long",
                                                        "request not whole in time",
                                                        "input limit reached",
                                                        "output limit reached",
                                                        "handshake not done in time",
                                                        "handshake failed",
                                                        "damaged or refused by TLS",
                                                        "drained",
                                                        "cut off",
                                                        "killed, or held too much",
                                                        "no memory for it"};
  return names[static_cast<std::size_t>(why)];
}

struct ServerStats {
  std::uint64_t accepted = 0;
  std::uint64_t clients = 0;         ///< now
  std::uint64_t rejected_full = 0;   ///< over maxclients
  std::uint64_t rejected_files = 0;  ///< no file descriptor was left for them
  std::uint64_t accept_pauses = 0;   ///< for want of file descriptors or memory
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t rounds = 0;  ///< of all loops
  std::array<std::uint64_t, endings> ended{};

  [[nodiscard]] std::uint64_t ended_by(Ended why) const noexcept {
    return ended[static_cast<std::size_t>(why)];
  }
};

/// A number with one writing thread and any readers.
class Figure {
 public:
  void add(std::uint64_t by = 1) noexcept {
    // mo: relaxed: only one thread writes; a statistic, not an order.
    value_.store(value_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic, not an order
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// The counters of one thread.
struct ConnectionCounters {
  Figure bytes_in{};
  Figure bytes_out{};
  Figure rounds{};
  std::array<Figure, endings> ended{};
};

}  // namespace semel::net
