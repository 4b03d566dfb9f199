// A hash as the value of one record: fields with their values, in the order in which the fields
// came.
//
//   plain, up to 32 fields     u8 1 | u8 fields | pairs
//   indexed, from 33 on        u8 2 | u32 fields | u64 seed | pairs | index
//
//   with ends of fields        u8 3 as 1, u8 4 as 2; between head and pairs: ends
//
//   ends    i64 end of the key | i64 earliest end of a field | i64 latest end of a field
//   pair    varint field bytes | varint value bytes | field | value
//   index   a u64 for each pair, ascending: hash of the field in the upper half, in the lower one
//           the pair's distance from the first pair
//
// An end is in ms of the engine's clock, and 2^63 - 1 stands for none; the latest is none if a
// field has none. In a hash with ends the bytes of each value begin with the field's end, a varint,
// 0 if it has none. A hash whose last field with an end has gone is written in form 1 or 2 again.
// The record of a hash with ends is due when the key is, or when all of its fields have ended; so
// the end of the key itself is in here (docs/decisions/0088-ends-of-fields.md).
//
//   u8 2 | 40 | seed | [name][Ann] [age][41] [city][Rome] .. | .. 5b1e..0000000a  9c40..00000000 ..
//                      ^0          ^a                                     age              name
//
// Numbers are little-endian; a varint has seven bits a byte, the lowest first. The hash is the
// lower half of XXH3-64 under the seed, which is the record's own: what a record holds says where
// it lies in the index, in every process that ever reads it.
//
// A change writes the value anew: the pairs are copied in stretches and the index in one pass, so
// it costs what the record is long (docs/decisions/0010-objects-behind-the-slot.md has figures). A
// long hash is kept in trees instead (engine/objects/hash_tree.hpp), and has these bytes wherever
// it leaves the process's memory; its pairs are in the order of the index then.
//
// The bytes may come from a disk. Reading never leaves them, whatever they are; is_sound() looks at
// all of them, once, where they come in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/coding.hpp"
#include "engine/rules/large_hash.hpp"
#include "semel/op.hpp"
#include "semel/types.hpp"

namespace semel::engine {

inline constexpr std::size_t plain_fields_max = 32;

/// What a hash knows of ends. Without ends of fields: none.
struct HashEnds {
  Timestamp key = no_end;    ///< what EXPIRE has set
  Timestamp first = no_end;  ///< the earliest end of a field
  Timestamp last = no_end;   ///< when no field is left; no_end: one has no end

  /// When the record ends.
  [[nodiscard]] Timestamp due() const noexcept { return key < last ? key : last; }
};

class HashView {
 public:
  /// Of no record: an empty hash.
  HashView() noexcept = default;
  /// An empty hash whose fields may have ends.
  explicit HashView(const HashEnds& ends) noexcept : ends_(ends), has_ends_(true) {}
  /// `value` must live as long as this.
  explicit HashView(Bytes value) noexcept;

  /// False: the head does not fit the bytes; then it reads as empty.
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::size_t size() const noexcept { return fields_; }
  [[nodiscard]] bool is_indexed() const noexcept { return !index_.empty(); }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] Bytes pairs() const noexcept { return pairs_; }
  /// Whether a field may have an end.
  [[nodiscard]] bool has_ends() const noexcept { return has_ends_; }
  [[nodiscard]] const HashEnds& ends() const noexcept { return ends_; }

  struct Found {
    std::size_t at;   ///< of the pair, in pairs()
    std::size_t end;  ///< behind it
    Bytes field;
    Bytes value;
    Timestamp due = no_end;  ///< of the field
  };
  [[nodiscard]] std::optional<Found> find(Bytes field) const noexcept;
  /// The pair that begins at `at`; none: no pair can begin there.
  [[nodiscard]] std::optional<Found> pair_at(std::size_t at) const noexcept {
    std::optional<Found> found = pair_in(pairs_, at);
    if (has_ends_ && found) [[unlikely]]
      take_end(found);
    return found;
  }
  /// The same of any pairs, with what stands before a value as a part of it.
  [[nodiscard]] static std::optional<Found> pair_in(Bytes pairs, std::size_t at) noexcept;
  /// Calls `visit(Found)` for each pair in order, until one cannot be read.
  template <class Visit>
  void each(Visit&& visit) const {
    std::size_t at = 0;
    for (std::size_t i = 0; i < fields_; ++i) {
      const std::optional<Found> pair = pair_at(at);
      if (!pair) return;
      visit(*pair);
      at = pair->end;
    }
  }

  // Only of one that is_indexed(): the order of the index, which a field keeps while it is there.
  [[nodiscard]] Bytes index() const noexcept { return index_; }
  [[nodiscard]] std::uint64_t index_word(std::size_t position) const noexcept;
  /// The first position in the index whose hash is not below `hash`.
  [[nodiscard]] std::size_t lower_bound(std::uint32_t hash) const noexcept;

 private:
  std::size_t fields_ = 0;
  std::uint64_t seed_ = 0;
  /// Takes the field's end off its value.
  static void take_end(std::optional<Found>& found) noexcept;

  Bytes pairs_;
  Bytes index_;
  HashEnds ends_;
  bool has_ends_ = false;
  bool good_ = true;
};

