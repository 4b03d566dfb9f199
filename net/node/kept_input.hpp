// Input of a connection that has not run yet: a request that is not whole, or that waits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "net/resp/release_capacity.hpp"

namespace semel::net {

class KeptInput {
 public:
  /// Valid until the next change.
  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::size_t spare() const noexcept { return bytes_.capacity() - bytes_.size(); }

  /// Appends. The room grows in steps up to the `wanted` further bytes that the request has
  /// announced, so that an announcement alone costs little memory.
  void keep(std::string_view bytes, std::size_t wanted) {
    const std::size_t size = bytes_.size() + bytes.size();
    if (size > bytes_.capacity()) {
      constexpr std::size_t step = 4096;
      std::string larger;
      larger.reserve(std::max(size, std::min(size + wanted, 2 * bytes_.size() + step)));
      larger.append(bytes_);
      bytes_.swap(larger);
    }
    bytes_.append(bytes);
  }
  /// The first `count` bytes have run. Releases the room when nothing is left, and shrinks it after
  /// a large request.
  void drop(std::size_t count) {
    SEMEL_ASSERT(count <= bytes_.size());
    bytes_.erase(0, count);
    constexpr std::size_t room_kept = 4096;
    if (bytes_.empty()) {
      give_back(bytes_);
    } else if (bytes_.capacity() > 2 * bytes_.size() + room_kept) {
      bytes_.shrink_to_fit();
    }
  }
  /// Memory that it holds. Up to where the system gives pages as they are written to, the whole
  /// room counts.
  [[nodiscard]] std::size_t held() const noexcept {
    constexpr std::size_t in_pages = std::size_t{128} << 10;
    if (bytes_.empty()) return 0;
    return std::max(bytes_.size(), std::min(bytes_.capacity(), in_pages));
  }

 private:
  std::string bytes_;
};

}  // namespace semel::net
