// The elements of an object while it is changed: stretches of the record as it was, and fresh
// elements between them. A change of few elements copies the rest in stretches, unread.
//
//   record    [a b c d e f]        after erase(2, 3) and insert(4, x):
//   pieces    record 0..2 | record 3..5 | fresh 0..1 | record 5..6      a b d e x f
//
// Beyond pieces_max they become a plain list, which any number of changes works on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

#include "engine/kinds/packed_object.hpp"

namespace semel::engine {

/// Of one thread. std::bad_alloc.
class ElementPieces {
 public:
  static constexpr std::size_t pieces_max = 32;

  /// `record` and `memory` must outlive it.
  ElementPieces(const PackedObject& record, ElementParts parts, std::pmr::memory_resource& memory);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// `rank` < size().
  [[nodiscard]] Element at(std::size_t rank) const noexcept;

  /// Before the element of `rank`, or, with size(), behind the last. The bytes stay the caller's.
  void insert(std::size_t rank, const Element& element);
  void replace(std::size_t rank, const Element& element);
  void erase(std::size_t from, std::size_t to);

  /// Makes `to` the record, of `bytes` = record_bytes(). There is an element.
  void write(std::string& to, std::size_t bytes) const;
  [[nodiscard]] std::size_t record_bytes() const noexcept;

 private:
  struct Piece {
    bool is_fresh;
    std::size_t from;
    std::size_t to;  // > from
    [[nodiscard]] std::size_t size() const noexcept { return to - from; }
  };
  /// The piece that begins at `rank`, after cutting one if need be; of size(), behind the last.
  [[nodiscard]] std::size_t cut(std::size_t rank);
  void make_list_if_many();
  [[nodiscard]] std::size_t bytes_of(const Piece& piece) const noexcept;
  void check_invariants() const noexcept;

  const PackedObject& record_;
  const ElementParts parts_;
  std::size_t size_;
  bool is_list_ = false;  // then fresh_ has all elements, in order, and there are no pieces
  std::pmr::vector<Piece> pieces_;
  std::pmr::vector<Element> fresh_;
};

}  // namespace semel::engine
