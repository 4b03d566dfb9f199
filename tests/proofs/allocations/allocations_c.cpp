// The functions of the C ABI, for the proof of failing allocations. Their sources are part of the
// program, so that the engine behind a handle can be looked into.
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "bindings/c/handles.hpp"
#include "semel.h"
#include "tests/proofs/allocations/allocations.hpp"
#include "tests/proofs/allocations/failing_new.hpp"

namespace semel::proofs {
namespace {

template <class T>
T sized() {
  T made;
  SEMEL_INIT(made);
  return made;
}

class Handles final : public Subject {
 public:
  Handles() {
    auto options = sized<semel_options>();
    options.memory_bytes = std::size_t{16} << 20;
    options.manual_clock = 1;
    semel_engine_open(&options, &engine);
    auto policy = sized<semel_policy>();
    semel_policy_named("call", &policy);
    semel_claims_open(engine, "ns", &policy, &claims);
    auto issued = sized<semel_policy>();
    semel_policy_named("token", &issued);
    semel_claims_open(engine, "tokens", &issued, &tokens);
    for (const char* key : {"1", "2", "3"}) {
      semel_set(engine, key, 1, long_text.data(), long_text.size(), nullptr, nullptr);
    }
    semel_set(engine, "number", 6, "50", 2, nullptr, nullptr);
    held = grant("held");
    other = grant("other");
    const semel_uint64 done = grant("done");
    const semel_owner_call finished = owner_call("done", done);
    semel_complete(claims, &finished, nullptr);
    semel_lock_open(claims, "lock", 4, nullptr, &lock);
  }
  ~Handles() override {
    semel_lock_close(lock);
    semel_engine_close(engine);
  }
  [[nodiscard]] Contents contents() override { return contents_of(*engine->engine); }
  [[nodiscard]] std::string what_is_wrong() override {
    return what_is_wrong_with(*engine->engine, claims->claims);
  }

  static semel_request request(const char* key) {
    auto made = sized<semel_request>();
    made.key = key;
    made.key_length = std::strlen(key);
    made.owner = "somebody with a long name";
    made.owner_length = 25;
    return made;
  }
  static semel_owner_call owner_call(const char* key, semel_uint64 epoch) {
    auto made = sized<semel_owner_call>();
    made.key = key;
    made.key_length = std::strlen(key);
    made.epoch = epoch;
    made.payload = long_text.data();
    made.payload_length = long_text.size();
    return made;
  }

  semel_engine* engine = nullptr;
  semel_claims* claims = nullptr;
  semel_claims* tokens = nullptr;
  semel_lock* lock = nullptr;
  semel_uint64 held = 0;
  semel_uint64 other = 0;

