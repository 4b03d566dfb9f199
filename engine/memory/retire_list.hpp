// What a thread took out of the table and may not free yet, oldest first. A list of blocks with one
// in reserve, so that room can be made before a change and taking it out cannot fail after it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include "base/assert.hpp"

namespace semel::engine {

/// Belongs to one thread at a time.
class RetireList {
 public:
  struct Retired {
    // Handle, perhaps with large_bit; or segment_bit and the address of a segment.
    std::uint64_t what;
    std::uint64_t epoch;
  };
  /// No handle and no address has it. Addresses are not always larger than handles: not under
  /// valgrind, and not where the address space is short.
  static constexpr std::uint64_t segment_bit = std::uint64_t{1} << 63;
  /// Of the handle of a record that names a large object. Handles have 36 bits.
  static constexpr std::uint64_t large_bit = std::uint64_t{1} << 62;
  /// What reserve() promises room for: more than any operation on one key ever retires.
  static constexpr std::size_t block_size = 126;

  RetireList() = default;
  ~RetireList() {
    while (spare_ != nullptr) delete_spare();
    while (first_ != nullptr) delete_first();
  }
  RetireList(const RetireList&) = delete;
  RetireList& operator=(const RetireList&) = delete;

  /// True: the next block_size calls of push() succeed.
  [[nodiscard]] bool reserve() noexcept {
    if (spare_ == nullptr) [[unlikely]]
      spare_ = new (std::nothrow) Block;
    return spare_ != nullptr;
  }
  /// True: the next call of push() succeeds. Always once everything before it has been taken out,
  /// if reserve() has succeeded before.
  [[nodiscard]] bool has_room() noexcept {
    return (last_ != nullptr && filled_ < block_size) || reserve();
  }
  /// True: the next `count` calls of push() succeed.
  [[nodiscard]] bool reserve(std::size_t count) noexcept {
    if (!reserve()) return false;
    std::size_t room = block_size;
    for (const Block* block = spare_; block->next != nullptr; block = block->next) {
      room += block_size;
    }
    for (; room < count; room += block_size) {
      Block* const block = new (std::nothrow) Block;
      if (block == nullptr) return false;
      block->next = std::exchange(spare_, block);
    }
    return true;
  }
  /// Keeps one block of those that reserve() made.
  void trim() noexcept {
    while (spare_ != nullptr && spare_->next != nullptr) delete_spare();
  }
  /// False: there was no memory for the list; `retired` is lost, so its memory is never reused.
  bool push(Retired retired) noexcept {
    if (last_ == nullptr || filled_ == block_size) [[unlikely]] {
      if (!reserve()) return false;
      (last_ == nullptr ? first_ : last_->next) = spare_;
      if (last_ == nullptr) read_ = 0;
      last_ = spare_;
      spare_ = std::exchange(last_->next, nullptr);
      filled_ = 0;
    }
    SEMEL_ASSERT_SLOW(filled_ < block_size);
    last_->items[filled_++] = retired;
    return true;
  }
  /// The same of several of one epoch. Those for which there is no memory are lost.
  void push(std::span<const std::uint64_t> all, std::uint64_t epoch) noexcept {
    while (!all.empty() && push({all.front(), epoch})) {
      all = all.subspan(1);
      const std::size_t count = std::min(all.size(), block_size - filled_);
      Retired* to = last_->items.data() + filled_;
      for (const std::uint64_t what : all.first(count)) *to++ = {what, epoch};
      filled_ += count;
      all = all.subspan(count);
    }
  }
  [[nodiscard]] bool empty() const noexcept {
    return first_ == nullptr || (first_ == last_ && read_ == filled_);
  }
  /// Moves the oldest to `to`, as many as it has room for and this epoch or an earlier one has
  /// retired. Returns how many.
  [[nodiscard]] std::size_t pop(std::uint64_t newest, std::span<std::uint64_t> to) noexcept {
    std::size_t count = 0;
    while (count < to.size() && !empty()) {
      const std::size_t filled = first_ == last_ ? filled_ : block_size;
      const Retired* at = &first_->items[read_];
      const Retired* const end = at + std::min(filled - read_, to.size() - count);
      std::uint64_t* out = to.data() + count;
      for (; at != end && at->epoch <= newest; ++at) *out++ = at->what;
      count = static_cast<std::size_t>(out - to.data());
      read_ = static_cast<std::size_t>(at - first_->items.data());
      const bool has_met_newer = at != end;
      if (read_ == block_size) end_block();
      if (has_met_newer) break;
    }
    return count;
  }

 private:
  struct Block {
    Block* next = nullptr;
    std::array<Retired, block_size> items;
  };
  /// The first block has been read.
  void end_block() noexcept {
    if (first_ == last_) {  // full, and read: begin again
      read_ = filled_ = 0;
      return;
    }
    read_ = 0;
    if (spare_ != nullptr) return delete_first();
    spare_ = first_;
    first_ = first_->next;
    spare_->next = nullptr;
  }
  void delete_spare() noexcept { delete std::exchange(spare_, spare_->next); }
  void delete_first() noexcept {
    Block* const next = first_->next;
    delete first_;
    first_ = next;
  }

  Block* first_ = nullptr;
  Block* last_ = nullptr;
  Block* spare_ = nullptr;
  std::size_t read_ = 0;    // of the first block
  std::size_t filled_ = 0;  // of the last block
};

}  // namespace semel::engine
