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

std::size_t packed_bytes(std::span<const Element> elements, ElementParts parts) noexcept {
  const std::size_t count = elements.size();
  std::size_t bytes = count <= small_elements_max ? 1 + base::varint_bytes(count)
                                                  : 1 + sizeof(std::uint32_t) * (1 + count);
  for (const Element& element : elements) bytes += element_bytes(element, parts);
  return bytes;
}

void pack(std::span<const Element> elements, ElementParts parts, std::string& to) {
  const bool is_indexed = elements.size() > small_elements_max;
  to.resize(packed_bytes(elements, parts));
  base::ByteWriter writer{to.data()};
  writer.fixed(static_cast<std::uint8_t>(form_version | static_cast<std::uint8_t>(parts) |
                                         (is_indexed ? form_indexed : 0)));
  if (is_indexed) {
    writer.fixed(static_cast<std::uint32_t>(elements.size()));
  } else {
    writer.varint(elements.size());
  }
  const char* const begin = writer.end();
  base::ByteWriter index{to.data() + to.size() -
                         (is_indexed ? elements.size() * sizeof(std::uint32_t) : 0)};
  for (const Element& element : elements) {
    if (is_indexed) index.fixed(static_cast<std::uint32_t>(writer.end() - begin));
    if (has_keys(parts)) writer.varint(element.key.size());
    if (has_values(parts)) writer.varint(element.value.size());
    writer.bytes(element.key);
    writer.bytes(element.value);
  }
  SEMEL_ASSERT(is_indexed || writer.end() == to.data() + to.size());
}

}  // namespace semel::engine
