// A file of its own, so a process of its own: a child of a process that has used RocksDB has none
// of its threads. So the parent uses none.
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "tests/storage/directory.hpp"
#include "tests/support/child.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// Ends the child with `code` and a line on standard error.
[[noreturn]] void end_child(int code, const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  _exit(code);
}

struct Life {
  Life(const std::string& directory, ManualClock& clock) {
    // The checkpoint, which has the last time that is known, is written once a minute.
    auto opened = Storage::open({.directory = directory, .sync_every = 60s, .span = 1s}, clock);
    if (!opened) end_child(3, opened.error().message());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::logged,
                              .memory_bytes = std::size_t{64} << 20,
                              .first_version = storage->first_version()});
    if (!made) end_child(3, made.error().message());
    engine = *std::move(made);
    const auto recovered = storage->recover(*engine);
    if (!recovered) end_child(3, recovered.error().message());
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
};

int code_of(const Ended& ended) {
  INFO(ended.output);
  REQUIRE(WIFEXITED(ended.status));
  if (WEXITSTATUS(ended.status) != 0) FAIL(ended.output);
  return 0;
}

}  // namespace

TEST_CASE("storage: after a kill a hold of a remote owner that was released stays released",
          "[storage][claims]") {
  // Released, completed with a result that ends soon, forgotten by an operator.
  enum class End { released, completed, forgotten };
  const End end = GENERATE(End::released, End::completed, End::forgotten);
  INFO(static_cast<int>(end));
  const Directory directory;
  Policy policy;
  policy.lease = 5s;
  policy.attempts_ttl = 1ms;
  policy.result_ttl = 1ms;
  code_of(run_apart([&] {
    ManualClock clock;
    Life life{directory.path(), clock};
    Claims claims = life.engine->claims("jobs", policy).value();
    const Epoch epoch = claims.claim({.key = "k", .session = 0}).epoch;
    if (!life.storage->drain()) end_child(4, "the hold is not drained");
    clock.advance(1s);
    if (end == End::released) static_cast<void>(claims.release({.key = "k", .epoch = epoch}));
    if (end == End::completed) static_cast<void>(claims.complete({.key = "k", .epoch = epoch}));
    if (end == End::forgotten) static_cast<void>(claims.forget("k"));
    clock.advance(10s);  // beyond the lease: what ended the hold need not be kept
    if (!life.storage->drain()) end_child(5, "what ended the hold is not drained");
    _exit(0);  // killed: no checkpoint is written
  }));
  code_of(run_apart([&] {
    ManualClock clock;
    clock.advance(11s);
    Life life{directory.path(), clock};
    Claims claims = life.engine->claims("jobs", policy).value();
    const ClaimOutcome again = claims.claim({.key = "k"});
    if (again.answer != ClaimAnswer::granted) end_child(6, "the hold is back");
    if (again.takeover) end_child(7, "the hold is back, and its lease is over");
    _exit(0);
  }));
}

}  // namespace semel::tests
