// The pattern library, for the proof of failing allocations.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <stdexcept>

#include "semel/patterns/consume.hpp"
#include "semel/patterns/debounce.hpp"
#include "semel/patterns/guards.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/replay_guard.hpp"
#include "semel/patterns/semaphore.hpp"
#include "semel/patterns/signed_request.hpp"
#include "semel/patterns/token_service.hpp"
#include "semel/patterns/trailing_debounce.hpp"
#include "tests/proofs/allocations/allocations.hpp"
#include "tests/proofs/allocations/failing_new.hpp"

namespace semel::proofs {

Answer of_work(Claims& claims, Bytes key, bool ran) {
  FailingNew::hold();  // what is asked here is not the call's
  const Result<ClaimView> view = claims.get(key);
  const ClaimState state = view.ok() ? view->state : ClaimState::held;
  if (state == (ran ? ClaimState::done : ClaimState::absent)) {
    return ran ? Answer::passed : Answer::refused;
  }
  std::printf("'%.20s' %s, and is in state %d\n", std::string{key}.c_str(),
              ran ? "ran" : "did not run", static_cast<int>(state));
  std::fflush(stdout);
  std::abort();
}

namespace {

Answer run_once(Setting& s) {
  bool ran = false;
  try {
    Watchdog watchdog{*s.engine};
    ClaimId id{};
    id.fill(1);
    static_cast<void>(once(*s.ns, {.key = "once", .claim_id = id, .watchdog = &watchdog}, [&] {
      std::string result = long_text;
      ran = true;  // what throws before that has had no effect
      return result;
    }));
  } catch (const std::bad_alloc&) {
  }
  return of_work(*s.ns, "once", ran);
}

Answer run_once_in_steps(Setting& s) {
  bool ran = false;
  try {
    static_cast<void>(once(*s.ns, "steps", [&](Work& work) {
      const auto one = work.steps().run("one", [] { return long_text; });
      if (!one.ok()) return Result<std::string>{one.error()};
      std::string result = long_text;
      ran = true;
      return Result<std::string>{std::move(result)};
    }));
  } catch (const std::bad_alloc&) {
  }
  // The memo of a step that has run stays, whatever becomes of the work.
  return of_work(*s.ns, "steps", ran) == Answer::passed ? Answer::passed : Answer::untold;
}

Answer consume_three(Setting& s) {
  std::map<std::string, int> handled;
  for (const char* id : {"m1", "m2", "m3"}) handled[id] = 0;
  const Message messages[] = {{.id = "m1"}, {.id = "m2"}, {.id = "m3"}};
  try {
    Watchdog watchdog{*s.engine};
    static_cast<void>(consume_batch(
        *s.ns, messages,
        [&](const Message& message) { ++handled.find(std::string{message.id})->second; },
        {.watchdog = &watchdog}));
  } catch (const std::bad_alloc&) {
  }
  for (const auto& [id, times] : handled) static_cast<void>(of_work(*s.ns, id, times == 1));
  return Answer::passed;
}

/// Their keys in the table need the heap, also in the middle of a batch that is half claimed.
Answer consume_long_ids(Setting& s) {
  std::map<std::string, int> handled;
  std::vector<Message> messages;
  for (int i = 0; i < 40; ++i) handled[std::string(300, 'i') + std::to_string(i)] = 0;
  for (const auto& each : handled) messages.push_back({.id = each.first});
  try {
    static_cast<void>(consume_batch(*s.ns, messages, [&](const Message& message) {
      ++handled.find(std::string{message.id})->second;
    }));
  } catch (const std::bad_alloc&) {
  }
  for (const auto& [id, times] : handled) static_cast<void>(of_work(*s.ns, id, times == 1));
  return Answer::passed;
}

Answer take_lock(Setting& s) {
  Watchdog watchdog{*s.engine};
  Lock lock{*s.ns, long_key + "lock", {.watchdog = &watchdog}};
  const std::unique_lock held{lock, std::try_to_lock};
  return held.owns_lock() ? Answer::passed : Answer::refused;
}

Answer debounce(Setting& s) {
  bool ran = false;
  try {
    Debounce clicks{*s.engine, *s.ns, {.run_once_more_after = true}};
    static_cast<void>(clicks.run("click", [&] { ran = true; }));
  } catch (const std::bad_alloc&) {
  }
  return ran ? Answer::passed : Answer::refused;
}

Answer debounce_that_throws(Setting& s) {
  bool ran = false;
  try {
    Debounce clicks{*s.engine, *s.ns, {.remove_on_error = true}};
    static_cast<void>(clicks.run(long_key + "click", [&] {
      ran = true;
      throw std::runtime_error{"the function's own"};
    }));
  } catch (const std::bad_alloc&) {
  } catch (const std::runtime_error&) {
  }
  return ran ? Answer::passed : Answer::refused;
}

[[noreturn]] void complain(const char* what) {
  std::printf("%s\n", what);
  std::fflush(stdout);
  std::abort();
}

/// A run that its caller did not learn of is held by none.
Answer run_trailing(Setting& s) {
  bool ran = false;
  try {
    Watchdog watchdog{*s.engine};
    TrailingDebounce edits{*s.ns, {.terms = {.quiet = Millis{1}}, .watchdog = &watchdog}};
    static_cast<void>(edits.call(long_key, long_text));
    s.clock.advance(Millis{1});
    static_cast<void>(edits.run(long_key, [&](Bytes) { ran = true; }));
  } catch (const std::bad_alloc&) {
  }
  FailingNew::hold();
  const auto run = s.ns->get(trailing_run_key(long_key));
  if (!ran && run.ok() && run->state == ClaimState::held) complain("held by a run that is none");
  return ran ? Answer::passed : Answer::untold;
}

/// A wait that began is answered once.
Answer wait_for_permit(Setting& s) {
  unsigned answers = 0;
  WaitTicket ticket = 0;
  try {
    static_cast<void>(claim_permit(*s.ns, {.key = "p", .owner = "somebody with a long name"}, 1));
    ticket = claim_permit_or_wait(*s.ns, {.key = "p"}, 1, s.engine->now() + Millis{1},
                                  [&](PermitOutcome&&) { ++answers; });
    s.clock.advance(Millis{1});
    s.engine->advance();
  } catch (const std::bad_alloc&) {
  }
  FailingNew::hold();
  s.clock.advance(Millis{100});
  s.engine->advance();
  if (ticket != 0 && answers != 1) complain("a wait without an answer");
  return answers == 1 ? Answer::passed : Answer::untold;
}

Answer redeem(Setting& s) {
  bool ran = false;
  try {
    TokenService tokens = *TokenService::open(*s.tokens);
    static_cast<void>(tokens.redeem("issued", [&] {
      std::string result = long_text;
      ran = true;
      return result;
    }));
  } catch (const std::bad_alloc&) {
  }
  FailingNew::hold();
  const ClaimState state = s.tokens->get("issued").value().state;
  if (state == (ran ? ClaimState::done : ClaimState::vacant)) {
    return ran ? Answer::passed : Answer::untold;  // its attempt may be counted
  }
  std::printf("a token is in state %d\n", static_cast<int>(state));
  std::fflush(stdout);
  std::abort();
}

#if SEMEL_PROVES_SIGNED
const std::string secret(40, 's');

Answer check_replay(Setting& s) {
  ReplayGuard guard = *ReplayGuard::open(*s.engine, {.secrets = {secret}});
  const std::array<KeyField, 2> parameters{{{"to", long_text}, {"amount", "7"}}};
  SignedRequest request{.caller = "shop",
                        .parameters = parameters,
                        .timestamp_unix_ms = s.clock.unix_ms(),
                        .nonce = "9f2c1e"};
  const std::string signature = signature_of(request, secret);
  request.signature = signature;
  return guard.check(request).answer == ReplayAnswer::accepted ? Answer::passed : Answer::refused;
}
#endif

void add_tokens(Calls& calls) {
  const auto add = [&](const char* name, std::function<Answer(Setting&, TokenService&)> run) {
    calls.push_back(on_setting(name, [run = std::move(run)](Setting& s) {
      auto tokens = TokenService::open(*s.tokens);
      return tokens.ok() ? run(s, *tokens) : Answer::refused;
    }));
  };
  add("token issue", [](Setting&, TokenService& tokens) { return of(tokens.issue()); });
  add("token issue as",
      [](Setting&, TokenService& tokens) { return of(tokens.issue_as(long_key)); });
  add("token reserve", [](Setting&, TokenService& tokens) {
    return of(tokens.reserve("issued", {.owner = "somebody with a long name"}).error);
  });
  add("token spend", [](Setting& s, TokenService& tokens) {
    return of(tokens.spend("reserved", s.reserved, long_text).error);
  });
  add("token give back", [](Setting& s, TokenService& tokens) {
    return of(tokens.give_back("reserved", s.reserved).error);
  });
  add("token count", [](Setting&, TokenService& tokens) { return of(tokens.count(long_key)); });
  calls.push_back(on_setting("token redeem", redeem));
}

}  // namespace

void add_patterns(Calls& calls) {
  const auto add = [&](const char* name, std::function<Answer(Setting&)> run) {
    calls.push_back(on_setting(name, std::move(run)));
  };
  add("once", run_once);
  add("once in steps", run_once_in_steps);
  add("consume_batch", consume_three);
  add("consume_batch of long ids", consume_long_ids);
  add("lock", take_lock);
  add("step remember", [](Setting& s) {
    Steps steps{*s.ns, "held", s.held};
    const Status kept = steps.remember("one", long_text);
    return kept ? Answer::passed : Answer::refused;
  });
  add("step recall", [](Setting& s) {
    Steps steps{*s.ns, "held", s.held};
    return of(steps.recall("one"));
  });
  add("debounce", debounce);
  add("debounce that throws", debounce_that_throws);
  add("trailing debounce", run_trailing);
  add("wait for a permit", wait_for_permit);
  add_tokens(calls);
  add("seen before", [](Setting& s) {
    SeenBefore rows{s.engine->store(), "rows", Millis{1'000}};
    return of(rows.is_first({"invoice", long_text}));
  });
  add("decrement",
      [](Setting& s) { return of(decrement_if_at_least(s.engine->store(), "number", 3)); });
  add("transition",
      [](Setting& s) { return of(transition(s.engine->store(), "state", "", long_text)); });
#if SEMEL_PROVES_SIGNED
  add("replay guard", check_replay);
#endif
}

}  // namespace semel::proofs
