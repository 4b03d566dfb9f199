// A key of `semel dedup` under construction.
#pragma once

#include <cstddef>

#include "base/assert.hpp"
#include "semel/types.hpp"

namespace semel::tool {

/// Target of a part of a key. Never grows: a key beyond the capacity is too long anyway.
class KeyBuffer {
 public:
  KeyBuffer(char* data, std::size_t capacity) : data_(data), capacity_(capacity) {}

  void append(Bytes bytes);
  [[nodiscard]] Bytes bytes() const { return {data_, size_}; }
  /// The bytes requested, including those that did not fit.
  [[nodiscard]] std::size_t size_wanted() const { return size_ + lost_; }

  /// Removes the bytes appended since.
  struct Mark {
    std::size_t size;
    std::size_t lost;
  };
  [[nodiscard]] Mark mark() const { return {size_, lost_}; }
  void rewind(Mark mark) {
    SEMEL_ASSERT(mark.size <= size_ && mark.lost <= lost_);
    size_ = mark.size;
    lost_ = mark.lost;
  }

 private:
  char* data_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::size_t lost_ = 0;
};

}  // namespace semel::tool
