#include "tests/proofs/allocations/failing_new.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace semel::proofs {
namespace {

constinit thread_local std::uint64_t left = 0;  // 0: not armed
constinit thread_local bool failed = false;
constinit std::atomic<std::int64_t> alive{0};

[[nodiscard]] bool fails() noexcept {
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

}  // namespace semel::proofs

/// Where Asio takes the memory of what is posted.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (semel::proofs::fails()) return nullptr;
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
