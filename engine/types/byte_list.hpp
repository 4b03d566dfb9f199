// Many short texts one behind the other: what a computation over elements has found.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "semel/types.hpp"

namespace semel::engine {

class ByteList {
 public:
  /// std::bad_alloc.
  void append(Bytes text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }
  void clear() noexcept {
    bytes_.clear();
    ends_.clear();
  }
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] bool empty() const noexcept { return ends_.empty(); }
  /// `i` < size(). Valid until the next change.
  [[nodiscard]] Bytes at(std::size_t i) const noexcept {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return Bytes{bytes_}.substr(begin, ends_[i] - begin);
  }
  /// About what it takes.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_.size() + ends_.size() * sizeof(std::size_t);
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

}  // namespace semel::engine
