// ReadWriteLock, claim_access, accesses_held, and what a Fence does with their tokens.
#include "semel/patterns/read_write_lock.hpp"

#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/policies.hpp"
#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

namespace {

/// Callers of one read/write lock.
class Callers {
 public:
  explicit Callers(Process& process, const Policy& policy = policies::lock)
      : claims_(process.claims("rw", policy)) {}

  /// Null: it was refused, as others are in or in front.
  ReadWriteLock* take(Access access) {
    ReadWriteLock& one = all_.emplace_back(claims_, "k");
    if (access == Access::write ? one.try_write() : one.try_read()) return &one;
    CHECK(one.why_not().code == ErrorCode::timed_out);
    all_.pop_back();
    return nullptr;
  }
  [[nodiscard]] std::size_t held() { return accesses_held(claims_, "k").value().size(); }
  [[nodiscard]] Claims& claims() { return claims_; }
  /// The key of the claim that decided an attempt which takes nothing if it is refused.
  [[nodiscard]] AccessOutcome ask(Access access, std::uint8_t id = 0,
                                  std::optional<Duration> next = {}) {
    ClaimRequest request{.key = "k"};
    if (id != 0) request.claim_id = ClaimId{id};
    return claim_access(claims_, request, access, next);
  }
  void give(const AccessOutcome& held) {
    CHECK(claims_.release({.key = held.key, .epoch = held.claim.epoch}).answer == OwnerAnswer::ok);
  }

 private:
  Claims claims_;
  std::list<ReadWriteLock> all_;
};

[[nodiscard]] bool is_in(const AccessOutcome& found) {
  return found.claim.answer == ClaimAnswer::granted || found.claim.answer == ClaimAnswer::regranted;
}

/// Waits for the engine to have as many waiters.
void until_waiting(Engine& engine, std::uint64_t waiters) {
  while (engine.stats().waiters < waiters) std::this_thread::yield();
}

}  // namespace

TEST_CASE("read/write lock: many readers or one writer", "[patterns][rwlock]") {
  Process process;
  Callers callers{process};
  std::vector<ReadWriteLock*> readers;
  for (unsigned i = 0; i < 5; ++i) readers.push_back(callers.take(Access::read));
  for (ReadWriteLock* const reader : readers) REQUIRE(reader != nullptr);
  CHECK(callers.held() == 5);
  CHECK(callers.take(Access::write) == nullptr);
  for (unsigned i = 0; i < 4; ++i) CHECK(readers[i]->release());
  CHECK(callers.take(Access::write) == nullptr);
  CHECK(readers[4]->release());
  CHECK_FALSE(readers[4]->release());
  ReadWriteLock* const writer = callers.take(Access::write);
  REQUIRE(writer != nullptr);
  CHECK(callers.take(Access::read) == nullptr);
  CHECK(callers.take(Access::write) == nullptr);
  CHECK(callers.held() == 1);
  CHECK(writer->release());
  CHECK(callers.take(Access::read) != nullptr);
}

