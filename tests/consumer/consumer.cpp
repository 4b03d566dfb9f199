// Uses Semel as a stranger would: the umbrella header and Semel::core, nothing else.
#include <cstdio>

#include "semel/semel.hpp"

int main() {
  auto engine = semel::Engine::open();
  if (!engine) return std::puts(engine.error().message().c_str()), 1;
  auto orders = (*engine)->claims("orders", semel::Policy{});
  if (!orders) return std::puts(orders.error().message().c_str()), 1;

  const semel::ClaimOutcome first = orders->claim({.key = "order:7"});
  if (first.answer != semel::ClaimAnswer::granted) return 1;
  const auto done = orders->complete({.key = "order:7", .epoch = first.epoch, .payload = "paid"});
  if (done.answer != semel::OwnerAnswer::ok) return 1;
  const semel::ClaimOutcome again = orders->claim({.key = "order:7"});
  if (again.answer != semel::ClaimAnswer::replay || again.result != "paid") return 1;

  std::printf("semel %s: done once, replayed once\n", semel::version);
}
