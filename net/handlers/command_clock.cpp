// Time, where the node was started for tests.
#include "net/claims/claim_call.hpp"
#include "net/claims/claim_reply.hpp"
#include "net/commands/handlers.hpp"
#include "net/time/test_clock.hpp"

namespace semel::net::handlers {
namespace {

/// Null: an error has been written.
TestClock* clock_of(Call& call) {
  TestClock* const clock = call.services.test_clock;
  if (clock == nullptr) call.fail("ERR SEMEL.CLOCK needs a node started with test-clock");
  return clock;
}

}  // namespace

void semel_clock(Call& call) {
  call.fail_arity();  // a subcommand is always meant
}

void semel_clock_advance(Call& call) {
  TestClock* const clock = clock_of(call);
  if (clock == nullptr) return;
  Millis by{0};
  if (!accept(call, read_ms("ADVANCE", call.args[2], 0, by))) return;
  if (!clock->advance(by)) {
    return call.fail("ERR ADVANCE by " + std::to_string(by.count()) +
                     " would put the clock more than " +
                     std::to_string(TestClock::ahead_max.count()) + " ms ahead");
  }
  // Before the reply, ended records are removed and their waiters are notified.
  while (call.engine.advance() == 0) {
  }
  call.reply.ok();
}

void semel_clock_freeze(Call& call) {
  TestClock* const clock = clock_of(call);
  if (clock == nullptr) return;
  clock->freeze();
  call.reply.ok();
}

void semel_clock_real(Call& call) {
  TestClock* const clock = clock_of(call);
  if (clock == nullptr) return;
  clock->go();
  call.reply.ok();
}

void semel_clock_now(Call& call) {
  const TestClock* const clock = clock_of(call);
  if (clock != nullptr) write_number(call.reply, clock->unix_ms());
}

}  // namespace semel::net::handlers
