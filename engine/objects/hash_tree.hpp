// How the fields of a large hash lie in its trees.
//
//   tree        u32 hash of the field | field                 varint end, 0: none | value
//   index tree  u64 end | u32 hash of the field | field       nothing: the fields that have an end
//
// Numbers in keys are big-endian, so that the order of bytes is theirs: fields are in the order of
// the index of a packed hash (hash_value.hpp), under the same seed, and a place in it means the
// same in both. The next end of a field is the first of the index tree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/objects/large_object.hpp"
#include "engine/rules/hash_value.hpp"

namespace semel::engine {

inline constexpr std::size_t field_skip = sizeof(std::uint32_t);
inline constexpr std::size_t end_skip = sizeof(std::uint64_t);

/// The key of a field in the tree, or of where the fields of one hash begin. Short ones take no
/// memory beside it. std::bad_alloc.
class FieldKey {
 public:
  FieldKey(Bytes field, std::uint64_t seed) : FieldKey(hash_of_field(field, seed), field) {}
  FieldKey(std::uint32_t hash, Bytes field);
  FieldKey(const FieldKey&) = delete;
  FieldKey& operator=(const FieldKey&) = delete;

  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }

 private:
  std::array<char, 256> small_;
  std::string long_;
  Bytes bytes_;
};
[[nodiscard]] inline Bytes field_in(Bytes key) noexcept {
  return key.substr(field_skip);
}
[[nodiscard]] std::uint32_t hash_of_key(Bytes key) noexcept;

/// The end of a field, in front of its value; 0: none.
[[nodiscard]] inline std::uint64_t end_in(Bytes value) noexcept {
  if (!value.empty() && value[0] == 0) [[likely]]
    return 0;
  return base::ByteReader{value}.varint();
}
/// As a pair of a packed hash.
[[nodiscard]] HashView::Found field_at(const TreeElement& element) noexcept;

/// The key in the index tree of a field with an end. std::bad_alloc.
[[nodiscard]] std::string end_key(std::uint64_t end, Bytes key);
[[nodiscard]] std::uint64_t end_at(Bytes end_key) noexcept;
/// Fields that have ended by `now`, by the index tree: as many as come first in it.
[[nodiscard]] std::size_t ended_by(const Tree& ends, Timestamp now) noexcept;

/// What fields take in a packed hash with ends, and in one without.
struct FieldBytes {
  std::uint64_t with_end = 0;
  std::uint64_t bare = 0;

  FieldBytes& operator+=(const FieldBytes& more) noexcept;
  FieldBytes& operator-=(const FieldBytes& less) noexcept;
};
/// `field` and `value` in bytes, `value` with the end in front of it.
[[nodiscard]] FieldBytes field_bytes(std::size_t field, std::size_t value,
                                     std::uint64_t end) noexcept;

/// A large hash, by its trees.
struct HashTrees {
  Tree fields;
  Tree ends;
  std::uint64_t seed;
  FieldBytes bytes;

  explicit HashTrees(const LargeObject& object) noexcept;
  HashTrees(const Tree& of_fields, const Tree& of_ends, std::uint64_t of_hash,
            const FieldBytes& of_pairs) noexcept
      : fields(of_fields), ends(of_ends), seed(of_hash), bytes(of_pairs) {}

  [[nodiscard]] std::size_t size() const noexcept {
    return static_cast<std::size_t>(fields.size().elements);
  }
  [[nodiscard]] bool has_ends() const noexcept { return ends.root() != 0; }
  /// Of the hash, packed.
  [[nodiscard]] HashBytes packed_bytes() const noexcept;
  /// Of one that has_ends().
  [[nodiscard]] HashEnds ends_with(Timestamp key_end) const noexcept;
  /// Makes `to` the hash, packed. std::bad_alloc.
  void pack(Timestamp key_end, std::string& to) const;
};

}  // namespace semel::engine
