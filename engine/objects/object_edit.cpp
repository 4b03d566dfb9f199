#include "engine/objects/object_edit.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace semel::engine {

// --- reading ------------------------------------------------------------------------------------

std::size_t ObjectReader::rank(Bytes key) const noexcept {
  if (is_tree_) return static_cast<std::size_t>(large_elements_.tree.rank(key));
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
  if (is_tree_) return large_elements_.tree.find(key, room_);
  const std::size_t place = rank(key);
  if (place == size()) return std::nullopt;
  const Element element = at(place);
  if (element.key != key) return std::nullopt;
  return element.value;
}

std::optional<Element> ObjectReader::find_indexed(Bytes suffix) const noexcept {
  const std::optional<Bytes> prefix = index_.find(suffix);
  if (!prefix) return std::nullopt;
  std::array<char, index_skip + tree_apart_min> small;
  std::unique_ptr<char[]> long_key;
  char* key = small.data();
  const std::size_t bytes = prefix->size() + suffix.size();
  if (bytes > small.size()) {
    long_key = std::make_unique_for_overwrite<char[]>(bytes);
    key = long_key.get();
  }
  std::memcpy(key, prefix->data(), prefix->size());
  if (!suffix.empty()) std::memcpy(key + prefix->size(), suffix.data(), suffix.size());
  const TreeElement found = large_elements_.tree.lower_bound({key, bytes}).element();
  return Element{found.key, found.value};
}

std::optional<Element> ObjectReader::find_suffix(std::size_t skip, Bytes suffix) const noexcept {
  if (is_tree_ && index_.root() != 0 && skip == index_skip) return find_indexed(suffix);
  if (!is_tree_ && edited_ == nullptr) {
    const std::size_t place = packed_.find_suffix(skip, suffix);
    return place == size() ? std::nullopt : std::optional{at(place)};
  }
  for (std::size_t i = 0; i < size(); ++i) {
    const Element element = at(i);
    if (element.key.size() == skip + suffix.size() && element.key.ends_with(suffix)) return element;
  }
  return std::nullopt;
}

std::optional<Bytes> ObjectReader::find_prefix(std::size_t skip, Bytes suffix) const noexcept {
  if (is_tree_ && index_.root() != 0 && skip == index_skip) return index_.find(suffix);
  const std::optional<Element> element = find_suffix(skip, suffix);
  if (!element) return std::nullopt;
  return element->key.substr(0, skip);
}

// --- changing -----------------------------------------------------------------------------------

ElementPieces& ObjectEdit::pieces() {
  if (!pieces_) set_edited(&pieces_.emplace(packed(), parts_of(kind_), memory_));
  return *pieces_;
}

Bytes ObjectEdit::keep(Bytes bytes) {
  if (bytes.empty()) return {};
  auto* const kept = static_cast<char*>(memory_.allocate(bytes.size(), 1));
  std::memcpy(kept, bytes.data(), bytes.size());
  return {kept, bytes.size()};
}

void ObjectEdit::note_change(bool adds) noexcept {
  is_changed_ = true;
  has_added_ = has_added_ || adds;
  if (large_) set_trees(large_->elements(), large_->index());
}

bool ObjectEdit::is_costly_to_open() const noexcept {
  return !large_ && large() != nullptr && !is_newest(*large());
}

LargeEdit* ObjectEdit::large_edit() {
  if (large_) return &*large_;
  if (large() != nullptr) {
    SEMEL_ASSERT(pool_ != nullptr);
    return &large_.emplace(*pool_, kind_, memory_, *large());
  }
  if (pool_ == nullptr || !may_be_large(kind_)) return nullptr;
  if (bytes_ > packed_bytes_max && pieces_) bytes_ = pieces_->record_bytes();
  if (size() <= packed_elements_max && bytes_ <= packed_bytes_max) return nullptr;
  large_.emplace(*pool_, kind_, memory_).build([&](const auto& add) {
    each(0, size(), [&](const Element& element) { return add(element), true; });
  });
  set_trees(large_->elements(), large_->index());
  return &*large_;
}

bool ObjectEdit::put(Bytes key, Bytes value) {
  SEMEL_ASSERT(parts_of(kind_) != ElementParts::values);
  SEMEL_ASSERT(parts_of(kind_) == ElementParts::both || value.empty());
  if (is_costly_to_open()) {
    const std::optional<Bytes> before = find(key);
    if (before && *before == value) return false;
  }
  std::size_t place = 0;
  if (!is_tree()) {
    place = rank(key);
    if (place < size()) {
      const Element before = at(place);
      if (before.key == key) {
        if (before.value != value) set_at(place, value);
        return false;
      }
    }
  }
  if (LargeEdit* const large = large_edit()) {
    const TreeChange change = large->put(key, value);
    if (change == TreeChange::nothing) return false;
    trail_.put(key, value);
    note_change(true);
    return change == TreeChange::added;
  }
  pieces().insert(place, {keep(key), keep(value)});
  trail_.put(key, value);
  bytes_ += packed_bytes({key, value}, parts_of(kind_));
  note_change(true);
  return true;
}

