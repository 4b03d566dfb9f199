#include "engine/objects/object_edit.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace semel::engine {

// --- reading ------------------------------------------------------------------------------------

std::size_t ObjectReader::rank(Bytes key) const noexcept {
  if (edited_ == nullptr) return packed_.rank(key);
  std::size_t low = 0;
  std::size_t high = size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (at(middle).key < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::optional<Bytes> ObjectReader::find(Bytes key) const noexcept {
  const std::size_t place = rank(key);
  if (place == size()) return std::nullopt;
  const Element element = at(place);
  if (element.key != key) return std::nullopt;
  return element.value;
}

std::optional<Element> ObjectReader::find_suffix(std::size_t skip, Bytes suffix) const noexcept {
  for (std::size_t i = 0; i < size(); ++i) {
    const Element element = at(i);
    if (element.key.size() == skip + suffix.size() && element.key.ends_with(suffix)) return element;
  }
  return std::nullopt;
}

// --- changing -----------------------------------------------------------------------------------

ElementPieces& ObjectEdit::pieces() {
  if (!pieces_) set_edited(&pieces_.emplace(packed(), parts_of(kind_)));
  return *pieces_;
}

Bytes ObjectEdit::keep(Bytes bytes) {
  if (bytes.empty()) return {};
  if (bytes.size() > room_) {
    constexpr std::size_t chunk_bytes = 512;
    const std::size_t size = std::max(bytes.size(), chunk_bytes);
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    next_ = chunks_.back().get();
    room_ = size;
  }
  std::memcpy(next_, bytes.data(), bytes.size());
  const Bytes kept{next_, bytes.size()};
  next_ += bytes.size();
  room_ -= bytes.size();
  return kept;
}

bool ObjectEdit::put(Bytes key, Bytes value) {
  SEMEL_ASSERT(parts_of(kind_) != ElementParts::values);
  SEMEL_ASSERT(parts_of(kind_) == ElementParts::both || value.empty());
  const std::size_t place = rank(key);
  if (place < size() && at(place).key == key) {
    if (at(place).value == value) return false;
    set_at(place, value);
    return false;
  }
  pieces().insert(place, {keep(key), keep(value)});
  is_changed_ = has_added_ = true;
  return true;
}

bool ObjectEdit::erase(Bytes key) {
  SEMEL_ASSERT(parts_of(kind_) != ElementParts::values);
  const std::size_t place = rank(key);
  if (place == size() || at(place).key != key) return false;
  erase_at(place);
  return true;
}

void ObjectEdit::insert_at(std::size_t rank, Bytes value) {
  SEMEL_ASSERT(parts_of(kind_) == ElementParts::values && rank <= size());
  pieces().insert(rank, {{}, keep(value)});
  is_changed_ = has_added_ = true;
}

void ObjectEdit::set_at(std::size_t rank, Bytes value) {
  SEMEL_ASSERT(rank < size());
  pieces().replace(rank, {at(rank).key, keep(value)});
  is_changed_ = has_added_ = true;
}

void ObjectEdit::erase_range(std::size_t from, std::size_t to) {
  SEMEL_ASSERT(from <= to && to <= size());
  if (from == to) return;
  pieces().erase(from, to);
  is_changed_ = true;
}

std::size_t ObjectEdit::record_bytes() const noexcept {
  SEMEL_ASSERT(pieces_);
  return pieces_->record_bytes();
}

void ObjectEdit::write(std::string& to) const {
  SEMEL_ASSERT(pieces_ && !empty());
  pieces_->write(to);
}

}  // namespace semel::engine
