// A program that is built by hand with what pkg-config says. With SEMEL_CONSUMER_STORAGE it lives
// twice on a storage, else once on the core.
#include <semel/patterns/keys.hpp>
#include <semel/semel.hpp>
#ifdef SEMEL_CONSUMER_STORAGE
#include <semel/storage.hpp>
#endif

#include <cstdio>
#include <string>

namespace {

/// Grants once and replays ever after; the answer in a word.
std::string ask(semel::Engine& engine) {
  auto jobs = engine.claims("jobs", semel::Policy{}).value();
  const std::string key = semel::composite_key({"job", "7"});
  const semel::ClaimOutcome claim = jobs.claim({.key = key});
  if (claim.answer == semel::ClaimAnswer::replay) return claim.result;
  if (claim.answer != semel::ClaimAnswer::granted) return "refused";
  const auto done = jobs.complete({.key = key, .epoch = claim.epoch, .payload = "result"});
  return done.answer == semel::OwnerAnswer::ok ? "granted" : "lost";
}

}  // namespace

int main(int argc, char** argv) {
  std::string first;
  std::string second;
#ifdef SEMEL_CONSUMER_STORAGE
  if (argc != 2) return std::puts("usage: consumer DIR"), 2;
  const semel::SystemClock clock;
  for (std::string* answer : {&first, &second}) {
    auto storage = semel::Storage::open({.directory = argv[1]}, clock).value();
    auto engine = semel::Engine::open({.clock = &clock,
                                       .journal = storage.get(),
                                       .durability = semel::Durability::logged,
                                       .first_version = storage->first_version()})
                      .value();
    static_cast<void>(storage->recover(*engine).value());
    *answer = ask(*engine);
  }
#else
  static_cast<void>(argc);
  static_cast<void>(argv);
  auto engine = semel::Engine::open().value();
  first = ask(*engine);
  second = ask(*engine);
#endif
  std::printf("semel %s: %s, then %s\n", semel::version, first.c_str(), second.c_str());
  return first == "granted" && second == "result" ? 0 : 1;
}
