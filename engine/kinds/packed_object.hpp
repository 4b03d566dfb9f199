// An object of many elements as the value of one record: elements in the order of their keys, or,
// of a list, in its own.
//
//   small, up to 128 elements   u8 form | varint elements | elements
//   indexed, from 129 on        u8 form | u32 elements | elements | u32 place of each element
//
//   element   [varint key bytes] [varint value bytes] [key] [value]
//   form      bit 0 elements have keys, bit 1 they have values, bit 2 indexed, bits 4..7: 1
//
// What elements do not have takes no byte: members of a set have no values, and elements of a list
// no keys. A place counts from the first element. Numbers are little-endian; a varint has seven
// bits a byte, the lowest first.
//
// A change writes the value anew, so it costs what the record is long.
//
// The bytes may come from a disk. Reading never leaves them, whatever they are; is_sound() looks at
// all of them, once, where they come in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "base/assert.hpp"
#include "semel/types.hpp"

namespace semel::engine {

struct Element {
  Bytes key;
  Bytes value;
};

/// Which parts the elements of a kind have.
enum class ElementParts : std::uint8_t { keys = 1, values = 2, both = 3 };

inline constexpr std::size_t small_elements_max = 128;

class PackedObject {
 public:
  /// Of no record: an object without elements.
  PackedObject() noexcept = default;
  /// `value` must live as long as this.
  PackedObject(Bytes value, ElementParts parts) noexcept;

  /// False: the bytes are not of such an object; then it reads as empty.
  [[nodiscard]] bool is_good() const noexcept { return is_good_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// `index` < size(). Of damaged bytes, an empty element.
  [[nodiscard]] Element at(std::size_t index) const noexcept { return element_at(place(index)); }
  /// How many keys are below `key`.
  [[nodiscard]] std::size_t rank(Bytes key) const noexcept;
  /// The first element whose key is `suffix` behind its first `skip` bytes; size(): none.
  [[nodiscard]] std::size_t find_suffix(std::size_t skip, Bytes suffix) const noexcept;
  /// The bytes of elements `from` .. `to` - 1, as a record has them.
  [[nodiscard]] Bytes stretch(std::size_t from, std::size_t to) const noexcept;

  /// Where it begins, from the first element on. Of damaged bytes, anything.
  [[nodiscard]] std::size_t place(std::size_t index) const noexcept {
    SEMEL_ASSERT_SLOW(index < size_);
    if (index_ == nullptr) return places_[index];
    std::uint32_t place;
    std::memcpy(&place, index_ + index * sizeof place, sizeof place);
    return place;
  }

 private:
  [[nodiscard]] Element element_at(std::size_t place) const noexcept;
  void read_small(std::size_t elements) noexcept;

  Bytes elements_;
  const char* index_ = nullptr;  // of one that is indexed
  std::size_t size_ = 0;
  ElementParts parts_ = ElementParts::both;
  bool is_good_ = true;
  // Of a small one. Not initialized: a reader of three elements does not pay for 128.
  std::array<std::uint32_t, small_elements_max> places_;
};

/// Whether these are bytes as pack() leaves them: sizes, places, and, where there are keys, their
/// order with none twice. An object has one element at least.
[[nodiscard]] bool is_sound(Bytes value, ElementParts parts) noexcept;

/// Of an object with so many elements: all but the elements themselves.
[[nodiscard]] std::size_t packed_head_bytes(std::size_t elements) noexcept;
[[nodiscard]] std::size_t packed_bytes(const Element& element, ElementParts parts) noexcept;

/// Writes a record, element after element.
class PackedWriter {
 public:
  /// Makes `to` as long as `bytes`: packed_head_bytes(), and packed_bytes() of each element.
  /// std::bad_alloc.
  PackedWriter(std::string& to, std::size_t elements, std::size_t bytes, ElementParts parts);
  void add(const Element& element) noexcept;
  /// Elements `from` .. `to` - 1 of another record of the kind.
  void add(const PackedObject& record, std::size_t from, std::size_t to) noexcept;
  /// All elements have been added.
  void end() noexcept;

 private:
  std::string& to_;
  const ElementParts parts_;
  const bool is_indexed_;
  char* elements_;  // the first
  char* next_;
  char* index_;  // of the next
};

/// Makes `to` the value of an object with these elements, in their order. std::bad_alloc.
void pack(std::span<const Element> elements, ElementParts parts, std::string& to);

}  // namespace semel::engine
