// A program on the core alone: work is done once, and a repeated call gets its answer.
#include <semel/patterns/keys.hpp>
#include <semel/semel.hpp>

#include <cstdio>
#include <string>

int main() {
  auto engine = semel::Engine::open();
  if (!engine) return std::puts(engine.error().message().c_str()), 1;
  auto mails = (*engine)->claims("mails", semel::Policy{});
  if (!mails) return std::puts(mails.error().message().c_str()), 1;

  const std::string key = semel::composite_key({"mail", "7|8"});
  if (key != "mail|7\\|8") return std::puts("another key"), 1;
  const semel::ClaimOutcome first = mails->claim({.key = key});
  if (first.answer != semel::ClaimAnswer::granted) return std::puts("not granted"), 1;
  const semel::ClaimOutcome meanwhile = mails->claim({.key = key});
  if (meanwhile.answer != semel::ClaimAnswer::in_flight) return std::puts("granted twice"), 1;
  const auto done = mails->complete({.key = key, .epoch = first.epoch, .payload = "sent"});
  if (done.answer != semel::OwnerAnswer::ok) return std::puts("not completed"), 1;
  const semel::ClaimOutcome again = mails->claim({.key = key});
  if (again.answer != semel::ClaimAnswer::replay || again.result != "sent") {
    return std::puts("not replayed"), 1;
  }
  std::printf("semel %s: sent once, replayed once\n", semel::version);
}
