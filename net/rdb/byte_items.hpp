// Many short byte strings behind each other: what a packed list of redis-server holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"

namespace semel::net {

/// A string takes its bytes and four more. Up to 4 GiB together, see would_fit().
class ByteItems {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] bool empty() const noexcept { return ends_.empty(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    SEMEL_ASSERT_SLOW(i < size());
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view{bytes_}.substr(begin, ends_[i] - begin);
  }
  [[nodiscard]] bool would_fit(std::size_t more) const noexcept {
    return more <= UINT32_MAX - bytes_.size();
  }
  void add(std::string_view item) {
    bytes_.append(item);
    end_item();
  }
  /// For one that is made in place: append to it, and then end_item().
  [[nodiscard]] std::string& open() noexcept { return bytes_; }
  void end_item() {
    SEMEL_ASSERT(bytes_.size() <= UINT32_MAX);
    ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace semel::net
