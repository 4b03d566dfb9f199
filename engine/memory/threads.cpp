#include "engine/memory/threads.hpp"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace semel::engine {

constinit thread_local Threads::Binding Threads::last_binding{0, nullptr};

namespace {

/// What a thread holds on to for each engine it has been in. Its end lets the contexts go.
struct Bound {
  std::uint64_t id;
  ThreadContext* context;
  std::weak_ptr<Threads::Registry> registry;
};
using BoundList = std::vector<Bound>;
// A plain pointer, and no object with a destructor: destructors that run at the end of the thread
// may call the engine, however late.
constinit thread_local BoundList* bound_list = nullptr;

/// Calls end_thread() when a thread ends, after the destructors of its thread_local objects.
class EndOfThreads {
 public:
  static void watch(BoundList* list) noexcept {
    static EndOfThreads the_process;
    // mo: acquire [threads.key]
    if (the_process.usable_.load(std::memory_order_acquire)) {
      pthread_setspecific(the_process.key_, list);  // fails: the contexts stay with the engine
    }
  }

 private:
  EndOfThreads() noexcept : usable_(pthread_key_create(&key_, &end_thread) == 0) {}
  // At the end of the process, or when a library that holds an engine is unloaded: what threads are
  // left keep their contexts.
  ~EndOfThreads() {
    // mo: acq_rel [threads.key]: a library loaded next may be given the same key.
    if (usable_.exchange(false, std::memory_order_acq_rel)) pthread_key_delete(key_);
  }
  static void end_thread(void* list) noexcept;

  pthread_key_t key_{};
  std::atomic<bool> usable_;
};

void EndOfThreads::end_thread(void* list) noexcept {
  const std::unique_ptr<BoundList> ended{static_cast<BoundList*>(list)};
  bound_list = nullptr;  // another key's destructor may call the engine after this one
  Threads::forget_last();
  for (Bound& bound : *ended) {
    const auto registry = bound.registry.lock();
    if (!registry) continue;
    const base::MutexLock lock{registry->mutex};
    if (registry->closed) continue;
    // mo: release [threads.owner]: the next owner sees the context's fields as they are.
    bound.context->in_use.store(false, std::memory_order_release);
  }
}

std::uint64_t next_engine_id() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;  // mo: relaxed: only uniqueness matters
}

bool membarrier(int command) noexcept {
  return syscall(__NR_membarrier, command, 0, 0) == 0;
}

}  // namespace

const Barrier& Barrier::of_kernel() noexcept {
  static constexpr Barrier kernel{
      []() noexcept { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); },
      []() noexcept { return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }};
  return kernel;
}

Threads::Threads(Arena& arena, SegmentSink& segments, const Barrier& barrier)
    : arena_(arena),
      segments_(segments),
      id_(next_engine_id()),
      membarrier_(barrier),
      // A filter on system calls may let the one pass and not the other.
      asymmetric_(barrier.prepare() && barrier.run()),
      registry_(std::make_shared<Registry>()) {}

Threads::~Threads() {
  const base::MutexLock lock{registry_->mutex};
  registry_->closed = true;
  // mo: acquire [threads.list]
  ThreadContext* context = registry_->head.load(std::memory_order_acquire);
  while (context != nullptr) {
    ThreadContext* const next = context->next;
    delete context;
    context = next;
  }
}

void Threads::forget_last() noexcept {
  last_binding = {0, nullptr};
}

void Threads::forget_bindings() noexcept {
  forget_last();
  if (bound_list == nullptr) return;
  // What it names belongs to the parent, and a registry may be locked by a thread that is not here.
  bound_list = nullptr;
  EndOfThreads::watch(nullptr);
}