 private:
  semel_uint64 grant(const char* key) {
    const semel_request asked = request(key);
    auto outcome = sized<semel_claim_outcome>();
    semel_claim(claims, &asked, &outcome);
    return outcome.epoch;
  }
};

/// An exception that leaves a function of C ends the process here.
Answer of_c(int error) noexcept {
  return error == SEMEL_OK ? Answer::passed : Answer::refused;
}

Call on_handles(std::string name, std::function<int(Handles&)> run) {
  return {.name = "C " + std::move(name),
          .make = [](bool) { return std::make_unique<Handles>(); },
          .run = [run = std::move(run)](
                     Subject& s) noexcept { return of_c(run(static_cast<Handles&>(s))); },
          .every_way = false};
}

int work(void* ran, const semel_work*, semel_out* out) {
  if (semel_out_write(out, long_text.data(), long_text.size()) != SEMEL_OK)
    return SEMEL_WORK_FAILED;
  *static_cast<bool*>(ran) = true;
  return SEMEL_WORK_DONE;
}

void add_engine_calls(Calls& calls) {
  Call open{.name = "C engine open and close",
            .make = [](bool) { return std::make_unique<Handles>(); },
            .run =
                [](Subject&) noexcept {
                  auto options = sized<semel_options>();
                  options.memory_bytes = std::size_t{16} << 20;
                  semel_engine* opened = nullptr;
                  const int error = semel_engine_open(&options, &opened);
                  if ((error == SEMEL_OK) != (opened != nullptr)) std::abort();
                  const int closed = semel_engine_close(opened);
                  return of_c(error == SEMEL_OK ? closed : error);
                },
            .every_way = false,
            .frees_all = true};
  calls.push_back(std::move(open));
  const auto add = [&](const char* name, std::function<int(Handles&)> run) {
    calls.push_back(on_handles(name, std::move(run)));
  };
  add("advance", [](Handles& h) { return semel_engine_advance(h.engine, 5); });
  add("stats", [](Handles& h) {
    auto stats = sized<semel_stats>();
    return semel_engine_stats(h.engine, &stats);
  });
  add("policy named", [](Handles&) {
    auto policy = sized<semel_policy>();
    return semel_policy_named("payment", &policy);
  });
  add("claims open", [](Handles& h) {
    auto policy = sized<semel_policy>();
    semel_claims* opened = nullptr;
    const int error = semel_claims_open(h.engine, "a-name-longer-than-most", &policy, &opened);
    if ((error == SEMEL_OK) != (opened != nullptr)) std::abort();
    return error;
  });
  add("claims change", [](Handles& h) {
    auto policy = sized<semel_policy>();
    semel_policy_named("call", &policy);
    policy.lease_ms = 5'000;
    semel_buffer changed{};
    const int error = semel_claims_change(h.engine, "ns", &policy, &changed);
    semel_buffer_free(&changed);
    return error;
  });
  add("claims drop",
      [](Handles& h) { return semel_claims_drop(h.engine, "tokens", SEMEL_DROP_ALL, nullptr); });
  add("claims list", [](Handles& h) {
    semel_uint64 cursor = 0;
    semel_buffer names{};
    const int error = semel_claims_list(h.engine, &cursor, 10, &names);
    semel_buffer_free(&names);
    return error;
  });
}

void add_store_calls(Calls& calls) {
  const auto add = [&](const char* name, std::function<int(Handles&)> run) {
    calls.push_back(on_handles(name, std::move(run)));
  };
  add("set", [](Handles& h) {
    auto options = sized<semel_set_options>();
    options.get = 1;
    auto result = sized<semel_set_result>();
    const int error =
        semel_set(h.engine, "1", 1, long_text.data(), long_text.size(), &options, &result);
    semel_buffer_free(&result.previous);
    return error;
  });
  add("get", [](Handles& h) {
    auto value = sized<semel_value>();
    const int error = semel_get(h.engine, "1", 1, &value);
    semel_buffer_free(&value.value);
    return error;
  });
  add("del", [](Handles& h) { return semel_del(h.engine, "1", 1, nullptr); });
  add("incr", [](Handles& h) { return semel_incr_by(h.engine, "number", 6, 2, nullptr); });
  add("expire", [](Handles& h) { return semel_expire(h.engine, "1", 1, 500, nullptr); });
  add("ttl", [](Handles& h) {
    semel_int64 left = 0;
    return semel_ttl(h.engine, "1", 1, &left);
  });
  add("compare and set", [](Handles& h) {
    auto current = sized<semel_value>();
    const int error = semel_compare_and_set(h.engine, "new", 3, 0, long_text.data(),
                                            long_text.size(), 0, nullptr, &current);
    semel_buffer_free(&current.value);
    return error;
  });
  add("decrement", [](Handles& h) {
    return semel_decrement_if_at_least(h.engine, "number", 6, 7, 0, nullptr, nullptr);
  });
  add("transition", [](Handles& h) {
    semel_buffer state{};
    const int error = semel_transition(h.engine, "state", 5, nullptr, 0, long_text.data(),
                                       long_text.size(), 0, nullptr, &state);
    semel_buffer_free(&state);
    return error;
  });
  const auto fields = [] {
    return std::array<semel_bytes, 2>{
        {{long_text.data(), long_text.size()}, {long_key.data(), long_key.size()}}};
  };
  add("first seen", [fields](Handles& h) {
    return semel_first_seen(h.engine, "rows", fields().data(), 2, 1'000, nullptr);
  });
  add("composite key", [fields](Handles&) {
    semel_buffer key{};
    const int error = semel_composite_key(fields().data(), 2, &key);
    semel_buffer_free(&key);
    return error;
  });
}

template <class Verb>
std::function<int(Handles&)> owner(Verb verb) {
  return [verb](Handles& h) {
    const semel_owner_call call = Handles::owner_call("held", h.held);
    auto outcome = sized<semel_owner_outcome>();
    const int error = verb(h.claims, &call, &outcome);
    semel_buffer_free(&outcome.result);
    return error;
  };
}

/// The answer for each item is true of it: granted, and held; or refused, and not.
int claim_three(Handles& h) {
  const std::array<const char*, 3> keys{"x", "y", "z"};
  std::array<semel_request, 3> requests;
  std::array<semel_claim_outcome, 3> outcomes;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    requests[i] = Handles::request(keys[i]);
    outcomes[i] = sized<semel_claim_outcome>();
  }
  int error = semel_claim_batch(h.claims, requests.data(), outcomes.data(), keys.size());
  FailingNew::hold();
  if (error != SEMEL_OK) return error;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool expected = outcomes[i].error == SEMEL_OK && outcomes[i].answer == SEMEL_GRANTED;
    const bool held = h.claims->claims.get(keys[i])->state == ClaimState::held;
    if (expected != held) std::abort();
  }
  return error;
}

int complete_two(Handles& h) {
  const std::array<semel_owner_call, 2> finished{Handles::owner_call("held", h.held),
                                                 Handles::owner_call("other", h.other)};
  std::array<semel_owner_outcome, 2> outcomes;
  for (auto& outcome : outcomes) outcome = sized<semel_owner_outcome>();
  const int error = semel_complete_batch(h.claims, finished.data(), outcomes.data(), 2);
  FailingNew::hold();
  if (error != SEMEL_OK) return error;
  const std::array<const char*, 2> keys{"held", "other"};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool expected = outcomes[i].error == SEMEL_OK && outcomes[i].answer == SEMEL_OWNER_OK;
    const bool done = h.claims->claims.get(keys[i])->state == ClaimState::done;
    if (expected != done) std::abort();
  }
  return error;
}