TEST_CASE("read/write lock: a holder that went silent is out, on both sides of its end",
          "[patterns][rwlock]") {
  for (const Access silent : {Access::read, Access::write}) {
    Process process;
    Callers callers{process};
    ReadWriteLock* const slow = callers.take(silent);
    REQUIRE(slow != nullptr);
    process.clock().advance(Millis{29'999});
    CHECK(slow->is_held());
    CHECK(callers.take(Access::write) == nullptr);
    process.clock().advance(Millis{1});
    CHECK_FALSE(slow->is_held());
    ReadWriteLock* const next = callers.take(Access::write);
    REQUIRE(next != nullptr);
    CHECK_FALSE(slow->renew());
    CHECK_FALSE(slow->release());  // another's hold is not given back
    CHECK(next->is_held());
    CHECK(next->fencing_token() > 0);
  }
}

TEST_CASE("read/write lock: a fence refuses whom the lock has left behind", "[patterns][rwlock]") {
  Process process;
  Callers callers{process};
  Fence fence;
  ReadWriteLock* const first = callers.take(Access::write);
  REQUIRE(first != nullptr);
  CHECK(fence.admit(first->fencing_token()));
  CHECK(fence.admit(first->fencing_token()));
  process.clock().advance(Millis{30'000});  // it is paused
  std::vector<ReadWriteLock*> readers{callers.take(Access::read), callers.take(Access::read)};
  CHECK(fence.admit_reader(readers[1]->fencing_token()));
  CHECK(fence.admit_reader(readers[0]->fencing_token()));
  // The paused writer comes back while nobody but readers came after it.
  CHECK_FALSE(fence.admit(first->fencing_token()));
  process.clock().advance(Millis{30'000});  // now the readers are paused
  ReadWriteLock* const second = callers.take(Access::write);
  REQUIRE(second != nullptr);
  CHECK(second->fencing_token() > readers[0]->fencing_token());
  CHECK(fence.admit_reader(readers[0]->fencing_token()));  // the writer has written nothing yet
  CHECK(fence.admit(second->fencing_token()));
  CHECK_FALSE(fence.admit_reader(readers[0]->fencing_token()));
  CHECK_FALSE(fence.admit_reader(0));
  CHECK_FALSE(fence.admit(0));
  CHECK(second->release());
  CHECK(second->fencing_token() == 0);
}

TEST_CASE("read/write lock: tokens grow over the end of their record, and over a restart",
          "[patterns][rwlock]") {
  Process process;
  Epoch last = 0;
  for (unsigned round = 0; round < 4; ++round) {
    Claims claims = process.claims("rw", policies::lock);
    const AccessOutcome writer = claim_access(claims, {.key = "k"}, Access::write);
    REQUIRE(is_in(writer));
    CHECK(writer.token > last);
    last = writer.token;
    REQUIRE(claims.release({.key = writer.key, .epoch = writer.claim.epoch}).answer ==
            OwnerAnswer::ok);
    if (round % 2 == 1) {
      process.restart();
      claims = process.claims("rw", policies::lock);
    } else {
      process.clock().advance(Millis{86'400'000});
      process.engine().advance();
      REQUIRE_FALSE(process.engine().store().exists("rw:{k}#token").value());
    }
    const AccessOutcome reader = claim_access(claims, {.key = "k"}, Access::read);
    REQUIRE(is_in(reader));
    CHECK(reader.token >= last);
    REQUIRE(claims.release({.key = reader.key, .epoch = reader.claim.epoch}).answer ==
            OwnerAnswer::ok);
    last = reader.token;
  }
}

TEST_CASE("read/write lock: who is next is not overtaken, and lets others in when it is in",
          "[patterns][rwlock]") {
  Process process;
  Callers callers{process};
  const AccessOutcome reader = callers.ask(Access::read);
  REQUIRE(is_in(reader));
  const AccessOutcome blocked = callers.ask(Access::write, 1, Millis{500});
  CHECK(blocked.claim.answer == ClaimAnswer::in_flight);
  CHECK(blocked.key == "{k}#read0");
  CHECK(callers.held() == 2);
  // Readers and writers that come later are not let in; one that wants to be next is not.
  for (const Access access : {Access::read, Access::write}) {
    const AccessOutcome later = callers.ask(access, 2, Millis{60'000});
    CHECK(later.claim.answer == ClaimAnswer::in_flight);
    CHECK(later.key == "{k}#next");
  }
  process.clock().advance(Millis{400});
  CHECK_FALSE(is_in(callers.ask(Access::write, 1, Millis{500})));
  process.clock().advance(Millis{400});  // asked again, so it is still next
  callers.give(reader);
  CHECK_FALSE(is_in(callers.ask(Access::read)));
  const AccessOutcome writer = callers.ask(Access::write, 1, Millis{500});
  REQUIRE(is_in(writer));
  CHECK(callers.held() == 1);
  // A reader is next in turn: a writer that comes later waits behind it.
  CHECK_FALSE(is_in(callers.ask(Access::read, 3, Millis{500})));
  callers.give(writer);
  CHECK_FALSE(is_in(callers.ask(Access::write, 1)));
  CHECK(is_in(callers.ask(Access::read, 3)));
}

TEST_CASE("read/write lock: who is next stops the others for as long as it said, or gives up",
          "[patterns][rwlock]") {
  Process process;
  Callers callers{process};
  REQUIRE(is_in(callers.ask(Access::read)));
  CHECK_FALSE(is_in(callers.ask(Access::write, 1, Millis{500})));
  process.clock().advance(Millis{499});
  CHECK_FALSE(is_in(callers.ask(Access::read)));
  process.clock().advance(Millis{1});
  CHECK(is_in(callers.ask(Access::read)));
  CHECK_FALSE(is_in(callers.ask(Access::write, 1, Millis{500})));
  CHECK_FALSE(is_in(callers.ask(Access::read)));
  CHECK_FALSE(is_in(callers.ask(Access::write, 1)));  // it wants to be next no longer
  CHECK(is_in(callers.ask(Access::read)));
}

TEST_CASE("read/write lock: a claim id that is in is let in again, as what it was",
          "[patterns][rwlock]") {
  Process process;
  Callers callers{process};
  const AccessOutcome other = callers.ask(Access::read);
  const AccessOutcome mine = callers.ask(Access::read, 1);
  REQUIRE(mine.key == "{k}#read1");
  CHECK_FALSE(is_in(callers.ask(Access::write, 2, Millis{500})));
  callers.give(other);  // a lower slot is free, and a writer is next
  const AccessOutcome again = callers.ask(Access::read, 1);
  CHECK(again.claim.answer == ClaimAnswer::regranted);
  CHECK(again.claim.epoch == mine.claim.epoch);
  CHECK(again.key == mine.key);
  CHECK(again.token >= mine.token);
  callers.give(again);
  const AccessOutcome writer = callers.ask(Access::write, 2);
  REQUIRE(is_in(writer));
  const AccessOutcome twice = callers.ask(Access::write, 2);
  CHECK(twice.claim.answer == ClaimAnswer::regranted);
  CHECK(twice.claim.epoch == writer.claim.epoch);
  CHECK(twice.token >= writer.token);
  CHECK_FALSE(is_in(callers.ask(Access::read, 2)));  // the same id is no reader
}

TEST_CASE("read/write lock: a caller about to give way takes nothing from who asks again",
          "[patterns][rwlock]") {
  Process process;
  Callers callers{process};
  // A claim of the other kind, before it has looked at the others.
  const auto meet = [&](Access access, const std::string& passing) {
    const AccessOutcome mine = callers.ask(access, 1);
    REQUIRE(is_in(mine));
    const ClaimOutcome other = callers.claims().claim({.key = passing});
    REQUIRE(other.answer == ClaimAnswer::granted);
    CHECK_FALSE(is_in(callers.ask(access, 1)));
    CHECK(callers.claims().get(mine.key).value().state == ClaimState::held);
    REQUIRE(callers.claims().release({.key = passing, .epoch = other.epoch}).answer ==
            OwnerAnswer::ok);
    const AccessOutcome again = callers.ask(access, 1);
    CHECK(again.claim.answer == ClaimAnswer::regranted);
    CHECK(again.claim.epoch == mine.claim.epoch);
    callers.give(again);
  };
  meet(Access::read, "{k}#write");
  meet(Access::write, "{k}#read0");
}

TEST_CASE("read/write lock: who is next by its claim id does not wait for itself",
          "[patterns][rwlock]") {
  Process process;
  Callers callers{process};
  const AccessOutcome reader = callers.ask(Access::read);
  CHECK_FALSE(is_in(callers.ask(Access::write, 1, Millis{500})));  // it is next
  callers.give(reader);
  const ClaimRequest mine{.key = "k", .claim_id = ClaimId{1}};
  const AccessOutcome found =
      claim_access_or_wait(callers.claims(), mine, Access::write, process.engine().now());
  CHECK(found.claim.answer == ClaimAnswer::granted);
  CHECK(callers.held() == 1);  // and no place
}

TEST_CASE("read/write lock: 128 readers, and room for one more when one is out",
          "[patterns][rwlock]") {
  Process process;
  Callers callers{process};
  std::vector<AccessOutcome> readers;
  for (unsigned i = 0; i < limits::readers_max; ++i) readers.push_back(callers.ask(Access::read));
  CHECK(is_in(readers.back()));
  CHECK_FALSE(is_in(callers.ask(Access::read)));
  callers.give(readers[77]);
  CHECK(callers.ask(Access::read).key == "{k}#read77");
  for (unsigned i = 0; i < limits::readers_max; ++i) {
    if (i != 77 && i + 1 != limits::readers_max) callers.give(readers[i]);
  }
  CHECK(callers.ask(Access::write).key == "{k}#read77");
  const AccessOutcome last = readers.back();
  callers.give(last);
  CHECK_FALSE(is_in(callers.ask(Access::write)));
}

TEST_CASE("read/write lock: all that can be wrong with an attempt", "[patterns][rwlock]") {
  Process process;
  Callers callers{process};
  Claims& claims = callers.claims();
  for (const Access access : {Access::read, Access::write}) {
    const auto error_of = [&](Bytes key) {
      const AccessOutcome found = claim_access(claims, {.key = key}, access);
      CHECK_FALSE(is_in(found));
      const AccessOutcome waited = claim_access_or_wait(claims, {.key = key}, access, no_end);
      CHECK(waited.claim.error == found.claim.error);
      return found.claim.error;
    };
    CHECK(error_of("") == ErrorCode::key_empty);
    CHECK(error_of(std::string(limits::key_bytes_max, 'k')) == ErrorCode::key_too_long);
    Store store = process.engine().store();
    for (const char* const word : {"read0", "write", "next"}) {
      REQUIRE(store.set(std::string{"rw:{w}#"} + word, "mine").ok());
      CHECK(error_of("w") == ErrorCode::wrong_kind);
      REQUIRE(store.del(std::string{"rw:{w}#"} + word).value());
    }
    REQUIRE(process.engine().hashes().hset("rw:{h}#token", "f", "v").ok());
    CHECK(error_of("h") == ErrorCode::wrong_type);
    CHECK(accesses_held(claims, "h").value().empty());  // what was claimed is given back
    CHECK(callers.ask(access, 0, Millis{5}).claim.error == ErrorCode::bad_option);  // no id
    CHECK(callers.ask(access, 1, Millis{0}).claim.error == ErrorCode::bad_option);
    CHECK(callers.ask(access, 1, limits::next_max + Millis{1}).claim.error ==
          ErrorCode::bad_option);
  }
  const std::string zeros("\0{}\r\n", 5);
  for (const Bytes key : {Bytes{zeros}, Bytes{"{k}#write"}, Bytes{"{k}"}}) {
    CHECK(is_in(claim_access(claims, {.key = key}, Access::write)));
    CHECK_FALSE(is_in(claim_access(claims, {.key = key}, Access::read)));
  }
  CHECK(accesses_held(claims, "").error().code == ErrorCode::key_empty);
  CHECK(callers.ask(Access::write).claim.answer == ClaimAnswer::granted);
}

TEST_CASE("read/write lock: one object holds once, and its destructor gives back",
          "[patterns][rwlock]") {
  Process process;
  Claims claims = process.claims("rw", policies::lock);
  {
    ReadWriteLock one{claims, "k"};
    REQUIRE(one.try_read());
    CHECK_FALSE(one.try_read());
    CHECK(one.why_not().code == ErrorCode::object_in_use);
    CHECK_FALSE(one.try_write());
    CHECK_THROWS_AS(one.write(), std::system_error);
    std::thread{[&] { CHECK(one.release()); }}.join();
    REQUIRE(one.try_write());
    CHECK(one.why_not().code == ErrorCode::ok);
    CHECK(one.renew());
  }
  CHECK(accesses_held(claims, "k").value().empty());
}

TEST_CASE("read/write lock: a watchdog keeps readers and writers", "[patterns][rwlock]") {
  Process process;
  Claims claims = process.claims("rw", policies::lock);
  Watchdog watchdog{process.engine()};
  for (const Access access : {Access::read, Access::write}) {
    ReadWriteLock kept{claims, "k", {.watchdog = &watchdog}};
    REQUIRE((access == Access::read ? kept.try_read() : kept.try_write()));
    for (unsigned i = 0; i < 10; ++i) {
      process.clock().advance(Millis{10'001});
      CHECK(watchdog.poll() == 1);
    }
    CHECK(kept.is_held());
    CHECK(kept.release());
    CHECK(watchdog.kept() == 0);
  }
}

TEST_CASE("read/write lock: full memory refuses, and what was held can be given back",
          "[patterns][rwlock]") {
  for (const bool open : {false, true}) {
    Process process{Process::never, limits::memory_bytes_min};
    Policy policy = policies::lock;
    policy.fail_open = open;
    Claims claims = process.claims("rw", policy);
    ReadWriteLock held{claims, "k"};
    REQUIRE(held.try_write());
    process.fill();
    std::string full;
    for (unsigned i = 0; i < 100'000; ++i) {
      full = "full" + std::to_string(i);
      if (!is_in(claim_access(claims, {.key = full}, Access::read))) break;
    }
    ReadWriteLock other{claims, full};
    for (const Access access : {Access::read, Access::write}) {
      CHECK_FALSE((access == Access::read ? other.try_read() : other.try_write()));
      CHECK(other.why_not().code == ErrorCode::memory_full);
    }
    CHECK(held.release());
    process.empty();
    CHECK(other.try_write());
  }
}

TEST_CASE("read/write lock: remote holders outlive a process, those of the process do not",
          "[patterns][rwlock]") {
  for (const bool is_remote : {true, false}) {
    for (const Access access : {Access::read, Access::write}) {
      Process process;
      Claims claims = process.claims("rw", policies::lock);
      ClaimRequest request{.key = "k"};
      if (is_remote) request.session = 0;
      REQUIRE(is_in(claim_access(claims, request, access)));
      process.restart();
      claims = process.claims("rw", policies::lock);
      CHECK(is_in(claim_access(claims, request, Access::write)) == !is_remote);
    }
  }
}

TEST_CASE("read/write lock: where the end of a lease is a doubt, its holder is in until resolved",
          "[patterns][rwlock]") {
  Process process;
  Policy doubts = policies::lock;
  doubts.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  Callers callers{process, doubts};
  REQUIRE(is_in(callers.ask(Access::read)));
  CHECK_FALSE(is_in(callers.ask(Access::write, 1, Millis{500})));
  process.clock().advance(Millis{30'000});  // the place in front is in doubt too
  CHECK(callers.ask(Access::write).claim.answer == ClaimAnswer::in_doubt);
  const AccessOutcome reader = callers.ask(Access::read);
  REQUIRE(is_in(reader));  // readers do not mind
  callers.give(reader);
  REQUIRE(callers.claims().resolve("{k}#read0", Resolution::released).value());
  CHECK(is_in(callers.ask(Access::write)));
}

TEST_CASE("read/write lock: waiters come in in the order of arrival", "[patterns][rwlock][race]") {
  Process process;
  Claims claims = process.claims("rw", policies::fair_lock);
  ReadWriteLock first{claims, "k"};
  REQUIRE(first.try_read());
  std::mutex mutex;
  std::string order;
  std::vector<std::thread> threads;
  const std::string wanted = "wrrwwr";
  for (const char kind : wanted) {
    threads.emplace_back([&, kind] {
      ReadWriteLock one{claims, "k"};
      kind == 'w' ? one.write() : one.read();
      {
        const std::lock_guard lock{mutex};
        order.push_back(kind);
      }
      one.release();
    });
    until_waiting(process.engine(), threads.size());
  }
  ReadWriteLock late{claims, "k"};
  CHECK_FALSE(late.try_read());  // a writer is in front
  CHECK(first.release());
  for (std::thread& thread : threads) thread.join();
  CHECK(order == wanted);
  CHECK(accesses_held(claims, "k").value().empty());
}

TEST_CASE("read/write lock: a wait ends at its time, and leaves no place", "[patterns][rwlock]") {
  Process process;
  Claims claims = process.claims("rw", policies::lock);
  ReadWriteLock reader{claims, "k", {.lease = Millis{600'000}}};
  REQUIRE(reader.try_read());
  ReadWriteLock writer{claims, "k"};
  std::atomic<bool> is_over{false};
  std::thread waits{[&] {
    CHECK_FALSE(writer.try_write_for(Millis{20'000}));
    is_over = true;
  }};
  while (!is_over) {
    if (process.engine().stats().waiters > 0) {
      process.clock().advance(Millis{1'000});
      process.engine().advance();
    }
    std::this_thread::yield();
  }
  waits.join();
  CHECK(writer.why_not().code == ErrorCode::timed_out);
  ReadWriteLock other{claims, "k"};
  CHECK(other.try_read());
  CHECK(accesses_held(claims, "k").value().size() == 2);
}

TEST_CASE("read/write lock: an engine that closes ends the waits", "[patterns][rwlock][race]") {
  std::unique_ptr<Engine> engine = Engine::open().value();
  Claims claims = engine->claims("rw", policies::lock).value();
  REQUIRE(is_in(claim_access(claims, {.key = "k"}, Access::read)));
  std::vector<std::thread> threads;
  std::vector<ErrorCode> ends(3);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    threads.emplace_back([&, i] {
      Claims mine = claims;
      const Access access = i == 1 ? Access::read : Access::write;
      ends[i] = claim_access_or_wait(mine, {.key = "k"}, access, no_end).claim.error;
    });
    until_waiting(*engine, i + 1);
  }
  engine.reset();
  for (std::thread& thread : threads) thread.join();
  CHECK(ends == std::vector<ErrorCode>(3, ErrorCode::closing));
}

TEST_CASE("read/write lock: many threads, never a writer with anybody else",
          "[patterns][rwlock][race]") {
  for (const Policy& policy : {policies::lock, policies::fair_lock}) {
    std::unique_ptr<Engine> engine = Engine::open().value();
    Claims claims = engine->claims("rw", policy).value();
    std::atomic<int> inside{0};  // readers; a writer counts 1,000
    std::atomic<int> wrong{0};
    std::atomic<int> runs{0};
    std::atomic<Epoch> newest{0};  // of writers: the lock orders them
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        ReadWriteLock one{claims, "k"};
        for (unsigned run = 0; run < 100; ++run) {
          const bool writes = (run + i) % 3 == 0;
          writes ? one.write() : one.read();
          const int weight = writes ? 1'000 : 1;
          const int before = inside.fetch_add(weight, std::memory_order_relaxed);
          if (writes ? before != 0 : before >= 1'000) ++wrong;
          if (one.fencing_token() < newest) ++wrong;
          if (writes && one.fencing_token() == newest) ++wrong;
          if (writes) newest = one.fencing_token();
          std::this_thread::yield();
          inside.fetch_sub(weight, std::memory_order_relaxed);
          runs += one.release() ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(runs == 600);
    CHECK(accesses_held(claims, "k").value().empty());
  }
}

TEST_CASE("read/write lock: attempts that come together do not both stay",
          "[patterns][rwlock][race]") {
  std::unique_ptr<Engine> engine = Engine::open().value();
  Claims claims = engine->claims("rw", policies::lock).value();
  std::atomic<int> inside{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const bool writes = i % 2 == 0;
      for (unsigned run = 0; run < 500; ++run) {
        const AccessOutcome found =
            claim_access(claims, {.key = "k"}, writes ? Access::write : Access::read);
        if (!is_in(found)) continue;
        const int before = inside.fetch_add(writes ? 1'000 : 1, std::memory_order_relaxed);
        if (writes ? before != 0 : before >= 1'000) ++wrong;
        std::this_thread::yield();
        inside.fetch_sub(writes ? 1'000 : 1, std::memory_order_relaxed);
        static_cast<void>(claims.release({.key = found.key, .epoch = found.claim.epoch}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(accesses_held(claims, "k").value().empty());
}
