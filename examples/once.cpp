// The example of README.md.
#include <semel/semel.hpp>

int main() {
  auto engine = semel::Engine::open().value();
  auto orders = engine->claims("orders", semel::Policy{}).value();

  auto claim = orders.claim({.key = "order-4711"});  // exactly one caller is granted
  if (claim.answer == semel::ClaimAnswer::granted) {
    // .. charge the card, passing claim.epoch on as a fencing token ..
    static_cast<void>(
        orders.complete({.key = "order-4711", .epoch = claim.epoch, .payload = "paid"}));
  }
  auto again = orders.claim({.key = "order-4711"});  // a duplicate gets the answer
  return again.answer == semel::ClaimAnswer::replay && again.result == "paid" ? 0 : 1;
}
