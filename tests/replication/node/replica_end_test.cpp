// A replica that ends while a caller is still within a call of it.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "replication/state/entry.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/support/catch.hpp"

namespace {

thread_local bool is_held_in_post = false;
std::atomic<bool> is_in_post{false};
std::atomic<bool> may_go_on{false};

}  // namespace

/// Where Asio takes the memory of what is posted. The thread of the test stands still there.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (is_held_in_post) {
    is_held_in_post = false;
    // mo: release [test.in_post], acquire [test.go_on]: the thread has come here, and may go on
    is_in_post.store(true, std::memory_order_release);
    while (!may_go_on.load(std::memory_order_acquire)) poll(nullptr, 0, 1);
  }
  void* memory = nullptr;
  return posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes) == 0 ? memory : nullptr;
}

namespace semel::tests {

using namespace replication;

TEST_CASE("replica: its end waits for a caller that wakes it, though the call is answered already",
          "[replica_group]") {
  Group group{1};
  REQUIRE(group.wait_leader() == 1);
  Replica& node = group.node(1);
  std::atomic<bool> is_answered{false};
  std::atomic<bool> has_stopped{false};
  // mo: release and acquire [test.in_post], [test.go_on], [test.answered], [test.stopped]: each
  // says that its thread has come so far
  std::thread caller{[&] {
    StoreCommand command;
    command.op.verb = Verb::set;
    command.op.key = "a";
    command.op.value = "b";
    auto prepared = prepare({command});
    if (!prepared.ok()) return;
    is_held_in_post = true;
    node.propose(*std::move(prepared), [&](const Result<Answer>&) {
      is_answered.store(true, std::memory_order_release);
    });
  }};
  CHECK(Group::wait_for([&] { return is_in_post.load(std::memory_order_acquire); }));
  // By a turn that something else has caused.
  CHECK(Group::wait_for([&] { return is_answered.load(std::memory_order_acquire); }));
  std::thread ends{[&] {
    node.stop();
    has_stopped.store(true, std::memory_order_release);
  }};
  // Without the wait it ends within some milliseconds.
  for (int ms = 0; ms < 300 && !has_stopped.load(std::memory_order_acquire); ++ms) {
    poll(nullptr, 0, 1);
  }
  CHECK_FALSE(has_stopped.load(std::memory_order_acquire));
  may_go_on.store(true, std::memory_order_release);
  ends.join();
  caller.join();
}

}  // namespace semel::tests
