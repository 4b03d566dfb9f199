// Every public call with its first allocation failing, its second, and so on until it passes.
// Asked after each: is the process there, does the engine's own check hold, has a call that failed
// changed nothing, so that no grant is unknown to its caller, and do all other calls still work.
//
// Words: site = an allocation of a call that was made to fail; fresh = on the thread's first call.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "semel/claims.hpp"
#include "semel/consume.hpp"
#include "semel/hashes.hpp"
#include "semel/lock.hpp"
#include "semel/once.hpp"
#include "semel/store.hpp"
#include "tests/proofs/arguments.hpp"
#include "tests/proofs/failing_new.hpp"

namespace semel::proofs {
namespace {

/// Takes everything, and needs no memory.
class PlainJournal final : public Journal {
 public:
  Ticket append(std::span<const Mutation>) override { return 1; }
  Status wait(Ticket, Durability) override { return Done{}; }
  Ticket newest() const override { return 1; }
};

const std::string long_key(300, 'k');   // longer than any buffer on a stack
const std::string long_text(900, 'v');  // and than a string's own

/// An engine in which there is something of everything.
struct Setting {
  explicit Setting(bool journalled) {
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
    held = ns->claim({.key = "held", .owner = "somebody with a long name"}).epoch;
    held_long = ns->claim({.key = long_key}).epoch;
    waited = ns->claim({.key = "waited"}).epoch;
    const Epoch done = ns->claim({.key = "done"}).epoch;
    static_cast<void>(ns->complete({.key = "done", .epoch = done, .payload = long_text}));
    for (int i = 0; i < 3; ++i) {
      tickets[i] = ns->claim_or_wait({.key = "waited", .owner = "a waiter with a long name"},
                                     no_end, [this](ClaimOutcome&&) { ++told; });
    }
  }