bool ObjectEdit::erase(Bytes key) {
  SEMEL_ASSERT(parts_of(kind_) != ElementParts::values);
  if (is_tree()) {
    if (is_costly_to_open() && !find(key)) return false;
    const TreeChange change = large_edit()->erase(key);
    if (change == TreeChange::nothing) return false;
    trail_.erase(key);
    note_change(false);
    return change == TreeChange::erased;
  }
  const std::size_t place = rank(key);
  if (place == size() || at(place).key != key) return false;
  erase_at(place);
  return true;
}

bool ObjectEdit::move(Bytes key, Bytes to) {
  SEMEL_ASSERT(parts_of(kind_) == ElementParts::keys && key != to);
  SEMEL_ASSERT(kind_ != Kind::sorted_set || key.substr(index_skip) == to.substr(index_skip));
  if (!is_tree() || (is_costly_to_open() && !find(key))) return erase(key) && put(to);
  const TreeChange change = large_edit()->move(key, to);
  if (change == TreeChange::nothing) return false;
  trail_.erase(key);
  trail_.put(to, {});
  note_change(true);
  return change == TreeChange::replaced;
}

void ObjectEdit::insert_at(std::size_t rank, Bytes value) {
  SEMEL_ASSERT(parts_of(kind_) == ElementParts::values && rank <= size());
  trail_.insert_at(rank, value);
  if (LargeEdit* const large = large_edit()) {
    large->insert_at(rank, value);
    return note_change(true);
  }
  pieces().insert(rank, {{}, keep(value)});
  bytes_ += packed_bytes({{}, value}, parts_of(kind_));
  note_change(true);
}

void ObjectEdit::set_at(std::size_t rank, Bytes value) {
  SEMEL_ASSERT(rank < size());
  const bool has_keys = parts_of(kind_) != ElementParts::values;
  has_keys ? trail_.put(at(rank).key, value) : trail_.set_at(rank, value);
  if (LargeEdit* const large = large_edit()) {
    large->set_at(rank, value);
    return note_change(true);
  }
  const Element before = at(rank);
  bytes_ += packed_bytes({before.key, value}, parts_of(kind_));
  pieces().replace(rank, {before.key, keep(value)});
  note_change(true);
}

void ObjectEdit::erase_range(std::size_t from, std::size_t to) {
  SEMEL_ASSERT(from <= to && to <= size());
  if (from == to) return;
  if (parts_of(kind_) == ElementParts::values) {
    trail_.erase_range(from, to - from);
  } else {
    for (std::size_t i = from; i < to && trail_.is_open(); ++i) trail_.erase(at(i).key);
  }
  if (large_edit() != nullptr) return erase_large(from, to);
  pieces().erase(from, to);
  note_change(false);
}

void ObjectEdit::erase_large(std::size_t from, std::size_t to) {
  constexpr std::size_t few = 64;
  const std::size_t count = size();
  // Where little is left, the rest is written anew: the others are freed in steps later.
  if (to - from > few && to - from > count / 2) {
    large_->build([&](const auto& add) {
      const auto add_all = [&](const Element& element) { return add(element), true; };
      each(0, from, add_all);
      each(to, count, add_all);
    });
  } else {
    for (std::size_t i = to; i > from; --i) large_->erase_at(i - 1);
  }
  note_change(false);
}

std::size_t ObjectEdit::record_bytes() const noexcept {
  if (large_) return packed_head_bytes(size()) + large_->element_bytes();
  SEMEL_ASSERT(pieces_);
  return pieces_->record_bytes();
}

void ObjectEdit::write(std::string& to, std::size_t bytes) {
  SEMEL_ASSERT(is_changed_ && !empty());
  if (!large_) return pieces_->write(to, bytes);
  has_failed_ = large_->has_failed();
  if (has_failed_) return;
  if (size() <= packed_elements_max / 2 && bytes <= packed_bytes_max / 2) {
    pack(large_->elements(), large_->element_bytes(), parts_of(kind_), to);
    large_.reset();
    return;
  }
  has_failed_ = !large_->finish(to);
}

}  // namespace semel::engine
