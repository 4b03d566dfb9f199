// The connections of one io thread by name: a slot and its generation, so that an old name finds no
// connection. On that thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "net/server/socket_connection.hpp"
#include "net/server/waker.hpp"

namespace semel::net {

/// Names leave their highest bit to others: it is never set.
///
/// Invariant: connections + free slots == slots, between calls.
class ConnectionTable {
 public:
  [[nodiscard]] std::size_t slots() const noexcept { return slots_.size(); }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// Null: the slot is free.
  [[nodiscard]] SocketConnection* at(std::size_t slot) const noexcept {
    SEMEL_ASSERT(slot < slots_.size());
    return slots_[slot].connection.get();
  }
  [[nodiscard]] static std::size_t slot_of(ConnectionName name) noexcept {
    return static_cast<std::uint32_t>(name);
  }
  /// Null: it has ended.
  [[nodiscard]] SocketConnection* find(ConnectionName name) const noexcept {
    const std::size_t slot = slot_of(name);
    return slot < slots_.size() && name_of(slot) == name ? at(slot) : nullptr;
  }

  /// Adds the connection that `make(name)` returns, and returns its slot. What it throws leaves the
  /// table as it was.
  template <class Make>
  std::size_t add(Make&& make) {
    if (free_.empty()) {
      if (slots_.size() == slots_.capacity()) slots_.reserve(2 * slots_.size() + 1);
      free_.reserve(slots_.capacity());  // so that a connection's end needs no memory
      slots_.emplace_back();
      free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
    }
    const std::size_t slot = free_.back();
    slots_[slot].connection = make(name_of(slot));
    free_.pop_back();
    ++count_;
    check_invariants();
    return slot;
  }
  /// True: the slot's connection was done, and is gone.
  bool remove_if_done(std::size_t slot) noexcept {
    if (at(slot) == nullptr || !at(slot)->is_done()) return false;
    slots_[slot].connection.reset();
    ++slots_[slot].generation;
    free_.push_back(static_cast<std::uint32_t>(slot));
    --count_;
    check_invariants();
    return true;
  }

 private:
  struct Slot {
    std::unique_ptr<SocketConnection> connection{};
    std::uint32_t generation = 0;
  };

  [[nodiscard]] ConnectionName name_of(std::size_t slot) const noexcept {
    constexpr std::uint32_t generation_mask = 0x7fff'ffff;
    return ConnectionName{slots_[slot].generation & generation_mask} << 32U | slot;
  }
  void check_invariants() const noexcept { SEMEL_ASSERT(count_ + free_.size() == slots_.size()); }

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t count_ = 0;
};

}  // namespace semel::net