/// Of a hash whose fields may have ends, packed or large; none: no field has one.
[[nodiscard]] std::optional<HashEnds> ends_of_hash(Bytes value) noexcept;
/// The end of a hash's key: `due` of its record, but for a hash with ends.
[[nodiscard, gnu::noinline]] inline Timestamp key_end_of_hash(Bytes value, Timestamp due) noexcept {
  const std::optional<HashEnds> ends = ends_of_hash(value);
  return ends ? ends->key : due;
}
/// The end of a key of any kind, by its record.
[[nodiscard]] inline Timestamp key_end_of(Kind kind, Bytes value, Timestamp due) noexcept {
  if (kind == Kind::hash) [[unlikely]]
    return key_end_of_hash(value, due);
  return due;
}
/// When the first of its fields ends, or the record, which is `due`.
[[nodiscard]] Timestamp hash_wake_of(Bytes value, Timestamp due) noexcept;
/// The same hash, whose key ends at `key_end`. False: it has no ends of fields; `to` was left.
[[nodiscard]] bool with_key_end(Bytes value, Timestamp key_end, std::string& to);

/// Of the index. `seed`: of the hash.
[[nodiscard]] std::uint32_t hash_of_field(Bytes field, std::uint64_t seed) noexcept;
/// A field's end as it stands before its value; 0: none.
[[nodiscard]] inline std::uint64_t number_of_end(Timestamp due) noexcept {
  return due == no_end ? 0 : static_cast<std::uint64_t>(due.time_since_epoch().count());
}
/// The three times of a hash with ends, as they stand behind its head. std::bad_alloc.
void put_ends(std::string& to, const HashEnds& ends);

/// Whether these are bytes as HashWriter leaves them: sizes, no field twice, and the index.
[[nodiscard]] bool is_sound(Bytes value);

/// A field and what becomes of it; none: it goes.
struct HashChange {
  Bytes field;
  std::optional<Bytes> value;
  Timestamp due = no_end;  ///< only of a hash whose fields may have ends
};

/// Several changes as one: what they do is known before a byte is written.
class HashWriter {
 public:
  /// `seed`: of the index, if one is made. Of changes of one field the last counts.
  HashWriter(const HashView& before, std::span<const HashChange> changes, std::uint64_t seed);

  [[nodiscard]] std::size_t added() const noexcept { return added_; }
  [[nodiscard]] std::size_t removed() const noexcept { return removed_; }
  [[nodiscard]] bool changes_nothing() const noexcept { return edits_.empty() && fresh_.empty(); }
  /// Afterwards.
  [[nodiscard]] std::size_t fields() const noexcept { return before_.size() + added_ - removed_; }
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Makes `to` the value. Not to be called if no field is left. It may have ends though no field
  /// has one: see without_ends().
  void write(std::string& to) const;

 private:
  struct Edit {
    std::size_t at;  // of a pair that is there
    std::size_t end;
    std::size_t fresh_bytes;  // of the pair that replaces it; 0: none does
    Bytes field;
    Bytes value;
    Timestamp due;
    std::ptrdiff_t shift = 0;  // of what lies behind it
  };
  struct Fresh {
    Bytes field;
    Bytes value;
    Timestamp due;
    std::size_t order;  // of the change that brought it
  };
  [[nodiscard]] std::size_t pair_bytes(Bytes field, Bytes value, Timestamp due) const noexcept;
  void put_pair(Bytes field, Bytes value, Timestamp due, std::string& to) const;
  void write_ends(std::string& to) const;
  void take(const HashChange& first, const HashChange& last, std::size_t order);
  void take_all(std::span<const HashChange> changes, std::uint64_t seed);
  void write_pairs(std::string& to) const;
  void make_index(std::string& to) const;
  /// How far the pair at `offset` moves; none: it goes.
  [[nodiscard]] std::optional<std::ptrdiff_t> shift_of(std::size_t offset) const noexcept;
  void patch_index(std::string& to) const;
  [[nodiscard]] bool will_be_indexed() const noexcept { return fields() > plain_fields_max; }
  [[nodiscard]] std::size_t head_bytes() const noexcept;

  const HashView& before_;
  std::uint64_t seed_;
  std::vector<Edit> edits_;   // by offset
  std::vector<Fresh> fresh_;  // in the order they came
  std::size_t pair_bytes_;    // afterwards
  std::size_t kept_bytes_;    // of the pairs that were there, afterwards
  std::size_t added_ = 0;
  std::size_t removed_ = 0;
};

/// What the pairs of a hash take, and the hash with them.
struct HashBytes {
  std::size_t fields = 0;
  std::size_t pairs = 0;  ///< with the lengths of fields and values, and with ends if there are any
  bool has_ends = false;

  [[nodiscard]] std::size_t whole() const noexcept;
};
/// One pair, whose value, with the field's end if that counts, has `value` bytes.
[[nodiscard]] inline std::size_t pair_bytes_of(std::size_t field, std::size_t value) noexcept {
  return base::varint_bytes(field) + base::varint_bytes(value) + field + value;
}

/// Writes a hash whose fields come in the order of an index.
class HashPacker {
 public:
  /// `ends`: null if no field has one. std::bad_alloc, here only.
  HashPacker(const HashBytes& bytes, std::uint64_t seed, const HashEnds* ends, std::string& to);
  /// `hash`: not below that of the field before. `value`: behind the field's end, if there are any.
  void add(std::uint32_t hash, Bytes field, Bytes value) noexcept;
  /// All fields have been added.
  void end() noexcept;

 private:
  std::string& to_;
  char* next_;
  char* first_;  // the first pair
  char* index_;  // null: it has none
};

/// The same fields in a hash whose fields may have ends, or in one whose fields have none. `seed`:
/// of an index, unless `hash` has one. std::bad_alloc.
[[nodiscard]] std::string with_ends(const HashView& hash, Timestamp key_end, std::uint64_t seed);
[[nodiscard]] std::string without_ends(const HashView& hash, std::uint64_t seed);

}  // namespace semel::engine
