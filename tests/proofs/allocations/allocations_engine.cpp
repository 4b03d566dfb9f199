// The calls of the engine itself, for the proof of failing allocations.
#include <array>
#include <functional>

#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "semel/store.hpp"
#include "tests/proofs/allocations/allocations.hpp"

namespace semel::proofs {

void add_store(Calls& calls) {
  const auto add = [&](const char* name, std::function<Answer(Setting&)> run) {
    calls.push_back(on_setting(name, std::move(run)));
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
    const std::string key = long_key + "2";
    const std::array<KeyValue, 2> pairs{{{"new", "a"}, {key, long_text}}};
    return of(s.engine->store().msetnx(pairs));
  });
  add("rename", [](Setting& s) { return of(s.engine->store().rename("7", long_key + "3")); });
  add("copy", [](Setting& s) { return of(s.engine->store().copy("7", "8", std::nullopt, true)); });
  add("hash set", [](Setting& s) { return of(s.engine->hashes().hset("hash", "g", long_text)); });
  add("hash get", [](Setting& s) { return of(s.engine->hashes().hget("hash", "f")); });
  add("apply", [](Setting& s) {
    StoreOutcome outcome;
    s.engine->host().apply(StoreOp{.verb = Verb::set, .key = long_key, .value = long_text},
                           outcome);
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
  add("snapshot", [](Setting& s) { return of(s.engine->host().snapshot([](const Mutation&) {})); });
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

void add_claims(Calls& calls) {
  const auto add = [&](const char* name, std::function<Answer(Setting&)> run) {
    calls.push_back(on_setting(name, std::move(run)));
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
  add("advance", [](Setting& s) {
    s.clock.advance(Millis{5});
    static_cast<void>(s.engine->advance());
    return Answer::passed;
  });
  add("close_session", [](Setting& s) {
    const SessionId session = s.engine->open_session();
    s.engine->close_session(session);
    return Answer::passed;
  });
}

}  // namespace semel::proofs
