#include "engine/keys/shard.hpp"

#include <bit>
#include <thread>

#include "base/assert.hpp"

namespace semel::engine {

namespace {

constexpr std::uint32_t recent_sections_many = 4;

/// Of the shards in a mask. Most sections hold one or two of 64.
std::size_t first_of(std::uint64_t mask) noexcept {
  return static_cast<std::size_t>(std::countr_zero(mask));
}

}  // namespace

bool Shard::wait_for_section(bool no_wait) noexcept {
  // mo: acquire [core.section]: the changes of an ended section are visible from here on.
  const std::uint32_t seen = section.load(std::memory_order_acquire);
  if (!is_held(seen)) return true;
  if (seen == held_long && no_wait) return false;
  // mo: acquire [core.section]: sleeps while a section holds the shard.
  section.wait(seen, std::memory_order_acquire);
  return true;
}

bool begin_section(std::span<Shard> shards, std::uint64_t mask, Threads& threads) {
  ThreadContext& own = threads.context();
  bool all_watched = true;
  for (std::uint64_t rest = mask; rest != 0; rest &= rest - 1) {
    const std::size_t i = first_of(rest);
    Shard& shard = shards[i];
    if (!own.no_wait) {
      shard.section_mutex.lock();
    } else {
      // A thread blocked on a mutex cannot give up; wait on the section word instead. The mutex is
      // held a little longer than the word is set, hence the loop.
      bool locked = false;
      while (!locked && shard.wait_for_section(true)) {
        locked = shard.section_mutex.try_lock();
        if (!locked) std::this_thread::yield();
      }
      if (!locked) {
        end_section(shards, mask & ((std::uint64_t{1} << i) - 1));
        return false;
      }
    }
    ++shard.recent_sections;
    // mo: seq_cst [core.section]: before the barrier in wait_for_others(). The old state was
    //     written under the mutex.
    const std::uint32_t before = shard.section.exchange(Shard::held_now, std::memory_order_seq_cst);
    all_watched = all_watched && before == Shard::watched;
  }
  threads.wait_for_others(own, all_watched);
  return true;
}

void prolong_section(std::span<Shard> shards, std::uint64_t mask) noexcept {
  for (; mask != 0; mask &= mask - 1) {
    Shard& shard = shards[first_of(mask)];
    // mo: release [core.section]: a section still holds the shard.
    shard.section.store(Shard::held_long, std::memory_order_release);
    shard.section.notify_all();
  }
}

void end_section(std::span<Shard> shards, std::uint64_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    Shard& shard = shards[first_of(mask)];
    const bool are_many = shard.recent_sections >= recent_sections_many;
    // mo: relaxed: only the section that ends writes it.
    SEMEL_ASSERT(Shard::is_held(shard.section.load(std::memory_order_relaxed)));
    // mo: release [core.section]
    shard.section.store(are_many ? Shard::watched : Shard::free, std::memory_order_release);
    shard.section.notify_all();
    shard.section_mutex.unlock();
  }
}

void unwatch_shards(std::span<Shard> shards) noexcept {
  for (Shard& shard : shards) {
    // Held by a section, which leaves the right state when it ends.
    base::MutexLock lock{shard.section_mutex, std::defer_lock};
    if (!lock.try_lock()) continue;
    const bool are_many = shard.recent_sections >= recent_sections_many;
    shard.recent_sections = 0;
    // mo: relaxed, then release [core.section]: written under the mutex alone.
    if (!are_many && shard.section.load(std::memory_order_relaxed) == Shard::watched)
      shard.section.store(Shard::free, std::memory_order_release);
  }
}

}  // namespace semel::engine
