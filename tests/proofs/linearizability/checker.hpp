// Is there an order of the calls, each at an instant between its invocation and its return, in
// which the oracle gives exactly the outcomes that were seen? Just-in-time linearization after
// Wing & Gong and Lowe: walk over the moments, keep the set of all (calls done so far, state) that
// explain what was seen, and before a call returns try every order of the calls under way.
//
// Goals      exact for what is recorded: no false alarm, nothing wrong accepted for lack of effort
//            (a search that grows beyond its bound is reported as such, never as a pass).
// Non-goals  histories with calls that never returned.
//
// Time. A call reads the clock once, at an unknown instant between its moments, and may take
// effect later; so its `now` is any value the clock had meanwhile. What has ended by a later value
// within the same span may or may not be swept already when the call takes effect. Both are tried.
// Source: G. Lowe, "Testing for linearizability" (2016); J. Wing, C. Gong (1993).
#pragma once

#include <cstddef>
#include <string>

#include "tests/proofs/linearizability/history.hpp"

namespace semel::proofs {

struct Verdict {
  bool linearizable = true;
  bool gave_up = false;  ///< more explanations or calls at once than the limits below
  std::size_t configurations_most = 0;
  std::string report;  ///< of a failure: the call that cannot be explained, and its neighbours
};

inline constexpr std::size_t configurations_max = 200'000;
inline constexpr std::size_t calls_under_way_max = 64;

[[nodiscard]] Verdict check(const History& history);

}  // namespace semel::proofs