ThreadContext* Threads::try_bind() noexcept {
  if (is_forked()) return nullptr;
  try {
    return bind();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

ThreadContext* Threads::bind() {
  if (bound_list == nullptr) {
    bound_list = new BoundList;
    EndOfThreads::watch(bound_list);
  }
  for (const Bound& bound : *bound_list) {
    if (bound.id == id_) {
      last_binding = {id_, bound.context};
      return bound.context;
    }
  }
  std::erase_if(*bound_list, [](const Bound& bound) { return bound.registry.expired(); });
  // Reserved before a context is taken: after a failure it could not be returned.
  if (bound_list->size() == bound_list->capacity()) bound_list->reserve(bound_list->size() * 2 + 4);
  ThreadContext* context = is_forked() ? nullptr : adopt();
  if (context == nullptr) {
    context = new ThreadContext{arena_};
    // mo: relaxed, then release [threads.list]: the context is complete when it can be found.
    context->next = registry_->head.load(std::memory_order_relaxed);
    while (!registry_->head.compare_exchange_weak(context->next, context, std::memory_order_release,
                                                  std::memory_order_relaxed)) {
    }
  }
  context->no_wait = false;
  context->own_state = false;
  context->client_size = 0;
  context->section = nullptr;
  context->ticket = 0;
  bound_list->push_back({id_, context, registry_});
  last_binding = {id_, context};
  return context;
}

bool Threads::try_adopt(ThreadContext& context) noexcept {
  // mo: relaxed: a check before the compare-and-set, which most contexts need not pay.
  if (context.in_use.load(std::memory_order_relaxed)) return false;
  bool in_use = false;
  // mo: acquire [threads.owner]; failure relaxed: nothing is read then.
  return context.in_use.compare_exchange_strong(in_use, true, std::memory_order_acquire,
                                                std::memory_order_relaxed);
}

ThreadContext* Threads::adopt() noexcept {
  ThreadContext* found = nullptr;
  for_each([&](ThreadContext& context) {
    if (found == nullptr && try_adopt(context)) found = &context;
  });
  return found;
}

void Threads::release(ThreadContext& context) noexcept {
  context.no_wait = false;
  context.own_state = false;
  context.client_size = 0;
  context.in_use.store(false, std::memory_order_release);  // mo: release [threads.owner]
}

/// ThreadSanitizer does not know fences; there the exchange next to each call says what it needs to
/// know.
void Threads::full_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
#elif defined(__has_feature)
#if !__has_feature(thread_sanitizer)
  std::atomic_thread_fence(std::memory_order_seq_cst);  // mo: seq_cst [threads.announce]
#endif
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);  // mo: seq_cst [threads.announce]
#endif
}

void Threads::announce(ThreadContext& context, std::uint64_t word) noexcept {
  // mo: seq_cst [threads.announce]: without membarrier this side pays for the order.
  context.announce.exchange(word, std::memory_order_seq_cst);
  full_fence();
}

void Threads::heavy_barrier() noexcept {
  // mo: relaxed: set once, and the fence below is needed when it is.
  if (asymmetric_.load(std::memory_order_relaxed)) {
    if (membarrier_.run()) return;
    barrier_failed();
  }
  light_barrier();
}

void Threads::barrier_failed() noexcept {
  // Perhaps it was forgotten; else nothing is left but announcements that pay themselves.
  if (membarrier_.prepare() && membarrier_.run()) return;
  asymmetric_.store(false,
                    std::memory_order_relaxed);  // mo: relaxed: the wait below makes up for it
  // A store without a fence can be seen after microseconds, and so can the change above: those who
  // announced themselves without a fence have done so for all to see when this ends.
  base::Mutex mutex;
  base::Condition never;
  base::MutexLock lock{mutex};
  never.wait_for(lock, std::chrono::milliseconds{20});
}

void Threads::light_barrier() noexcept {
  // mo: seq_cst [threads.announce]: pairs with announce().
  barrier_.fetch_add(1, std::memory_order_seq_cst);
  full_fence();
}

