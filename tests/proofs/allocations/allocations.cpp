// Every public call with its first allocation failing, its second, and so on until it passes.
// Asked after each: is the process there, does the engine's own check hold, has a call that failed
// changed nothing, so that no grant is unknown to its caller, and do all other calls still work.
//
// Calls of C++ and of the C ABI, and requests of a connection to a node. What fails is operator new
// on the thread of the call. Lua has an allocator of its own, with its own bound; malloc does not
// fail here. Opening and appending to a storage are not called.
//
// proof_allocations [NAME]: only calls in whose name this is
#include "tests/proofs/allocations/allocations.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "semel/policies.hpp"
#include "semel/store.hpp"
#include "tests/proofs/allocations/failing_new.hpp"
#include "tests/proofs/arguments.hpp"

namespace semel::proofs {

const std::string long_key(300, 'k');
const std::string long_text(900, 'v');

Contents contents_of(Engine& engine) {
  Contents all;
  std::uint64_t cursor = 0;
  do {
    const auto next = engine.scan(cursor, {.count = 1'000}, [&](const ScanItem& item) {
      std::string text{item.value};
      if (item.claim != nullptr) {
        text = std::to_string(static_cast<int>(item.claim->state)) + " " +
               std::to_string(item.claim->epoch) + " " + std::string{item.claim->result};
      }
      all[std::to_string(item.db) + std::string{item.key}] =
          text + " " + std::to_string(item.version);
    });
    cursor = next.ok() ? *next : 0;
  } while (cursor != 0);
  return all;
}

Setting::Setting(bool journalled) {
  options.clock = &clock;
  options.memory_bytes = std::size_t{16} << 20;
  if (journalled) options.journal = &journal;
  engine = *Engine::open(options);
  ns = std::make_unique<Claims>(*engine->claims("ns", Policy{}));
  Store store = engine->store();
  for (int i = 0; i < 200; ++i) {
    static_cast<void>(store.set(std::to_string(i), long_text));
  }
  static_cast<void>(store.set("number", "5"));
  static_cast<void>(store.set("ends", "v", {.expiry = Expiry::in(Millis{5})}));
  static_cast<void>(engine->hashes().hset("hash", "f", long_text));
  Claims two_ends =
      *engine->claims("two-ends", {.result_ttl = Millis{5}, .unique_ttl = Millis{60'000}});
  for (int i = 0; i < 3; ++i) {
    const std::string key = "its result ends before its key is free, number " + std::to_string(i);
    const Epoch epoch = two_ends.claim({.key = key}).epoch;
    static_cast<void>(two_ends.complete({.key = key, .epoch = epoch, .payload = long_text}));
  }
  tokens = std::make_unique<Claims>(*engine->claims("tokens", policies::token));
  static_cast<void>(tokens->issue("issued"));
  static_cast<void>(tokens->issue("reserved"));
  reserved = tokens->claim({.key = "reserved"}).epoch;
  held = ns->claim({.key = "held", .owner = "somebody with a long name"}).epoch;
  held_long = ns->claim({.key = long_key}).epoch;
  waited = ns->claim({.key = "waited"}).epoch;
  const Epoch done = ns->claim({.key = "done"}).epoch;
  static_cast<void>(ns->complete({.key = "done", .epoch = done, .payload = long_text}));
  for (int i = 0; i < 3; ++i) {
    tickets[i] = ns->claim_or_wait({.key = "waited", .owner = "a waiter with a long name"}, no_end,
                                   [this](ClaimOutcome&&) { ++answers; });
  }
}

std::string what_is_wrong_with(Engine& engine, Claims& claims) {
  for (const std::string& rule : engine.host().check_invariants()) return rule;
  Store store = engine.store();
  if (!store.set("afterwards", long_text).has_value()) return "set no longer works";
  if (claims.claim({.key = "afterwards"}).answer != ClaimAnswer::granted) {
    return "claim no longer works";
  }
  if (!engine.section({}).has_value()) return "section no longer works";
  if (!engine.host().snapshot([](const Mutation&) {}).has_value())
    return "snapshot no longer works";
  return {};
}

std::string Setting::what_is_wrong() {
  if (std::string rule = what_is_wrong_with(*engine, *ns); !rule.empty()) return rule;
  clock.advance(Millis{86'400'000});
  while (engine->advance() == 0) {
  }
  if (engine->stats().waiters != 0 && answers == 0) {
    // After all leases have ended, waiters are granted in turn.
    return "no waiter was promoted";
  }
  // Waiters are granted in turn, and each of their claims ends as well.
  for (int pass = 0; pass < 8; ++pass) {
    clock.advance(30 * Millis{86'400'000});
    while (engine->advance() == 0) {
    }
  }
  if (engine->stats().records_with_ttl != 0) {
    std::string left = "stay though they have ended:";
    static_cast<void>(engine->scan(0, {.count = 5'000}, [&](const ScanItem& item) {
      if (item.due != no_end) left += " " + std::string{item.key};
    }));
    return left + " " + std::to_string(engine->stats().records_with_ttl);
  }
  for (const std::string& rule : engine->host().check_invariants()) return rule;
  return {};
}

Call on_setting(std::string name, std::function<Answer(Setting&)> run) {
  return {.name = std::move(name),
          .make = [](bool journalled) { return std::make_unique<Setting>(journalled); },
          .run = [run = std::move(run)](Subject& s) { return run(static_cast<Setting&>(s)); }};
}

namespace {

/// One site. 0: failed as it should; 1: there is no such site; 2: not as it should; 3: the call is
/// refused though nothing fails.
int play(const Call& call, std::uint64_t site, bool journalled, bool fresh) {
  const std::unique_ptr<Subject> subject = call.make(journalled);
  const Contents before = subject->contents();
  const std::int64_t live = FailingNew::live();
  Answer answer = Answer::passed;
  bool fired = false;
  std::int64_t left = 0;
  const auto run = [&] {
    FailingNew::arm(site);
    try {
      answer = call.run(*subject);
    } catch (const std::bad_alloc&) {
      answer = Answer::refused;
    }
    fired = FailingNew::disarm();
    left = FailingNew::live() - live;
  };
  fresh ? std::thread{run}.join() : run();
  if (!fired) return answer == Answer::passed ? 1 : 3;
  const auto complain = [&](const std::string& what) {
    std::printf("%s: site %lu: %s\n", call.name.c_str(), static_cast<unsigned long>(site),
                what.c_str());
    return 2;
  };
  if (answer == Answer::refused && subject->contents() != before) {
    return complain("refused, and has changed something");
  }
  if (answer == Answer::refused && call.frees_all && left > 0) {
    return complain("refused, and has left " + std::to_string(left) + " allocations");
  }
  const std::string wrong = subject->what_is_wrong();
  return wrong.empty() ? 0 : complain(wrong);
}

/// The same in a process of its own, so that a crash is one line.
int play_apart(const Call& call, std::uint64_t site, bool journalled, bool fresh) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const int verdict = play(call, site, journalled, fresh);
    std::fflush(stdout);
    _exit(verdict);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 2;
  if (WIFEXITED(status) && WEXITSTATUS(status) <= 3) return WEXITSTATUS(status);
  std::printf("%s: site %lu: ended by signal %d\n", call.name.c_str(),
              static_cast<unsigned long>(site), WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  return 2;
}

struct Sum {
  std::uint64_t sites = 0;
  std::uint64_t wrong = 0;
};

void play_all_sites(const Call& call, bool journalled, bool fresh, Sum& sum) {
  constexpr std::uint64_t sites_max = 2'000;
  for (std::uint64_t site = 1; site <= sites_max; ++site) {
    const int verdict = play_apart(call, site, journalled, fresh);
    if (verdict == 1) return;
    ++sum.sites;
    sum.wrong += verdict >= 2 ? 1 : 0;
    if (verdict == 3) {
      std::printf("%s: is refused though nothing fails\n", call.name.c_str());
      return;
    }
  }
}

int run(const char* name) {
  Calls calls;
  add_store(calls);
  add_claims(calls);
  add_patterns(calls);
  add_c(calls);
#if SEMEL_PROVES_NODE
  add_node(calls);
#endif
  Sum all;
  std::size_t count = 0;
  for (const Call& call : calls) {
    if (name != nullptr && call.name.find(name) == std::string::npos) continue;
    ++count;
    Sum one;
    for (const bool journalled : {false, true}) {
      for (const bool fresh : {false, true}) {
        if (call.every_way || (!journalled && !fresh)) {
          play_all_sites(call, journalled, fresh, one);
        }
      }
    }
    std::printf("%-28s %4lu sites\n", call.name.c_str(), static_cast<unsigned long>(one.sites));
    all.sites += one.sites;
    all.wrong += one.wrong;
  }
  std::printf("%zu calls, %lu sites, %lu not as they should\n", count,
              static_cast<unsigned long>(all.sites), static_cast<unsigned long>(all.wrong));
  return all.wrong == 0 && count > 0 ? 0 : 1;
}

}  // namespace
}  // namespace semel::proofs

int main(int count, char** texts) {
  const char* name = nullptr;
  if (count > 1 && texts[count - 1][0] != '-') name = texts[--count];
  const auto arguments = semel::proofs::parse_arguments(count, texts);
  return arguments ? semel::proofs::run(name) : 2;
}
