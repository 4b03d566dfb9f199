#include "engine/kinds/element_keys.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <new>
#include <vector>

#include "engine/kinds/packed_object.hpp"
#include "engine/rules/numbers.hpp"

namespace semel::engine {

namespace {

constexpr unsigned char first_positive = 128;  // of zero; one more for each byte
constexpr unsigned char first_negative = 127;  // of -1; one less for each byte
constexpr unsigned char other_bytes = 255;
constexpr unsigned integer_bytes = sizeof(std::int64_t);

/// Bytes of `magnitude` without zeros in front.
unsigned bytes_of(std::uint64_t magnitude) noexcept {
  return (static_cast<unsigned>(std::bit_width(magnitude)) + 7) / 8;
}

/// Whether it is a key in the one form that its member has.
bool is_member_key(Bytes key) noexcept {
  if (key.empty()) return false;
  const auto first = static_cast<unsigned char>(key.front());
  std::int64_t number;
  if (first == other_bytes) return !parse_integer(key.substr(1), number);
  const bool is_negative = first < first_positive;
  const unsigned bytes = is_negative ? first_negative - first : first - first_positive;
  if (bytes > integer_bytes || key.size() != 1 + bytes) return false;
  number = integer_of_member(key);
  const auto bits = static_cast<std::uint64_t>(number);
  return (number < 0) == is_negative && bytes_of(is_negative ? ~bits : bits) == bytes;
}

/// Whether a member is there twice. Without memory to find out, no: reading is safe either way.
bool has_twins(const PackedObject& object) noexcept {
  try {
    std::vector<Bytes> members;
    members.reserve(object.size());
    for (std::size_t i = 0; i < object.size(); ++i) {
      members.push_back(object.at(i).key.substr(score_bytes));
    }
    std::sort(members.begin(), members.end());
    return std::adjacent_find(members.begin(), members.end()) != members.end();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

std::int64_t integer_of_member(Bytes key) noexcept {
  const auto first = static_cast<unsigned char>(key.front());
  std::uint64_t number = first >= first_positive ? 0 : ~std::uint64_t{0};
  for (const char byte : key.substr(1)) number = number << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(number);
}

void append_member_key(Bytes member, std::string& to) {
  std::int64_t number;
  if (!parse_integer(member, number)) {
    to.push_back(static_cast<char>(other_bytes));
    to.append(member);
    return;
  }
  const auto bits = static_cast<std::uint64_t>(number);
  const unsigned bytes = bytes_of(number < 0 ? ~bits : bits);
  to.push_back(static_cast<char>(number < 0 ? first_negative - bytes : first_positive + bytes));
  for (unsigned i = bytes; i-- > 0;) to.push_back(static_cast<char>(bits >> (8 * i)));
}

Bytes member_of(Bytes key, MemberText& text) noexcept {
  if (!is_integer_member(key)) return key.substr(1);
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), integer_of_member(key)).ptr;
  return {text.data(), static_cast<std::size_t>(end - text.data())};
}

bool is_set_sound(Bytes record) noexcept {
  if (!is_sound(record, ElementParts::keys)) return false;
  const PackedObject object{record, ElementParts::keys};
  for (std::size_t i = 0; i < object.size(); ++i) {
    if (!is_member_key(object.at(i).key)) return false;
  }
  return true;
}

bool is_sorted_set_sound(Bytes record) noexcept {
  if (!is_sound(record, ElementParts::keys)) return false;
  const PackedObject object{record, ElementParts::keys};
  for (std::size_t i = 0; i < object.size(); ++i) {
    const Bytes key = object.at(i).key;
    if (key.size() < score_bytes) return false;
    const double score = score_of(key);
    if (std::isnan(score) || (score == 0 && std::signbit(score))) return false;
  }
  return !has_twins(object);
}

}  // namespace semel::engine
