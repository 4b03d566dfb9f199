#include "engine/kinds/packed_object.hpp"

#include "base/coding.hpp"

namespace semel::engine {

namespace {

constexpr std::uint8_t form_indexed = 4;
constexpr std::uint8_t form_version = 0x10;

constexpr bool has_keys(ElementParts parts) noexcept {
  return (static_cast<std::uint8_t>(parts) & 1) != 0;
}
constexpr bool has_values(ElementParts parts) noexcept {
  return (static_cast<std::uint8_t>(parts) & 2) != 0;
}

/// Reads the element at the front of `reader`. False: it is not there as a whole.
bool take_element(base::ByteReader& reader, ElementParts parts, Element& element) noexcept {
  const std::uint64_t key = has_keys(parts) ? reader.varint() : 0;
  const std::uint64_t value = has_values(parts) ? reader.varint() : 0;
  element.key = reader.take(key);
  element.value = reader.take(value);
  return reader.is_good();
}

std::size_t element_bytes(const Element& element, ElementParts parts) noexcept {
  const std::size_t key = has_keys(parts) ? base::varint_bytes(element.key.size()) : 0;
  const std::size_t value = has_values(parts) ? base::varint_bytes(element.value.size()) : 0;
  return key + value + element.key.size() + element.value.size();
}

}  // namespace

PackedObject::PackedObject(Bytes value, ElementParts parts) noexcept : parts_(parts) {
  base::ByteReader reader{value};
  const auto form = reader.fixed<std::uint8_t>();
  const auto expected = static_cast<std::uint8_t>(form_version | static_cast<std::uint8_t>(parts));
  is_good_ = reader.is_good() && (form & ~form_indexed) == expected;
  if (!is_good_) return;
  if ((form & form_indexed) == 0) {
    const std::uint64_t elements = reader.varint();
    elements_ = reader.take_rest();
    is_good_ = reader.is_good() && elements <= small_elements_max;
    if (is_good_) read_small(static_cast<std::size_t>(elements));
    return;
  }
  const auto elements = reader.fixed<std::uint32_t>();
  elements_ = reader.take_rest();
  const std::uint64_t index_bytes = std::uint64_t{elements} * sizeof(std::uint32_t);
  is_good_ = reader.is_good() && elements > small_elements_max && index_bytes < elements_.size();
  if (!is_good_) return;
  index_ = elements_.data() + (elements_.size() - index_bytes);
  elements_.remove_suffix(index_bytes);
  size_ = elements;
}

void PackedObject::read_small(std::size_t elements) noexcept {
  // Parts that are short, as most are: a byte each, and as many bytes as they say.
  const std::size_t parts = parts_ == ElementParts::both ? 2 : 1;
  std::size_t at = 0;
  std::size_t read = 0;
  for (; read < elements && at + parts <= elements_.size(); ++read) {
    const auto first = static_cast<unsigned char>(elements_[at]);
    const auto last = static_cast<unsigned char>(parts == 2 ? elements_[at + 1] : 0);
    if (((first | last) & 128U) != 0) break;
    places_[read] = static_cast<std::uint32_t>(at);
    at += parts + first + last;
  }
  if (read == elements && at <= elements_.size()) {
    size_ = elements;
    return;
  }
  base::ByteReader reader{elements_};
  Element element;
  for (std::size_t i = 0; i < elements; ++i) {
    places_[i] = static_cast<std::uint32_t>(elements_.size() - reader.rest().size());
    if (!take_element(reader, parts_, element)) {
      is_good_ = false;
      size_ = 0;
      return;
    }
  }
  size_ = elements;
}

Element PackedObject::element_at(std::size_t place) const noexcept {
  Element element;
  if (place > elements_.size()) return element;
  base::ByteReader reader{elements_.substr(place)};
  static_cast<void>(take_element(reader, parts_, element));
  return element;
}

std::size_t PackedObject::rank(Bytes key) const noexcept {
  std::size_t low = 0;
  std::size_t high = size_;
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

std::size_t PackedObject::find_suffix(std::size_t skip, Bytes suffix) const noexcept {
  const std::size_t bytes = skip + suffix.size();
  // A short key that is its whole element has its length in one byte before it: most elements are
  // passed over by that byte and one of the suffix.
  if (parts_ == ElementParts::keys && bytes < 128 && !suffix.empty()) {
    for (std::size_t i = 0; i < size_; ++i) {
      const std::size_t key = place(i) + 1;
      if (key + bytes > elements_.size()) continue;  // shorter, or damaged
      const char* const at = elements_.data() + key;
      if (static_cast<unsigned char>(at[-1]) != bytes || at[skip] != suffix[0]) continue;
      if (std::memcmp(at + skip, suffix.data(), suffix.size()) == 0) return i;
    }
    return size_;
  }
  for (std::size_t i = 0; i < size_; ++i) {
    const Bytes key = at(i).key;
    if (key.size() == bytes && key.ends_with(suffix)) return i;
  }
  return size_;
}

bool is_sound(Bytes value, ElementParts parts) noexcept {
  const PackedObject object{value, parts};
  if (!object.is_good() || object.size() == 0) return false;
  std::size_t bytes = 0;
  Element before;
  for (std::size_t i = 0; i < object.size(); ++i) {
    const Element element = object.at(i);
    if (has_keys(parts) && i != 0 && !(before.key < element.key)) return false;
    bytes += element_bytes(element, parts);
    before = element;
  }
  // Places that are not each behind the other would leave a rest, or count bytes twice.
  const bool is_small = object.size() <= small_elements_max;
  const std::size_t head = is_small ? 1 + base::varint_bytes(object.size())
                                    : 1 + sizeof(std::uint32_t) * (1 + object.size());
  if (head + bytes != value.size()) return false;
  if (is_small) return true;
  std::size_t at = 0;
  for (std::size_t i = 0; i < object.size(); ++i) {
    const Element element = object.at(i);
    std::uint32_t place;
    std::memcpy(&place, value.data() + value.size() - (object.size() - i) * sizeof(std::uint32_t),
                sizeof place);
    if (place != at) return false;
    at += element_bytes(element, parts);
  }
  return true;
}

Bytes PackedObject::stretch(std::size_t from, std::size_t to) const noexcept {
  SEMEL_ASSERT_SLOW(from <= to && to <= size_);
  if (from == to) return {};
  const std::size_t begin = place(from);
  const std::size_t end = to == size_ ? elements_.size() : place(to);
  if (begin > end || end > elements_.size()) return {};  // damaged
  return elements_.substr(begin, end - begin);
}

std::size_t packed_head_bytes(std::size_t elements) noexcept {
  if (elements <= small_elements_max) return 1 + base::varint_bytes(elements);
  return 1 + sizeof(std::uint32_t) * (1 + elements);
}

std::size_t packed_bytes(const Element& element, ElementParts parts) noexcept {
  return element_bytes(element, parts);
}

PackedWriter::PackedWriter(std::string& to, std::size_t elements, std::size_t bytes,
                           ElementParts parts)
    : to_(to), parts_(parts), is_indexed_(elements > small_elements_max) {
  to.resize(bytes);
  base::ByteWriter writer{to.data()};
  writer.fixed(static_cast<std::uint8_t>(form_version | static_cast<std::uint8_t>(parts) |
                                         (is_indexed_ ? form_indexed : 0)));
  if (is_indexed_) {
    writer.fixed(static_cast<std::uint32_t>(elements));
  } else {
    writer.varint(elements);
  }
  elements_ = next_ = writer.end();
  index_ = to.data() + to.size() - (is_indexed_ ? elements * sizeof(std::uint32_t) : 0);
}

void PackedWriter::add(const Element& element) noexcept {
  if (is_indexed_) {
    base::ByteWriter index{index_};
    index.fixed(static_cast<std::uint32_t>(next_ - elements_));
    index_ = index.end();
  }
  base::ByteWriter writer{next_};
  if (has_keys(parts_)) writer.varint(element.key.size());
  if (has_values(parts_)) writer.varint(element.value.size());
  writer.bytes(element.key);
  writer.bytes(element.value);
  next_ = writer.end();
}

void PackedWriter::add(const PackedObject& record, std::size_t from, std::size_t to) noexcept {
  const Bytes bytes = record.stretch(from, to);
  if (is_indexed_) {
    const auto shift = static_cast<std::uint32_t>(static_cast<std::size_t>(next_ - elements_) -
                                                  record.place(from));
    for (std::size_t i = from; i < to; ++i) {
      const std::uint32_t place = static_cast<std::uint32_t>(record.place(i)) + shift;
      std::memcpy(index_, &place, sizeof place);
      index_ += sizeof place;
    }
  }
  if (!bytes.empty()) std::memcpy(next_, bytes.data(), bytes.size());  // empty: damaged
  next_ += bytes.size();
}

void PackedWriter::end() noexcept {
  SEMEL_ASSERT(index_ == to_.data() + to_.size());
  SEMEL_ASSERT(is_indexed_ || next_ == index_);
}

void pack(std::span<const Element> elements, ElementParts parts, std::string& to) {
  std::size_t bytes = packed_head_bytes(elements.size());
  for (const Element& element : elements) bytes += packed_bytes(element, parts);
  PackedWriter writer{to, elements.size(), bytes, parts};
  for (const Element& element : elements) writer.add(element);
  writer.end();
}

}  // namespace semel::engine
