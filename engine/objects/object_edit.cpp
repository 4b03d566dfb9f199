#include "engine/objects/object_edit.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace semel::engine {

// --- reading ------------------------------------------------------------------------------------

std::size_t ObjectReader::rank(Bytes key) const noexcept {
  if (edited_ == nullptr) return packed_.rank(key);
  const auto place =
      std::lower_bound(edited_->begin(), edited_->end(), key,
                       [](const Element& element, Bytes wanted) { return element.key < wanted; });
  return static_cast<std::size_t>(place - edited_->begin());
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

std::vector<Element>& ObjectEdit::elements() {
  if (is_open_) return elements_;
  constexpr std::size_t room = 4;
  elements_.reserve(packed().size() + room);
  for (std::size_t i = 0; i < packed().size(); ++i) elements_.push_back(packed().at(i));
  is_open_ = true;
  set_edited(&elements_);
  return elements_;
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
  const Element element{keep(key), keep(value)};
  std::vector<Element>& all = elements();
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(place), element);
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
  const Element element{{}, keep(value)};
  std::vector<Element>& all = elements();
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(rank), element);
  is_changed_ = has_added_ = true;
}

void ObjectEdit::set_at(std::size_t rank, Bytes value) {
  SEMEL_ASSERT(rank < size());
  const Bytes kept = keep(value);
  elements()[rank].value = kept;
  is_changed_ = has_added_ = true;
}

void ObjectEdit::erase_range(std::size_t from, std::size_t to) {
  SEMEL_ASSERT(from <= to && to <= size());
  if (from == to) return;
  std::vector<Element>& all = elements();
  const auto at = [&all](std::size_t rank) {
    return all.begin() + static_cast<std::ptrdiff_t>(rank);
  };
  all.erase(at(from), at(to));
  is_changed_ = true;
}

std::size_t ObjectEdit::record_bytes() const noexcept {
  SEMEL_ASSERT(is_open_);
  return packed_bytes(elements_, parts_of(kind_));
}

void ObjectEdit::write(std::string& to) const {
  SEMEL_ASSERT(is_open_ && !elements_.empty());
  pack(elements_, parts_of(kind_), to);
}

}  // namespace semel::engine
