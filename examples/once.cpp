// The example of README.md.
#include <semel/patterns/once.hpp>

int main() {
  auto engine = semel::Engine::open().value();
  auto orders = engine->claims("orders", semel::policies::call).value();
  int charges = 0;
  auto charge = [&] { return "receipt " + std::to_string(++charges); };

  auto first = once(orders, "order-4711", charge);  // runs: exactly one caller does
  auto again = once(orders, "order-4711", charge);  // a duplicate gets the receipt of the first
  return charges == 1 && again.value == first.value && first.value == "receipt 1" ? 0 : 1;
}