  ManualClock clock;
  PlainJournal journal;
  Options options;
  int told = 0;
  Epoch held = 0;
  Epoch held_long = 0;
  Epoch waited = 0;
  WaitTicket tickets[3]{};
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Claims> ns;
};

/// All records, in a form that can be compared.
std::map<std::string, std::string> contents_of(Engine& engine) {
  std::map<std::string, std::string> all;
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

enum class Answer { passed, refused };
struct Call {
  const char* name;
  std::function<Answer(Setting&)> run;
};

template <class T>
Answer of(const Result<T>& result) {
  return result.has_value() ? Answer::passed : Answer::refused;
}
Answer of(ErrorCode error) {
  return error == ErrorCode::ok ? Answer::passed : Answer::refused;
}

void add_store(std::vector<Call>& calls) {
  const auto add = [&](const char* name, std::function<Answer(Setting&)> run) {
    calls.push_back({name, std::move(run)});
  };
  add("get", [](Setting& s) { return of(s.engine->store().get("7")); });
  add("set new", [](Setting& s) { return of(s.engine->store().set("new", long_text)); });
  add("set over", [](Setting& s) { return of(s.engine->store().set("7", long_text)); });
  add("set get", [](Setting& s) { return of(s.engine->store().set("7", "x", {.get = true})); });
  add("set long key", [](Setting& s) {
    return of(s.engine->store().set(long_key, "x", {.expiry = Expiry::in(Millis{500})}));
  });
  add("append", [](Setting& s) { return of(s.engine->store().append("7", long_text)); });
  add("incr", [](Setting& s) { return of(s.engine->store().incr_by("number", 3)); });
  add("del", [](Setting& s) {
    const std::array<Bytes, 3> keys{"1", "2", "3"};
    return of(s.engine->store().del(keys));
  });
  add("mget", [](Setting& s) {
    const std::array<Bytes, 3> keys{"1", "2", "3"};
    return of(s.engine->store().mget(keys));
  });
  add("mset", [](Setting& s) {
    const std::array<KeyValue, 3> pairs{{{"1", "a"}, {"new", long_text}, {"3", "c"}}};
    return of(s.engine->store().mset(pairs));
  });
  add("msetnx", [](Setting& s) {
    const std::array<KeyValue, 2> pairs{{{"new", "a"}, {long_key + "2", long_text}}};
    return of(s.engine->store().msetnx(pairs));
  });
  add("rename", [](Setting& s) { return of(s.engine->store().rename("7", long_key + "3")); });
  add("copy", [](Setting& s) { return of(s.engine->store().copy("7", "8", std::nullopt, true)); });
  add("hash set", [](Setting& s) { return of(s.engine->hashes().hset("hash", "g", long_text)); });
  add("hash get", [](Setting& s) { return of(s.engine->hashes().hget("hash", "f")); });
  add("apply", [](Setting& s) {
    StoreOutcome outcome;
    s.engine->apply(StoreOp{.verb = Verb::set, .key = long_key, .value = long_text}, outcome);
    return of(outcome.error);
  });
  add("section", [](Setting& s) {
    auto section = s.engine->section({});
    if (!section) return Answer::refused;
    StoreOutcome outcome;
    section->apply(StoreOp{.verb = Verb::set, .key = "1", .value = long_text}, outcome);
    const ErrorCode error = outcome.error;
    return section->commit() ? of(error) : Answer::refused;
  });
  add("scan", [](Setting& s) { return of(s.engine->scan(0, {.count = 50}, [](const auto&) {})); });
  add("snapshot", [](Setting& s) { return of(s.engine->snapshot([](const Mutation&) {})); });
  add("swap_db", [](Setting& s) { return of(s.engine->swap_db(3, 4)); });
  add("flush", [](Setting& s) { return of(s.engine->flush(std::nullopt)); });
  add("size", [](Setting& s) {
    static_cast<void>(s.engine->size(0));
    return Answer::passed;
  });
  add("subscribe_expired", [](Setting& s) {
    return s.engine->subscribe_expired([](const ExpiredEvent&) {}) != 0 ? Answer::passed
                                                                        : Answer::refused;
  });
  add("open", [](Setting& s) {
    Options options = s.options;
    options.journal = nullptr;
    return of(Engine::open(options));
  });
}

void add_claims(std::vector<Call>& calls) {
  const auto add = [&](const char* name, std::function<Answer(Setting&)> run) {
    calls.push_back({name, std::move(run)});
  };
  add("namespace", [](Setting& s) { return of(s.engine->claims("another", Policy{})); });
  add("claim new", [](Setting& s) {
    return of(s.ns->claim({.key = "new", .owner = "me, and a name that is long"}).error);
  });
  add("claim long key", [](Setting& s) { return of(s.ns->claim({.key = long_key + "2"}).error); });
  add("claim held", [](Setting& s) { return of(s.ns->claim({.key = "held"}).error); });
  add("claim done", [](Setting& s) { return of(s.ns->claim({.key = "done"}).error); });
  add("complete", [](Setting& s) {
    return of(s.ns->complete({.key = "held", .epoch = s.held, .payload = long_text}).error);
  });
  add("complete waited", [](Setting& s) {
    return of(s.ns->complete({.key = "waited", .epoch = s.waited, .payload = long_text}).error);
  });
  add("release waited",
      [](Setting& s) { return of(s.ns->release({.key = "waited", .epoch = s.waited}).error); });
  add("fail", [](Setting& s) {
    return of(s.ns->fail({.key = long_key, .epoch = s.held_long, .payload = long_text}).error);
  });
  add("renew", [](Setting& s) { return of(s.ns->renew({.key = "held", .epoch = s.held}).error); });
  add("get claim", [](Setting& s) { return of(s.ns->get("done")); });
  add("forget", [](Setting& s) { return of(s.ns->forget("waited")); });
  add("resolve", [](Setting& s) { return of(s.ns->resolve("held", Resolution::done, long_text)); });
  add("claim_all", [](Setting& s) {
    const std::array<ClaimRequest, 2> requests{{{.key = "x"}, {.key = "y"}}};
    std::array<ClaimOutcome, 2> outcomes;
    return s.ns->claim_all(requests, outcomes) ? Answer::passed : Answer::refused;
  });
  add("claim_or_wait", [](Setting& s) {
    const WaitTicket ticket =
        s.ns->claim_or_wait({.key = "held"}, Timestamp{Millis{1 << 30}}, [](ClaimOutcome&&) {});
    return ticket != 0 ? Answer::passed : Answer::refused;
  });
  add("cancel_wait", [](Setting& s) {
    return s.ns->cancel_wait("waited", s.tickets[1]) ? Answer::passed : Answer::refused;
  });
  add("close_session", [](Setting& s) {
    const SessionId session = s.engine->open_session();
    s.engine->close_session(session);
    return Answer::passed;
  });
}

/// Work that ran is done, and what did not run has left no grant behind.
Answer of_work(Setting& s, Bytes key, bool ran) {
  FailingNew::hold();  // what is asked here is not the call's
  const Result<ClaimView> view = s.ns->get(key);
  const ClaimState state = view.ok() ? view->state : ClaimState::held;
  if (state == (ran ? ClaimState::done : ClaimState::absent)) {
    return ran ? Answer::passed : Answer::refused;
  }
  std::printf("'%.20s' %s, and is in state %d\n", std::string{key}.c_str(),
              ran ? "ran" : "did not run", static_cast<int>(state));
  std::fflush(stdout);
  std::abort();
}

void add_patterns(std::vector<Call>& calls) {
  calls.push_back({"once", [](Setting& s) {
                     bool ran = false;
                     try {
                       Watchdog watchdog{*s.engine};
                       ClaimId id{};
                       id.fill(1);
                       static_cast<void>(
                           once(*s.ns, {.key = "once", .claim_id = id, .watchdog = &watchdog}, [&] {
                             std::string result = long_text;
                             ran = true;  // what throws before that has had no effect
                             return result;
                           }));
                     } catch (const std::bad_alloc&) {
                     }
                     return of_work(s, "once", ran);
                   }});
  calls.push_back(
      {"consume_batch", [](Setting& s) {
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
         for (const auto& [id, times] : handled) {
           static_cast<void>(of_work(s, id, times == 1));
         }
         return Answer::passed;
       }});
  calls.push_back({"lock", [](Setting& s) {
                     Watchdog watchdog{*s.engine};
                     Lock lock{*s.ns, long_key + "lock", {.watchdog = &watchdog}};
                     const std::unique_lock held{lock, std::try_to_lock};
                     return held.owns_lock() ? Answer::passed : Answer::refused;
                   }});
}

/// The sentence of what is wrong afterwards, or empty.
std::string what_is_wrong(Setting& s) {
  for (const std::string& rule : s.engine->check_invariants()) return rule;
  Store store = s.engine->store();
  if (!store.set("afterwards", long_text).has_value()) return "set no longer works";
  if (s.ns->claim({.key = "afterwards"}).answer != ClaimAnswer::granted) {
    return "claim no longer works";
  }
  if (!s.engine->section({}).has_value()) return "section no longer works";
  if (!s.engine->snapshot([](const Mutation&) {}).has_value()) return "snapshot no longer works";
  s.clock.advance(Millis{86'400'000});
  while (s.engine->advance() == 0) {
  }
  if (s.engine->stats().waiters != 0 && s.told == 0) {
    // Whoever still waits after all leases ended was granted by turns.
    return "nobody was promoted";
  }
  for (const std::string& rule : s.engine->check_invariants()) return rule;
  return {};
}

/// One site. 0: failed as it should; 1: there is no such site; 2: not as it should.
int play(const Call& call, std::uint64_t site, bool journalled, bool fresh) {
  Setting setting{journalled};
  const auto before = contents_of(*setting.engine);
  Answer answer = Answer::passed;
  bool fired = false;
  const auto run = [&] {
    FailingNew::arm(site);
    try {
      answer = call.run(setting);
    } catch (const std::bad_alloc&) {
      answer = Answer::refused;
    }
    fired = FailingNew::disarm();
  };
  fresh ? std::thread{run}.join() : run();
  if (!fired) return answer == Answer::passed ? 1 : 2;
  if (answer == Answer::refused && contents_of(*setting.engine) != before) {
    std::printf("%s: site %lu: refused, and has changed something\n", call.name,
                static_cast<unsigned long>(site));
    return 2;
  }
  const std::string wrong = what_is_wrong(setting);
  if (wrong.empty()) return 0;
  std::printf("%s: site %lu: %s\n", call.name, static_cast<unsigned long>(site), wrong.c_str());
  return 2;
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
  if (WIFEXITED(status) && WEXITSTATUS(status) <= 2) return WEXITSTATUS(status);
  std::printf("%s: site %lu: ended by signal %d\n", call.name, static_cast<unsigned long>(site),
              WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  return 2;
}

int run(const Arguments&) {
  std::vector<Call> calls;
  add_store(calls);
  add_claims(calls);
  add_patterns(calls);
  std::uint64_t sites = 0;
  std::uint64_t wrong = 0;
  for (const Call& call : calls) {
    std::uint64_t of_call = 0;
    for (const bool journalled : {false, true}) {
      for (const bool fresh : {false, true}) {
        constexpr std::uint64_t sites_max = 2'000;
        for (std::uint64_t site = 1; site <= sites_max; ++site) {
          const int verdict = play_apart(call, site, journalled, fresh);
          if (verdict == 1) break;
          ++of_call;
          wrong += verdict == 2 ? 1 : 0;
        }
      }
    }
    std::printf("%-20s %4lu sites\n", call.name, static_cast<unsigned long>(of_call));
    sites += of_call;
  }
  std::printf("%zu calls, %lu sites, %lu not as they should\n", calls.size(),
              static_cast<unsigned long>(sites), static_cast<unsigned long>(wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace semel::proofs

int main(int count, char** texts) {
  const auto arguments = semel::proofs::parse_arguments(count, texts);
  return arguments ? semel::proofs::run(*arguments) : 2;
}
