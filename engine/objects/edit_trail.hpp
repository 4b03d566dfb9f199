// What an edit does to the elements of an object, as bytes: a journal can keep these in the place
// of a long record of which little has changed.
//
//   of keys    u8 1 | varint key bytes | varint value bytes | key | value     the value is now this
//              u8 2 | varint key bytes | key                                  it is gone
//   of a list  u8 3 | varint rank | varint value bytes | value                inserted before rank
//              u8 4 | varint rank | varint value bytes | value                replaced
//              u8 5 | varint first rank | varint elements                     removed
//
// Steps are in the order in which they were made. Steps of keys name the key and not its rank, so
// of each key the last one counts, and many trails are applied in one pass over the record. Of a
// hash the key is the field, and the value has the field's end in front, a varint, 0 for none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "semel/limits.hpp"
#include "semel/op.hpp"

namespace semel::engine {

/// Notes the steps of one edit, up to a bound. Of one thread. std::bad_alloc.
class EditTrail {
 public:
  /// Of an object without a record, or where none is wanted: nothing is noted.
  EditTrail() noexcept = default;
  /// Of a change of a record of so many bytes. A short record is written anew for about the same.
  explicit EditTrail(std::size_t record_bytes) noexcept
      : bytes_max_(record_bytes < limits::trail_record_bytes_min ? 0 : record_bytes / share) {}

  void put(Bytes key, Bytes value);
  void erase(Bytes key);
  void insert_at(std::size_t rank, Bytes value);
  void set_at(std::size_t rank, Bytes value);
  void erase_range(std::size_t from, std::size_t elements);

  /// False: it is too long, or nothing was to be noted.
  [[nodiscard]] bool is_open() const noexcept { return bytes_max_ != 0; }
  /// All steps; empty: none were made, or not all of them are noted.
  [[nodiscard]] Bytes bytes() const noexcept { return steps_; }

 private:
  /// A trail is at most this part of the record.
  static constexpr std::size_t share = 8;

  /// False: the step does not fit, and from now on nothing is noted.
  [[nodiscard]] bool begins(std::uint8_t step, std::size_t bytes);
  void add(std::uint8_t step, std::size_t rank, Bytes value);

  std::size_t bytes_max_ = 0;
  std::string steps_;
};

/// What the bytes of a hash do not say.
struct HashTrailFacts {
  Timestamp due = no_end;  ///< of the record, before and after
  std::uint64_t seed = 0;  ///< of an index that is made; must stay secret
};

/// Applies trails, the oldest first, to a sound record of the kind and makes `to` the record after
/// them. False: a trail is damaged, or not of this record, or nothing is left; `to` is anything
/// then. std::bad_alloc.
[[nodiscard]] bool apply_trails(Kind kind, Bytes record, std::span<const Bytes> trails,
                                std::string& to, const HashTrailFacts& of_hash = {});

}  // namespace semel::engine
