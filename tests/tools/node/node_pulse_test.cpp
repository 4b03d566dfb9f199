// Whether the threads of a node go round.
#include <chrono>
#include "tests/support/catch.hpp"

#include "tools/semel/node/node_pulse.hpp"

namespace semel::tool {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("pulse: a thread that was never there is not missed", "[tools][pulse][attack][fault-6]") {
  const Pulse pulse;
  CHECK(pulse.check(Pulse::Time{seconds{1'000}}, seconds{1}).ok());
}

TEST_CASE("pulse: one silent thread is enough, and the one silent longest is named",
          "[tools][pulse][attack][fault-6]") {
  Pulse pulse;
  const Pulse::Time begin{seconds{100}};
  pulse.beat(0, begin);
  pulse.beat(2, begin + seconds{1});
  pulse.beat(Pulse::ticker, begin + seconds{4});
  CHECK(pulse.check(begin + seconds{5}, seconds{5}).ok());
  CHECK(pulse.check(begin + seconds{5} + milliseconds{1}, seconds{5}).error().detail ==
        "io thread 0 has not answered for 5.0 s");
  CHECK(pulse.check(begin + seconds{8}, seconds{5}).error().detail ==
        "io thread 0 has not answered for 8.0 s");
  pulse.beat(0, begin + seconds{8});
  CHECK(pulse.check(begin + seconds{8}, seconds{5}).error().detail ==
        "io thread 2 has not answered for 7.0 s");
  pulse.beat(2, begin + seconds{9});
  CHECK(pulse.check(begin + seconds{10}, seconds{5}).error().detail ==
        "the ticker has not answered for 6.0 s");
}

TEST_CASE("pulse: the first moment of a clock is a beat, too", "[tools][pulse][attack][fault-6]") {
  Pulse pulse;
  pulse.beat(1, Pulse::Time{});
  CHECK(pulse.check(Pulse::Time{seconds{6}}, seconds{5}).error().detail ==
        "io thread 1 has not answered for 6.0 s");
}

}  // namespace semel::tool
