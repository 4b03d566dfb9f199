// A leaf of a list's tree: its values alone, as an end of a list has them (list_end.hpp).
//
//   head | u16 where the value begins, of each 16th | u8 length of each | bytes of the values
//
// The elements of a list have no keys, and no search looks at them: a length of a byte is all that
// an element takes beside itself. The length 255 means that the value lies in a run, and the leaf
// has the run's handle, 8 bytes, in place of the value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/assert.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// A value of so many bytes lies in a run.
inline constexpr std::size_t list_apart_min = 255;
inline constexpr std::uint8_t list_run_length = 255;
inline constexpr std::size_t list_handle_bytes = 8;
/// A leaf is copied for 16 pushes or pops at its end of the list; longer ones would save little.
inline constexpr unsigned list_leaf_entries_max = 512;
inline constexpr std::size_t list_leaf_bytes = 2048;  ///< with its head: a size of the arena
inline constexpr std::size_t list_leaf_head_bytes = 48;

/// Values that lie behind each other.
struct ListValues {
  const std::uint8_t* lengths = nullptr;
  const char* bytes = nullptr;
  unsigned count = 0;
  std::size_t stored = 0;  ///< bytes
  bool has_runs = false;
};

/// The sum of the eight bytes of `word`.
[[nodiscard]] constexpr unsigned sum_of_bytes(std::uint64_t word) noexcept {
  constexpr std::uint64_t even = 0x00ff00ff00ff00ff;
  const std::uint64_t sums = (word & even) + (word >> 8 & even);
  return static_cast<unsigned>(sums * 0x0001000100010001 >> 48);
}

[[nodiscard]] constexpr std::size_t list_stored_bytes(std::uint8_t length) noexcept {
  return length == list_run_length ? list_handle_bytes : length;
}

/// Reads a leaf from the end of its head on. Valid as long as the leaf is.
class ListLeaf {
 public:
  static constexpr unsigned block = 16;  ///< values, whose first has its begin noted down

  ListLeaf(const char* at, unsigned count, bool has_runs) noexcept
      : begins_(at), lengths_(lengths_of(at, count)), count_(count), has_runs_(has_runs) {}

  /// What lies before the values.
  [[nodiscard]] static constexpr std::size_t bytes_before(unsigned count) noexcept {
    return (count + block - 1) / block * sizeof(std::uint16_t) + count;
  }
  [[nodiscard]] unsigned count() const noexcept { return count_; }
  [[nodiscard]] std::uint8_t length(unsigned index) const noexcept { return lengths_[index]; }
  /// The value of `index`, or the handle of its run.
  [[nodiscard]] const char* at(unsigned index) const noexcept {
    SEMEL_ASSERT_SLOW(index < count_);
    return bytes() + begin_of(index);
  }
  /// Those of ranks `from` .. `to` - 1.
  [[nodiscard]] ListValues values(unsigned from, unsigned to) const noexcept {
    SEMEL_ASSERT(from <= to && to <= count_);
    if (from == to) return {};
    const std::size_t begin = begin_of(from);
    const std::size_t end = begin_of(to - 1) + list_stored_bytes(lengths_[to - 1]);
    return {lengths_ + from, bytes() + begin, to - from, end - begin, has_runs_};
  }

 private:
  [[nodiscard]] static const std::uint8_t* lengths_of(const char* at, unsigned count) noexcept {
    return reinterpret_cast<const std::uint8_t*>(at) + bytes_before(count) - count;
  }
  [[nodiscard]] const char* bytes() const noexcept {
    return reinterpret_cast<const char*>(lengths_ + count_);
  }
  [[nodiscard]] std::size_t begin_of(unsigned index) const noexcept {
    std::uint16_t begin;
    std::memcpy(&begin, begins_ + index / block * sizeof begin, sizeof begin);
    const unsigned before = index % block;
    return begin + (has_runs_ ? sum_with_runs(index - before, index) : sum_before(index, before));
  }
  /// Of the lengths of the `count` values before `index`. Eight at a time, and backward: bytes
  /// before the first length are the node's as well, for its head is longer than eight.
  [[nodiscard]] std::size_t sum_before(unsigned index, unsigned count) const noexcept {
    constexpr unsigned word_bytes = sizeof(std::uint64_t);
    std::size_t sum = 0;
    const std::uint8_t* end = lengths_ + index;
    for (std::uint64_t word; count > 0; end -= word_bytes) {
      std::memcpy(&word, end - word_bytes, word_bytes);
      if (count < word_bytes) return sum + sum_of_bytes(word >> (word_bytes - count) * 8);
      sum += sum_of_bytes(word);
      count -= word_bytes;
    }
    return sum;
  }
  [[nodiscard]] std::size_t sum_with_runs(unsigned from, unsigned to) const noexcept {
    std::size_t sum = 0;
    for (; from < to; ++from) sum += list_stored_bytes(lengths_[from]);
    return sum;
  }

  const char* begins_;
  const std::uint8_t* lengths_;
  unsigned count_;
  bool has_runs_;
};

/// The values of one or two leaves that are to be made.
class ListLeafDraft {
 public:
  // The arrays are not initialized: most changes need a part of them.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  ListLeafDraft() noexcept {}
  ListLeafDraft(const ListLeafDraft&) = delete;
  ListLeafDraft& operator=(const ListLeafDraft&) = delete;

  [[nodiscard]] unsigned count() const noexcept { return count_; }
  [[nodiscard]] bool has_runs() const noexcept { return has_runs_; }
  [[nodiscard]] ListValues values(unsigned from, unsigned to) const noexcept;
  void add(const ListValues& values) noexcept;
  /// A value, or the handle of its run.
  void add(std::uint8_t length, const char* stored) noexcept;
  void clear() noexcept {
    count_ = 0;
    stored_ = 0;
    has_runs_ = false;
  }
  /// Whether they are one leaf, with another value of `more` bytes.
  [[nodiscard]] bool has_room(std::size_t more) const noexcept {
    return count_ < list_leaf_entries_max && bytes_of(count_ + 1, stored_ + more) <= bytes_max;
  }
  [[nodiscard]] bool is_one_leaf() const noexcept {
    return count_ <= list_leaf_entries_max && bytes_of(count_, stored_) <= bytes_max;
  }
  /// How many of the first values, or of the last, fill a leaf.
  [[nodiscard]] unsigned first_of_full() const noexcept;
  [[nodiscard]] unsigned last_of_full() const noexcept;
  /// How many of the first values have half of the bytes; the rest fits into a leaf as well.
  [[nodiscard]] unsigned half() const noexcept;

  /// What they take behind a leaf's head.
  [[nodiscard]] static constexpr std::size_t bytes_of(unsigned count, std::size_t stored) noexcept {
    return ListLeaf::bytes_before(count) + stored;
  }
  /// Writes them, bytes_of() them.
  static void write(const ListValues& values, char* to) noexcept;

 private:
  static constexpr std::size_t bytes_max = list_leaf_bytes - list_leaf_head_bytes;

  unsigned count_ = 0;
  std::size_t stored_ = 0;
  bool has_runs_ = false;
  // Of two leaves, or of one and an end of the list.
  std::array<std::uint8_t, list_leaf_entries_max * 2> lengths_;
  std::array<char, list_leaf_bytes * 2> bytes_;
};

}  // namespace semel::engine
