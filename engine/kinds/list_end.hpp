// The ends of a large list: a few short elements at its head and at its tail, which lie in the
// version itself and not in its tree. A push or a pop copies them, and no path of the tree.
//
//   behind the version   u8 length of each element of the head, then of the tail | their bytes
//
// The elements of a list are those of its head, of its tree and of its tail, in this order. An end
// that is full gives the half that is nearer to the tree to the tree; one that is empty takes some
// elements from it. So of 16 pushes or pops one changes the tree, and that change moves 16.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/assert.hpp"
#include "engine/kinds/packed_object.hpp"

namespace semel::engine {

inline constexpr unsigned list_end_elements_max = 32;
inline constexpr unsigned list_end_bytes_max = 1024;
/// A longer value lies in the tree, in a run.
inline constexpr std::size_t list_end_value_max = 254;

/// How long the ends of a version are.
struct ListEndSizes {
  std::uint8_t head = 0;  ///< elements
  std::uint8_t tail = 0;
  std::uint16_t head_bytes = 0;
  std::uint16_t tail_bytes = 0;

  [[nodiscard]] std::size_t bytes() const noexcept {
    return std::size_t{head} + tail + head_bytes + tail_bytes;
  }
};

/// Reads the elements of one end. Valid as long as those bytes are.
class EndElements {
 public:
  EndElements() noexcept = default;
  EndElements(const std::uint8_t* lengths, const char* bytes, unsigned count) noexcept
      : lengths_(lengths), bytes_(bytes), count_(count) {}

  [[nodiscard]] unsigned size() const noexcept { return count_; }
  [[nodiscard]] const std::uint8_t* lengths() const noexcept { return lengths_; }
  [[nodiscard]] Bytes at(unsigned index) const noexcept {
    SEMEL_ASSERT_SLOW(index < count_);
    unsigned begin = 0;
    for (unsigned i = 0; i < index; ++i) begin += lengths_[i];
    return {bytes_ + begin, lengths_[index]};
  }
  /// It has no key.
  [[nodiscard]] Element element(unsigned index) const noexcept { return element_of(at(index)); }
  /// Calls `visit(Element)` for the elements `from` .. `to` - 1, in order, until it returns false:
  /// then it returns false.
  template <class Visit>
  bool each(unsigned from, unsigned to, Visit&& visit) const {
    if (from >= to) return true;
    for (const char* next = at(from).data(); from < to; next += lengths_[from++]) {
      if (!visit(element_of({next, lengths_[from]}))) return false;
    }
    return true;
  }
  /// The same from `to` - 1 down to `from`.
  template <class Visit>
  bool each_back(unsigned from, unsigned to, Visit&& visit) const {
    if (from >= to) return true;
    for (const char* next = at(to - 1).data();; next -= lengths_[to - 1]) {
      --to;
      if (!visit(element_of({next, lengths_[to]}))) return false;
      if (to == from) return true;
    }
  }

 private:
  [[nodiscard]] static Element element_of(Bytes value) noexcept {
    return {value.substr(0, 0), value};
  }

  const std::uint8_t* lengths_ = nullptr;
  const char* bytes_ = nullptr;
  unsigned count_ = 0;
};

/// One end, while it is being changed.
class EndDraft {
 public:
  // The arrays are not initialized: an edit of few elements does not pay for all.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  EndDraft() noexcept {}

  [[nodiscard]] unsigned size() const noexcept { return count_; }
  [[nodiscard]] unsigned bytes() const noexcept { return bytes_; }
  [[nodiscard]] const char* data() const noexcept { return all_.data(); }
  [[nodiscard]] EndElements view() const noexcept { return {lengths_.data(), all_.data(), count_}; }
  [[nodiscard]] bool has_room(std::size_t bytes) const noexcept {
    return bytes <= list_end_value_max && count_ < list_end_elements_max &&
           bytes_ + bytes <= list_end_bytes_max;
  }
  /// The same when an element of `gone` bytes has left.
  [[nodiscard]] bool has_room_without(std::size_t gone, std::size_t bytes) const noexcept {
    return bytes <= list_end_value_max && bytes_ - gone + bytes <= list_end_bytes_max;
  }
  /// More than half full: an end that is to make room goes down to that.
  [[nodiscard]] bool is_above_half() const noexcept {
    return count_ > list_end_elements_max / 2 || bytes_ > list_end_bytes_max / 2;
  }

  void assign(const EndElements& from, unsigned bytes) noexcept;
  /// Of a value that has_room(), and that is no element of this.
  void insert(unsigned index, Bytes value) noexcept;
  void erase(unsigned from, unsigned to) noexcept;
  void clear() noexcept { count_ = bytes_ = 0; }

 private:
  [[nodiscard]] unsigned begin_of(unsigned index) const noexcept;

  unsigned count_ = 0;
  unsigned bytes_ = 0;
  std::array<std::uint8_t, list_end_elements_max> lengths_;
  std::array<char, list_end_bytes_max> all_;
};

}  // namespace semel::engine
