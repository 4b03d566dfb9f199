// The same small program with Semel's core and, with -DWITHOUT_SEMEL, without it: what lies between
// their sizes is what the core costs a program.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#ifndef WITHOUT_SEMEL
#include <semel/semel.hpp>
#endif

int main(int argc, char** argv) {
  const std::string key = argc > 1 ? argv[1] : "order-4711";
  std::map<std::string, std::string> results;
  std::string answer = "paid";
#ifndef WITHOUT_SEMEL
  auto engine = semel::Engine::open().value();
  auto orders = engine->claims("orders", semel::Policy{}).value();
  const auto claim = orders.claim({.key = key});
  static_cast<void>(orders.complete({.key = key, .epoch = claim.epoch, .payload = answer}));
  answer = orders.claim({.key = key}).result;
#endif
  results[key] = answer;
  std::printf("%s\n", results.at(key).c_str());
}
