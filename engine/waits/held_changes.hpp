// Keys that have changed and whose waiters are to be tried later: when the command that changed
// them has been finished, or when the waiter that was served by changing them has been.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "semel/types.hpp"

namespace semel::engine {

class HeldChanges {
 public:
  struct Key {
    std::uint8_t db;
    std::string key;
  };

  void add(std::uint8_t db, Bytes key) noexcept {
    if (taken_ < keys_.size() && keys_.back().db == db && keys_.back().key == key) return;
    try {
      keys_.push_back({db, std::string{key}});
    } catch (const std::bad_alloc&) {
      is_incomplete_ = true;
    }
  }
  /// The first, which is none of them any more.
  [[nodiscard]] std::optional<Key> take() noexcept {
    if (taken_ == keys_.size()) {
      keys_.clear();
      taken_ = 0;
      return std::nullopt;
    }
    return std::move(keys_[taken_++]);
  }
  /// Any key may have changed.
  void add_all() noexcept { is_incomplete_ = true; }
  /// Whether that was so, or there was no memory for a key, since the last call.
  [[nodiscard]] bool take_incomplete() noexcept { return std::exchange(is_incomplete_, false); }

 private:
  std::vector<Key> keys_;
  std::size_t taken_ = 0;  // of them, from the front
  bool is_incomplete_ = false;
};

}  // namespace semel::engine