void add_claim_calls(Calls& calls) {
  const auto add = [&](const char* name, std::function<int(Handles&)> run) {
    calls.push_back(on_handles(name, std::move(run)));
  };
  for (const char* key : {"new", "held", "done"}) {
    add((std::string{"claim "} + key).c_str(), [key](Handles& h) {
      const semel_request asked = Handles::request(key);
      auto outcome = sized<semel_claim_outcome>();
      const int error = semel_claim(h.claims, &asked, &outcome);
      semel_buffer_free(&outcome.result);
      semel_buffer_free(&outcome.owner);
      return error;
    });
  }
  add("complete", owner(semel_complete));
  add("fail", owner(semel_fail));
  add("renew", owner(semel_renew));
  add("release", owner(semel_release));
  add("claim batch", claim_three);
  add("complete batch", complete_two);
  add("issue", [](Handles& h) {
    return semel_issue(h.tokens, long_key.data(), long_key.size(), SEMEL_TTL_POLICY, nullptr);
  });
  add("claim get", [](Handles& h) {
    auto view = sized<semel_claim_view>();
    const int error = semel_claim_get(h.claims, "done", 4, &view);
    semel_buffer_free(&view.result);
    semel_buffer_free(&view.owner);
    return error;
  });
  add("resolve", [](Handles& h) {
    return semel_resolve(h.claims, "held", 4, SEMEL_RESOLVE_DONE, long_text.data(),
                         long_text.size(), nullptr);
  });
}

void add_pattern_calls(Calls& calls) {
  const auto add_work = [&](const char* name, auto call) {
    calls.push_back({.name = std::string{"C "} + name,
                     .make = [](bool) { return std::make_unique<Handles>(); },
                     .run =
                         [call](Subject& s) noexcept {
                           auto& h = static_cast<Handles&>(s);
                           bool ran = false;
                           semel_request asked = Handles::request("work");
                           asked.keep_lease = 1;
                           call(h, asked, &ran);
                           return of_work(h.claims->claims, "work", ran);
                         },
                     .every_way = false});
  };
  add_work("once", [](Handles& h, const semel_request& asked, bool* ran) {
    auto outcome = sized<semel_once_outcome>();
    semel_once(h.claims, &asked, work, ran, &outcome);
    semel_buffer_free(&outcome.value);
    semel_buffer_free(&outcome.failure);
  });
  add_work("consume once", [](Handles& h, const semel_request& asked, bool* ran) {
    auto consumed = sized<semel_consumed>();
    semel_consume_once(h.claims, &asked, work, ran, &consumed);
    semel_buffer_free(&consumed.failure);
  });
  Call open = on_handles("lock open", [](Handles& h) {
    semel_lock* opened = nullptr;
    const int error = semel_lock_open(h.claims, long_key.data(), long_key.size(), nullptr, &opened);
    if ((error == SEMEL_OK) != (opened != nullptr)) std::abort();
    semel_lock_close(opened);
    return error;
  });
  open.frees_all = true;
  calls.push_back(std::move(open));
  calls.push_back(on_handles("lock take", [](Handles& h) {
    semel_uint64 token = 0;
    const int error = semel_lock_take(h.lock, 0, &token);
    if ((error == SEMEL_OK) != (token != 0)) std::abort();
    return error;
  }));
  calls.push_back(on_handles("lock take and give", [](Handles& h) {
    semel_uint64 token = 0;
    int held = 0;
    const int error = semel_lock_take(h.lock, 0, &token);
    return error != SEMEL_OK ? error : semel_lock_give(h.lock, &held);
  }));
}

}  // namespace

void add_c(Calls& calls) {
  add_engine_calls(calls);
  add_store_calls(calls);
  add_claim_calls(calls);
  add_pattern_calls(calls);
}

}  // namespace semel::proofs
