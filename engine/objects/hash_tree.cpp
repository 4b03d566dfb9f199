#include "engine/objects/hash_tree.hpp"

#include <cstring>

namespace semel::engine {

namespace {

template <class Number>
void put_big(char* to, Number number) noexcept {
  for (std::size_t i = sizeof number; i-- > 0; number = static_cast<Number>(number >> 8)) {
    to[i] = static_cast<char>(number);
  }
}
template <class Number>
Number big_at(Bytes bytes) noexcept {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number = static_cast<Number>(number << 8 | static_cast<unsigned char>(bytes[i]));
  }
  return number;
}

Timestamp time_of(std::uint64_t end) noexcept {
  return Timestamp{Millis{static_cast<std::int64_t>(end)}};
}

}  // namespace

FieldKey::FieldKey(std::uint32_t hash, Bytes field) {
  char* to = small_.data();
  const std::size_t bytes = field_skip + field.size();
  if (bytes > small_.size()) {
    long_.resize(bytes);
    to = long_.data();
  }
  put_big(to, hash);
  if (!field.empty()) std::memcpy(to + field_skip, field.data(), field.size());
  bytes_ = {to, bytes};
}

std::uint32_t hash_of_key(Bytes key) noexcept {
  return big_at<std::uint32_t>(key);
}

HashView::Found field_at(const TreeElement& element) noexcept {
  base::ByteReader reader{element.value};
  const std::uint64_t end = reader.varint();
  return {.at = 0,
          .end = 0,
          .field = field_in(element.key),
          .value = reader.rest(),
          .due = end == 0 ? no_end : time_of(end)};
}

std::string end_key(std::uint64_t end, Bytes key) {
  std::string bytes(end_skip, '\0');
  put_big(bytes.data(), end);
  return bytes.append(key);
}

std::uint64_t end_at(Bytes end_key) noexcept {
  return big_at<std::uint64_t>(end_key);
}

std::size_t ended_by(const Tree& ends, Timestamp now) noexcept {
  if (ends.root() == 0) return 0;
  std::array<char, end_skip> first_later{};
  put_big(first_later.data(), static_cast<std::uint64_t>(now.time_since_epoch().count()) + 1);
  return static_cast<std::size_t>(ends.rank({first_later.data(), first_later.size()}));
}

FieldBytes& FieldBytes::operator+=(const FieldBytes& more) noexcept {
  with_end += more.with_end;
  bare += more.bare;
  return *this;
}
FieldBytes& FieldBytes::operator-=(const FieldBytes& less) noexcept {
  with_end -= less.with_end;
  bare -= less.bare;
  return *this;
}

FieldBytes field_bytes(std::size_t field, std::size_t value, std::uint64_t end) noexcept {
  return {pair_bytes_of(field, value), pair_bytes_of(field, value - base::varint_bytes(end))};
}

HashTrees::HashTrees(const LargeObject& object) noexcept
    : HashTrees(object.tree(), object.index_tree(), object.seed,
                {object.element_bytes, object.bare_bytes}) {}

HashBytes HashTrees::packed_bytes() const noexcept {
  return {.fields = size(),
          .pairs = static_cast<std::size_t>(has_ends() ? bytes.with_end : bytes.bare),
          .has_ends = has_ends()};
}

HashEnds HashTrees::ends_with(Timestamp key_end) const noexcept {
  HashEnds all{.key = key_end, .first = time_of(end_at(ends.at(0).element().key))};
  if (ends.size().elements == fields.size().elements) {
    TreeCursor last = ends.end();
    static_cast<void>(last.previous());
    all.last = time_of(end_at(last.element().key));
  }
  return all;
}

void HashTrees::pack(Timestamp key_end, std::string& to) const {
  const HashEnds all = has_ends() ? ends_with(key_end) : HashEnds{};
  HashPacker packer{packed_bytes(), seed, has_ends() ? &all : nullptr, to};
  for (TreeCursor at = fields.at(0); at.has_element(); at.next()) {
    const TreeElement element = at.element();
    Bytes value = element.value;
    if (!has_ends()) value.remove_prefix(1);  // of no end
    packer.add(hash_of_key(element.key), field_in(element.key), value);
  }
  packer.end();
}

}  // namespace semel::engine
