#include "tools/semel/node/node_peers.hpp"

#include <atomic>
#include <future>
#include <string_view>

#include "tests/support/catch.hpp"

namespace semel::tool {
namespace {

/// A resolver that has no answer until release() is called.
struct SlowResolver {
  static inline std::promise<void> asked{};
  static inline std::promise<void> released{};
  static inline std::promise<void> left{};

  static int look_up(const char*, const char*, const addrinfo* hints, addrinfo**) {
    if ((hints->ai_flags & AI_NUMERICHOST) != 0) return EAI_NONAME;
    asked.set_value();
    released.get_future().wait();
    left.set_value_at_thread_exit();
    return EAI_AGAIN;
  }
};

TEST_CASE("MIGRATE: a node ends while the name of a target is looked up", "[tools][node][peers]") {
  std::promise<bool> connected;
  {
    NodePeers peers{&SlowResolver::look_up};
    REQUIRE(peers.run([&] {
      constexpr Millis an_hour{3'600'000};
      connected.set_value(
          peers.connect({.host = "slow.example", .port = "1", .idle_max = an_hour}).ok());
    }));
    SlowResolver::asked.get_future().wait();
    peers.end();
  }
  CHECK_FALSE(connected.get_future().get());
  SlowResolver::released.set_value();
  SlowResolver::left.get_future().wait();
}

TEST_CASE("MIGRATE: a look-up takes no longer than the timeout", "[tools][node][peers]") {
  static std::promise<void> released;
  static std::promise<void> left;
  NodePeers peers{[](const char*, const char*, const addrinfo* hints, addrinfo**) {
    if ((hints->ai_flags & AI_NUMERICHOST) != 0) return EAI_NONAME;
    released.get_future().wait();
    left.set_value_at_thread_exit();
    return EAI_AGAIN;
  }};
  CHECK_FALSE(peers.connect({.host = "slow.example", .port = "1", .idle_max = Millis{1}}).ok());
  released.set_value();
  left.get_future().wait();
}

TEST_CASE("MIGRATE: an address in numbers needs no look-up", "[tools][node][peers]") {
  static std::atomic<int> names{0};
  NodePeers peers{[](const char* host, const char* port, const addrinfo* hints, addrinfo** found) {
    // mo: relaxed: one thread
    if ((hints->ai_flags & AI_NUMERICHOST) == 0) names.fetch_add(1, std::memory_order_relaxed);
    return getaddrinfo(host, port, hints, found);
  }};
  // Nothing listens on port 1 of this address, and nothing has to.
  static_cast<void>(peers.connect({.host = "127.0.0.1", .port = "1", .idle_max = Millis{100}}));
  CHECK(names.load(std::memory_order_relaxed) == 0);  // mo: relaxed: as above
}

}  // namespace
}  // namespace semel::tool
