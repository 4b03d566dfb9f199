#include "tests/proofs/allocations/failing_new.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace semel::proofs {
namespace {

constinit thread_local std::uint64_t left = 0;  // 0: not armed
constinit thread_local bool failed = false;
constinit std::atomic<std::int64_t> alive{0};

constinit std::atomic<bool> background_armed{false};
constinit std::atomic<bool> background_failed{false};
constinit std::atomic<std::uint64_t> background_first{0};
constinit std::atomic<std::uint64_t> background_more{0};
constinit std::atomic<std::uint64_t> background_count{0};
constinit std::atomic<bool> spares_asio{false};
constinit std::atomic<const char*> background_name{"semel:"};
constinit std::atomic<bool (*)() noexcept> background_spares{nullptr};

[[nodiscard]] bool is_background() noexcept {
  const char* const begin = background_name.load(std::memory_order_relaxed);  // mo: see below
  char name[16] = {};
  return prctl(PR_GET_NAME, name) == 0 && std::strncmp(name, begin, std::strlen(begin)) == 0;
}

[[nodiscard]] bool fails_in_background() noexcept {
  // mo: relaxed, all: a program that arms waits for what its threads do by other means
  if (!background_armed.load(std::memory_order_relaxed) || !is_background()) return false;
  const std::uint64_t number = background_count.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t first = background_first.load(std::memory_order_relaxed);  // mo: as above
  if (number < first) return false;
  // mo: relaxed: as above
  if (number - first > background_more.load(std::memory_order_relaxed)) return false;
  const auto spares = background_spares.load(std::memory_order_relaxed);  // mo: as above
  if (number != first && spares != nullptr && spares()) return false;
  background_failed.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
  return true;
}

[[nodiscard]] bool fails() noexcept {
  if (fails_in_background()) return true;
  if (left == 0 || --left != 0) return false;
  failed = true;
  return true;
}

[[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (fails()) return nullptr;
  alive.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes == 0 ? 1 : bytes);
  void* memory = nullptr;
  return ::posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}

void release(void* memory) noexcept {
  // mo: relaxed: a statistic
  if (memory != nullptr) alive.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

[[nodiscard]] void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}

}  // namespace

void FailingNew::arm(std::uint64_t which) noexcept {
  failed = false;
  left = which;
}

void FailingNew::hold() noexcept {
  left = 0;
}

std::int64_t FailingNew::live() noexcept {
  return alive.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
}

bool FailingNew::disarm() noexcept {
  left = 0;
  return failed;
}

void FailingNew::arm_background(std::uint64_t first, std::uint64_t more,
                                const char* name) noexcept {
  // mo: relaxed, all: see fails_in_background()
  background_failed.store(false, std::memory_order_relaxed);
  background_name.store(name, std::memory_order_relaxed);  // mo: as above
  background_count.store(0, std::memory_order_relaxed);
  background_first.store(first, std::memory_order_relaxed);  // mo: as above
  background_more.store(more, std::memory_order_relaxed);    // mo: as above
  background_armed.store(true, std::memory_order_relaxed);   // mo: as above
}

void FailingNew::spare_asio() noexcept {
  spares_asio.store(true, std::memory_order_relaxed);  // mo: relaxed: before it is armed
}

void FailingNew::spare(bool (*spares)() noexcept) noexcept {
  background_spares.store(spares, std::memory_order_relaxed);  // mo: relaxed: before it is armed
}

bool FailingNew::disarm_background() noexcept {
  // mo: relaxed: as above
  background_armed.store(false, std::memory_order_relaxed);
  return background_failed.load(std::memory_order_relaxed);  // mo: as above
}

}  // namespace semel::proofs

/// Where Asio takes the memory of what is posted.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  // mo: relaxed: set before it is armed
  const bool spared = semel::proofs::spares_asio.load(std::memory_order_relaxed);
  if (!spared && semel::proofs::fails()) return nullptr;
  void* memory = nullptr;
  const std::size_t least = std::max(alignment, sizeof(void*));
  return ::posix_memalign(&memory, least, bytes) == 0 ? memory : nullptr;
}

using semel::proofs::allocate;
using semel::proofs::or_throw;
using semel::proofs::release;

void* operator new(std::size_t bytes) {
  return or_throw(allocate(bytes, 1));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return or_throw(allocate(bytes, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes) {
  return operator new(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& none) noexcept {
  return operator new(bytes, none);
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  release(memory);
}
void operator delete[](void* memory) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  release(memory);
}
