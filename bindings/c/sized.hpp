// Structs whose first member is their size, so that callers and library of different releases
// understand each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "bindings/c/lengths.hpp"

namespace semel::c {

/// SEMEL_OK: it can be the size of a struct.
int check_size(std::size_t size, std::size_t least) noexcept;
int say_size(std::size_t size, std::size_t least) noexcept;
int say_tail(std::size_t offset) noexcept;
/// Bytes of the caller's own; false: no memory.
[[nodiscard]] bool put(semel_buffer& buffer, Bytes bytes) noexcept;

/// Reads the caller's struct; members that it lacks are zero. Bytes behind the known members must
/// be zero.
template <class T>
int read_sized(const T* given, T& known) noexcept {
  std::memset(static_cast<void*>(&known), 0, sizeof known);
  known.size = sizeof known;
  if (given == nullptr) return SEMEL_OK;
  const std::size_t size = given->size;
  if (const int error = check_size(size, sizeof size)) return error;
  const char* const bytes = reinterpret_cast<const char*>(given);
  for (std::size_t i = sizeof known; i < size; ++i) {
    if (bytes[i] != 0) return say_tail(i);
  }
  std::memcpy(static_cast<void*>(&known), bytes, std::min(size, sizeof known));
  known.size = sizeof known;
  return SEMEL_OK;
}

/// The number of buffers of an outcome. They follow its size, so each release of it has them.
template <class T>
struct BuffersOf {
  static constexpr std::size_t count = 0;
};
template <>
struct BuffersOf<semel_set_result> {
  static constexpr std::size_t count = 1;
};
template <>
struct BuffersOf<semel_value> {
  static constexpr std::size_t count = 1;
};
template <>
struct BuffersOf<semel_claim_outcome> {
  static constexpr std::size_t count = 2;
};
template <>
struct BuffersOf<semel_owner_outcome> {
  static constexpr std::size_t count = 1;
};
template <>
struct BuffersOf<semel_claim_view> {
  static constexpr std::size_t count = 2;
};
template <>
struct BuffersOf<semel_decision> {
  static constexpr std::size_t count = 4;
};
template <>
struct BuffersOf<semel_debounce_turn> {
  static constexpr std::size_t count = 2;
};
template <>
struct BuffersOf<semel_debounce_view> {
  static constexpr std::size_t count = 1;
};
template <>
struct BuffersOf<semel_once_outcome> {
  static constexpr std::size_t count = 2;
};
template <>
struct BuffersOf<semel_consumed> {
  static constexpr std::size_t count = 1;
};

/// An outcome that is filled here and then copied as far as the caller's struct goes. NULL: the
/// caller wants none.
template <class T>
class Answer {
 public:
  static constexpr std::size_t buffers = BuffersOf<T>::count;
  static constexpr std::size_t least = sizeof(std::size_t) + buffers * sizeof(semel_buffer);

  explicit Answer(T* to) noexcept : to_(to) {
    std::memset(static_cast<void*>(&mine_), 0, sizeof mine_);
    if (to_ == nullptr) return;
    size_ = to_->size;
    error_ = check_size(size_, least);
    if (error_ == SEMEL_OK) release(*to_);
  }
  ~Answer() { release(mine_); }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  /// Not SEMEL_OK: the caller's struct cannot be filled, so nothing is to be done.
  [[nodiscard]] int error() const noexcept { return error_; }
  T* operator->() noexcept { return &mine_; }

  /// Returns `error`, or outcome_unknown if the answer could not be copied.
  int deliver(int error) noexcept {
    if (copy_failed_) error = say_unknown_outcome("no memory for the answer");
    if (to_ == nullptr) return error;
    SEMEL_ASSERT(error_ == SEMEL_OK && size_ >= least);
    char* const bytes = reinterpret_cast<char*>(to_);
    if (size_ > sizeof mine_) std::memset(bytes + sizeof mine_, 0, size_ - sizeof mine_);
    mine_.size = size_;
    std::memcpy(bytes, &mine_, std::min(size_, sizeof mine_));
    std::memset(static_cast<void*>(&mine_), 0, sizeof mine_);
    return error;
  }
  void set(semel_buffer& buffer, Bytes bytes) noexcept {
    if (to_ != nullptr && !put(buffer, bytes)) copy_failed_ = true;
  }

 private:
  static void release(T& outcome) noexcept {
    char* const first = reinterpret_cast<char*>(&outcome) + sizeof(std::size_t);
    for (std::size_t i = 0; i < buffers; ++i) {
      semel_buffer_free(reinterpret_cast<semel_buffer*>(first + i * sizeof(semel_buffer)));
    }
  }

  T* to_;
  T mine_;
  std::size_t size_ = 0;
  int error_ = SEMEL_OK;
  bool copy_failed_ = false;
};

/// Checks common to all batches: the count, and the sizes of input and output structs.
template <class T>
int check_batch(std::size_t count, std::size_t in_size, std::size_t out_size) noexcept {
  if (count > limits::batch_max) {
    return guarded([&] {
      return say(ErrorCode::too_many_keys, "a batch of " + std::to_string(count) + ", at most " +
                                               std::to_string(limits::batch_max));
    });
  }
  if (const int error = check_size(in_size, sizeof in_size)) return error;
  return check_size(out_size, Answer<T>::least);
}

/// Item i of an array whose items have the caller's size.
template <class T>
T* item(T* items, std::size_t size, std::size_t i) noexcept {
  SEMEL_ASSERT(size >= sizeof(std::size_t));  // check_batch()
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(items) + i * size);
}

/// The caller's array has `count` outcomes of one size. No item beyond `most` is looked at.
template <class T>
int check_items(T* items, std::size_t count, std::size_t most) {
  const std::size_t size = items->size;
  if (const int error = check_size(size, Answer<T>::least)) return error;
  if (count > most) {
    return say(ErrorCode::bad_option,
               "count = " + std::to_string(count) + ", allowed 1.." + std::to_string(most));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t other = item(items, size, i)->size;
    if (other != size) return say_size(other, size);
  }
  return SEMEL_OK;
}

/// Fills the first of the caller's items. Errors: outcome_unknown (no memory for one).
template <class T, class From, class Fill>
int fill_items(T* items, const std::vector<From>& from, Fill&& fill) {
  const std::size_t size = items->size;
  int error = SEMEL_OK;
  for (std::size_t i = 0; i < from.size(); ++i) {
    Answer answer{item(items, size, i)};
    fill(answer, from[i]);
    if (const int undelivered = answer.deliver(SEMEL_OK)) error = undelivered;
  }
  return error;
}

}  // namespace semel::c
