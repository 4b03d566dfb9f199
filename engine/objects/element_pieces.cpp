#include "engine/objects/element_pieces.hpp"

#include <utility>

namespace semel::engine {

ElementPieces::ElementPieces(const PackedObject& record, ElementParts parts,
                             std::pmr::memory_resource& memory)
    : record_(record), parts_(parts), size_(record.size()), pieces_(&memory), fresh_(&memory) {
  constexpr std::size_t usual_pieces = 4;
  pieces_.reserve(usual_pieces);
  if (size_ != 0) pieces_.push_back({.is_fresh = false, .from = 0, .to = size_});
}

Element ElementPieces::at(std::size_t rank) const noexcept {
  SEMEL_ASSERT(rank < size_);
  if (is_list_) return fresh_[rank];
  auto piece = pieces_.begin();
  for (; rank >= piece->size(); ++piece) rank -= piece->size();
  const std::size_t place = piece->from + rank;
  return piece->is_fresh ? fresh_[place] : record_.at(place);
}

std::size_t ElementPieces::cut(std::size_t rank) {
  std::size_t index = 0;
  for (; index < pieces_.size(); ++index) {
    Piece& piece = pieces_[index];
    if (rank == 0) return index;
    if (rank < piece.size()) {
      Piece rest = piece;
      rest.from = piece.from + rank;
      pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(index) + 1, rest);
      pieces_[index].to = rest.from;
      return index + 1;
    }
    rank -= piece.size();
  }
  return index;
}

void ElementPieces::make_list_if_many() {
  if (is_list_ || pieces_.size() <= pieces_max) return;
  std::pmr::vector<Element> all{fresh_.get_allocator()};
  all.reserve(size_ + size_ / 4 + 1);
  for (const Piece& piece : pieces_) {
    for (std::size_t i = piece.from; i < piece.to; ++i) {
      all.push_back(piece.is_fresh ? fresh_[i] : record_.at(i));
    }
  }
  fresh_ = std::move(all);
  pieces_.clear();
  is_list_ = true;
}

void ElementPieces::insert(std::size_t rank, const Element& element) {
  SEMEL_ASSERT(rank <= size_);
  if (is_list_) {
    fresh_.insert(fresh_.begin() + static_cast<std::ptrdiff_t>(rank), element);
    ++size_;
    return;
  }
  const std::size_t index = cut(rank);
  fresh_.push_back(element);
  const std::size_t last = fresh_.size() - 1;
  ++size_;
  // One that follows the fresh element before it is of the same piece: RPUSH of many is one.
  if (index != 0 && pieces_[index - 1].is_fresh && pieces_[index - 1].to == last) {
    ++pieces_[index - 1].to;
  } else {
    pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(index),
                   {.is_fresh = true, .from = last, .to = last + 1});
  }
  make_list_if_many();
  check_invariants();
}

void ElementPieces::replace(std::size_t rank, const Element& element) {
  SEMEL_ASSERT(rank < size_);
  if (is_list_) {
    fresh_[rank] = element;
    return;
  }
  erase(rank, rank + 1);
  insert(rank, element);
}

void ElementPieces::erase(std::size_t from, std::size_t to) {
  SEMEL_ASSERT(from < to && to <= size_);
  const auto place = [](auto& in, std::size_t index) {
    return in.begin() + static_cast<std::ptrdiff_t>(index);
  };
  size_ -= to - from;
  if (is_list_) {
    fresh_.erase(place(fresh_, from), place(fresh_, to));
    return;
  }
  const std::size_t first = cut(from);
  const std::size_t last = cut(to);
  pieces_.erase(place(pieces_, first), place(pieces_, last));
  make_list_if_many();
  check_invariants();
}

std::size_t ElementPieces::bytes_of(const Piece& piece) const noexcept {
  if (!piece.is_fresh) return record_.stretch(piece.from, piece.to).size();
  std::size_t bytes = 0;
  for (std::size_t i = piece.from; i < piece.to; ++i) bytes += packed_bytes(fresh_[i], parts_);
  return bytes;
}

std::size_t ElementPieces::record_bytes() const noexcept {
  std::size_t bytes = packed_head_bytes(size_);
  if (is_list_) return bytes + bytes_of({.is_fresh = true, .from = 0, .to = fresh_.size()});
  for (const Piece& piece : pieces_) bytes += bytes_of(piece);
  return bytes;
}

void ElementPieces::write(std::string& to, std::size_t bytes) const {
  SEMEL_ASSERT(size_ != 0);
  SEMEL_ASSERT_SLOW(bytes == record_bytes());
  PackedWriter writer{to, size_, bytes, parts_};
  const auto add = [&](const Piece& piece) {
    if (!piece.is_fresh) return writer.add(record_, piece.from, piece.to);
    for (std::size_t i = piece.from; i < piece.to; ++i) writer.add(fresh_[i]);
  };
  if (is_list_) {
    add({.is_fresh = true, .from = 0, .to = fresh_.size()});
  } else {
    for (const Piece& piece : pieces_) add(piece);
  }
  writer.end();
}

void ElementPieces::check_invariants() const noexcept {
#if defined(SEMEL_VERIFY)
  std::size_t size = is_list_ ? fresh_.size() : 0;
  SEMEL_ASSERT(!is_list_ || pieces_.empty());
  for (const Piece& piece : pieces_) {
    SEMEL_ASSERT(piece.from < piece.to);
    SEMEL_ASSERT(piece.to <= (piece.is_fresh ? fresh_.size() : record_.size()));
    size += piece.size();
  }
  SEMEL_ASSERT(size == size_);
#endif
}

}  // namespace semel::engine