bool Threads::try_advance_epoch() noexcept {
  // mo: relaxed: the compare-and-set below decides.
  std::uint64_t epoch = epoch_.load(std::memory_order_relaxed);
  heavy_barrier();
  bool all_passed = true;
  for_each([&](ThreadContext& context) {
    // mo: acquire [threads.announce]: reads of ended operations happened before the advance.
    const std::uint64_t word = context.announce.load(std::memory_order_acquire);
    const bool inside = (word & 1) != 0;
    if (inside && ((word >> 1) & epoch_mask) != (epoch & epoch_mask)) all_passed = false;
  });
  if (!all_passed) return false;
  // mo: acq_rel [threads.epoch]: a thread that sees the new epoch sees what this one saw.
  return epoch_.compare_exchange_strong(epoch, epoch + 1, std::memory_order_acq_rel,
                                        std::memory_order_relaxed);
}

void Threads::free_old(ThreadContext& context) noexcept {
  // mo: acquire [threads.epoch]
  const std::uint64_t epoch = epoch_.load(std::memory_order_acquire);
  std::array<std::uint64_t, free_every> old;
  std::size_t count = old.size();
  while (count == old.size()) {
    count = epoch < 2 ? 0 : context.retired.pop(epoch - 2, old);
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < count; ++i) bits |= old[i];
    if ((bits & (RetireList::segment_bit | RetireList::large_bit)) == 0) [[likely]] {
      context.cache.free(std::span{old}.first(count));
      continue;
    }
    std::size_t records = 0;
    for (const std::uint64_t what : std::span{old}.first(count)) {
      if ((what & RetireList::segment_bit) != 0) [[unlikely]] {
        segments_.reuse_segment(reinterpret_cast<void*>(what & ~RetireList::segment_bit));
        continue;
      }
      const Handle handle = what & ~RetireList::large_bit;
      if (handle != what) [[unlikely]]
        large_->release_large(context, handle);
      old[records++] = handle;
    }
    context.cache.free(std::span{old}.first(records));
  }
}

void Threads::collect_now(ThreadContext& context, bool by_step) noexcept {
  if (by_step) {
    context.retired_count = context.retired_bytes = 0;
    if (try_advance_epoch()) free_old(context);
    return;
  }
  // Three steps free everything if no thread stays inside for long.
  for (int step = 0; step < 3 && !context.retired.empty(); ++step) {
    if (!try_advance_epoch()) break;
    free_old(context);
  }
  context.cache.flush();
  collect_abandoned();
}

void Threads::collect_all(ThreadContext& context) {
  // Three steps free everything if no thread stays inside for long; one that does keeps
  // only what it may be reading.
  for (int step = 0; step < 4; ++step) {
    if (!try_advance_epoch()) wait_for_others(context);
    free_old(context);
  }
  context.cache.flush();
  collect_abandoned();
}

void Threads::collect_some(ThreadContext& context) noexcept {
  constexpr std::uint64_t looks =
      1'020;  // some yields: each may take long where others want to run
  for (int step = 0; step < 4; ++step) {
    if (!try_advance_epoch() && !wait_for_others(context, false, looks)) break;
    free_old(context);
  }
  context.cache.flush();
  collect_abandoned();
}

void Threads::collect_abandoned() noexcept {
  for_each([&](ThreadContext& context) {
    if (!try_adopt(context)) return;
    free_old(context);
    context.cache.flush();
    release(context);
  });
}

bool Threads::wait_for_others(const ThreadContext& self, bool have_announced,
                              std::uint64_t looks) noexcept {
  have_announced ? light_barrier() : heavy_barrier();
  bool all_left = true;
  for_each([&](ThreadContext& context) {
    if (&context == &self) return;
    // mo: acquire [threads.announce]: what the ended operation did is visible from here on.
    const std::uint64_t word = context.announce.load(std::memory_order_acquire);
    if ((word & 1) == 0) return;
    for (std::uint64_t spins = 0; context.announce.load(std::memory_order_acquire) == word;
         ++spins) {
      // mo above: acquire [threads.announce]
      if (looks == 0 || is_forked()) {
        all_left = false;  // the other threads do not exist in a child of fork()
        return;
      }
      if (looks != ~std::uint64_t{0}) --looks;
      if (spins > 1000) std::this_thread::yield();
    }
  });
  return all_left;
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
