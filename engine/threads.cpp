#include "engine/threads.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace semel::engine {

constinit thread_local Threads::Binding Threads::last_binding{0, nullptr};

namespace {

/// What a thread holds on to for each engine it has been in. Its end lets the contexts go.
struct Bound {
  std::uint64_t id;
  ThreadContext* context;
  std::weak_ptr<Threads::Registry> registry;
};
struct BoundList {
  std::vector<Bound> all;
  ~BoundList() {
    for (Bound& bound : all) {
      const auto registry = bound.registry.lock();
      if (!registry) continue;
      const std::lock_guard lock{registry->mutex};
      if (registry->closed) continue;
      // mo: release [threads.owner]: the next owner sees the context's fields as they are.
      bound.context->in_use.store(false, std::memory_order_release);
    }
  }
};
thread_local BoundList bound_list;

std::uint64_t next_engine_id() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;  // mo: relaxed: only uniqueness matters
}

int membarrier(int command) noexcept {
  return static_cast<int>(syscall(__NR_membarrier, command, 0, 0));
}

}  // namespace

bool register_barrier() noexcept {
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

Threads::Threads(Arena& arena, SegmentSink& segments)
    : arena_(arena),
      segments_(segments),
      id_(next_engine_id()),
      asymmetric_(register_barrier()),
      registry_(std::make_shared<Registry>()) {}

Threads::~Threads() {
  const std::lock_guard lock{registry_->mutex};
  registry_->closed = true;
  // mo: acquire [threads.list]
  ThreadContext* context = registry_->head.load(std::memory_order_acquire);
  while (context != nullptr) {
    ThreadContext* const next = context->next;
    delete context;
    context = next;
  }
}

ThreadContext& Threads::bind() {
  for (const Bound& bound : bound_list.all) {
    if (bound.id == id_) {
      last_binding = {id_, bound.context};
      return *bound.context;
    }
  }
  std::erase_if(bound_list.all, [](const Bound& bound) { return bound.registry.expired(); });
  ThreadContext* context = adopt();
  if (context == nullptr) {
    context = new ThreadContext{arena_};
    // mo: relaxed, then release [threads.list]: the context is complete when it can be found.
    context->next = registry_->head.load(std::memory_order_relaxed);
    while (!registry_->head.compare_exchange_weak(context->next, context, std::memory_order_release,
                                                  std::memory_order_relaxed)) {
    }
  }
  bound_list.all.push_back({id_, context, registry_});
  last_binding = {id_, context};
  return *context;
}

ThreadContext* Threads::adopt() noexcept {
  ThreadContext* found = nullptr;
  for_each([&](ThreadContext& context) {
    // mo: relaxed: a look before the compare-and-set, which most contexts need not pay.
    if (found != nullptr || context.in_use.load(std::memory_order_relaxed)) return;
    bool in_use = false;
    // mo: acquire [threads.owner]; failure relaxed: nothing is read then.
    if (context.in_use.compare_exchange_strong(in_use, true, std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
      found = &context;
    }
  });
  return found;
}

void Threads::release(ThreadContext& context) noexcept {
  context.impatient = false;
  context.in_use.store(false, std::memory_order_release);  // mo: release [threads.owner]
}

void Threads::heavy_barrier() noexcept {
  if (asymmetric_) {
    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  } else {
    light_barrier();
  }
}

void Threads::light_barrier() noexcept {
  // mo: seq_cst [threads.announce]: pairs with the exchange in enter() and announce_again().
  barrier_.fetch_add(1, std::memory_order_seq_cst);
}

bool Threads::try_advance_epoch() noexcept {
  // mo: relaxed: the compare-and-set below decides.
  std::uint64_t epoch = epoch_.load(std::memory_order_relaxed);
  heavy_barrier();
  bool all_passed = true;
  for_each([&](ThreadContext& context) {
    // mo: acquire [threads.announce]: reads of ended operations happened before what follows.
    const std::uint64_t word = context.announce.load(std::memory_order_acquire);
    const bool inside = (word & 1) != 0;
    if (inside && ((word >> 1) & epoch_mask) != (epoch & epoch_mask)) all_passed = false;
  });
  if (!all_passed) return false;
  // mo: acq_rel [threads.epoch]: whoever sees the new epoch sees what this thread saw.
  return epoch_.compare_exchange_strong(epoch, epoch + 1, std::memory_order_acq_rel,
                                        std::memory_order_relaxed);
}

void Threads::free_old(ThreadContext& context) noexcept {
  // mo: acquire [threads.epoch]
  const std::uint64_t epoch = epoch_.load(std::memory_order_acquire);
  while (!context.limbo.empty() && context.limbo.front().epoch + 2 <= epoch) {
    const std::uint64_t what = context.limbo.front().what;
    context.limbo.pop_front();
    if (what > slot::handle_mask) {
      segments_.reuse_segment(reinterpret_cast<void*>(what));
    } else {
      context.cache.free(what);
    }
  }
}

void Threads::collect_now(ThreadContext& context) {
  // Three steps free everything if nobody is inside for long.
  for (int step = 0; step < 3 && !context.limbo.empty(); ++step) {
    if (!try_advance_epoch()) break;
    free_old(context);
  }
  context.cache.flush();
  collect_abandoned();
}

void Threads::take_back(ThreadContext& self) noexcept {
  collect_now(self);
}

void Threads::collect_all(ThreadContext& context) {
  // Three steps free everything if nobody is inside for long; a thread that stays inside keeps
  // only what it may be reading.
  for (int step = 0; step < 4; ++step) {
    if (!try_advance_epoch()) wait_for_others(context);
    free_old(context);
  }
  context.cache.flush();
  collect_abandoned();
}

void Threads::collect_abandoned() {
  std::vector<ThreadContext*> emptied;
  while (ThreadContext* gone = adopt()) {
    free_old(*gone);
    gone->cache.flush();
    emptied.push_back(gone);
  }
  for (ThreadContext* each : emptied) release(*each);
}

void Threads::wait_for_others(const ThreadContext& self, bool have_announced) noexcept {
  have_announced ? light_barrier() : heavy_barrier();
  for_each([&](ThreadContext& context) {
    if (&context == &self) return;
    // mo: acquire [threads.announce]: what the ended operation did is visible from here on.
    const std::uint64_t word = context.announce.load(std::memory_order_acquire);
    if ((word & 1) == 0) return;
    for (unsigned spins = 0; context.announce.load(std::memory_order_acquire) == word; ++spins) {
      if (spins > 1000) std::this_thread::yield();  // mo above: acquire [threads.announce]
    }
  });
}

std::uint64_t Threads::sum(Count which) noexcept {
  std::uint64_t total = 0;
  for_each([&](ThreadContext& context) {
    // mo: relaxed: see bump().
    total += context.counts[static_cast<std::size_t>(which)].load(std::memory_order_relaxed);
  });
  // One thread adds, another takes away: read in between, the sum may lie a little below zero.
  return static_cast<std::int64_t>(total) < 0 ? 0 : total;
}

}  // namespace semel::engine
