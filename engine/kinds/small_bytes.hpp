// Bytes that are made for one call: on the stack, unless they are many.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "semel/types.hpp"

namespace semel::engine {

/// Of a size that is known before they are written. std::bad_alloc.
class SmallBytes {
 public:
  // The array is not initialized: few bytes of it are used.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  explicit SmallBytes(std::size_t size) : size_(size) {
    if (size > own_.size()) many_ = std::make_unique_for_overwrite<char[]>(size);
  }
  SmallBytes(const SmallBytes&) = delete;
  SmallBytes& operator=(const SmallBytes&) = delete;

  [[nodiscard]] char* data() noexcept { return many_ ? many_.get() : own_.data(); }
  [[nodiscard]] Bytes bytes() const noexcept { return {many_ ? many_.get() : own_.data(), size_}; }
  operator Bytes() const noexcept { return bytes(); }

 private:
  const std::size_t size_;
  std::array<char, 112> own_;
  std::unique_ptr<char[]> many_;
};

}  // namespace semel::engine
