// Hashes: fields with values under one key, true to Redis 7.0. Each call is one atomic step; within
// a section of the calling thread it is a part of it. A hash is one record, so ttl, rename, copy,
// snapshots and durability are those of any other (docs/decisions/0010-objects-behind-the-slot.md).
// A change copies it; of more than 512 fields or 32 KiB, a path of a tree (0089).
// Source: docs/semantics.md#hashes
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "semel/engine.hpp"

namespace semel {

struct FieldValue {
  Bytes field{};
  Bytes value{};
};

/// Fields with their values that were read from a hash, in its order: that in which the fields
/// came. Owns its bytes.
class FieldValues {
 public:
  FieldValues() = default;
  FieldValues(FieldValues&&) noexcept = default;
  FieldValues& operator=(FieldValues&&) noexcept = default;
  FieldValues(const FieldValues&) = delete;  // the items point into the bytes
  FieldValues& operator=(const FieldValues&) = delete;
  /// `items` point into `bytes`.
  FieldValues(std::vector<char> bytes, std::vector<FieldValue> items) noexcept
      : bytes_(std::move(bytes)), items_(std::move(items)) {}

  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] const FieldValue& operator[](std::size_t i) const noexcept { return items_[i]; }
  [[nodiscard]] auto begin() const noexcept { return items_.begin(); }
  [[nodiscard]] auto end() const noexcept { return items_.end(); }

 private:
  std::vector<char> bytes_;
  std::vector<FieldValue> items_;
};

struct HashScan {
  std::uint64_t cursor = 0;  ///< to go on from; 0: at the end
  FieldValues items;
};

class Hashes {
 public:
  Hashes(Engine& engine, std::uint8_t db) noexcept : engine_(&engine), db_(db) {}

  // Errors of all: key_empty, key_too_long, db_out_of_range, wrong_type (the key holds something
  // else), storage_damaged (a copy on disk is unsound); of writes also value_too_long (of the whole
  // record, by Options::value_bytes_max), memory_full, refused, outcome_unknown. On an error but
  // the last nothing was changed. Progress: as EngineHost::apply.

  /// Sets fields, and returns the number of new ones; of a repeated field the last value counts. No
  /// pairs: 0, and nothing is changed.
  [[nodiscard]] Result<std::int64_t> hset(Bytes key, std::span<const FieldValue> pairs);
  /// True: the field is new.
  [[nodiscard]] Result<bool> hset(Bytes key, Bytes field, Bytes value);
  /// Sets the field if it is new. True: it was set.
  [[nodiscard]] Result<bool> hsetnx(Bytes key, Bytes field, Bytes value);
  /// Returns the number of fields that existed. Removing the last field removes the hash.
  [[nodiscard]] Result<std::int64_t> hdel(Bytes key, std::span<const Bytes> fields);
  /// Errors: not_an_integer (the field's value), increment_overflow.
  [[nodiscard]] Result<std::int64_t> hincrby(Bytes key, Bytes field, std::int64_t by);
  /// Returns the new value as Redis prints it (17 digits, no exponent). Errors: not_a_float (the
  /// field's value), nan_or_infinity.
  [[nodiscard]] Result<std::string> hincrbyfloat(Bytes key, Bytes field, long double by);

  [[nodiscard]] Result<std::optional<std::string>> hget(Bytes key, Bytes field);
  [[nodiscard]] Result<std::vector<std::optional<std::string>>> hmget(
      Bytes key, std::span<const Bytes> fields);
  [[nodiscard]] Result<bool> hexists(Bytes key, Bytes field);
  [[nodiscard]] Result<std::int64_t> hlen(Bytes key);
  /// Bytes of the field's value; 0: it is not there.
  [[nodiscard]] Result<std::int64_t> hstrlen(Bytes key, Bytes field);
  [[nodiscard]] Result<FieldValues> hgetall(Bytes key);
  [[nodiscard]] Result<std::vector<std::string>> hkeys(Bytes key);
  [[nodiscard]] Result<std::vector<std::string>> hvals(Bytes key);

  /// A random field, with equal probability.
  [[nodiscard]] Result<std::optional<std::string>> hrandfield(Bytes key);
  /// Up to `count` different ones, in the hash's order; of a negative count its amount, perhaps the
  /// same ones again. Errors: bad_option (more than limits::hash_picks_max, or together more than
  /// limits::hash_picks_bytes_max).
  [[nodiscard]] Result<FieldValues> hrandfield(Bytes key, std::int64_t count);
  /// Up to limits::hash_scan_whole_max fields all at once; beyond, about `count` (at least 1) from
  /// `cursor` (0: the start) on. A field that is there from start to end is met. Only those that
  /// match the glob `pattern`; empty: all. Errors: bad_option (count).
  [[nodiscard]] Result<HashScan> hscan(Bytes key, std::uint64_t cursor, Bytes pattern = {},
                                       std::size_t count = 10);

  [[nodiscard]] std::uint8_t db() const noexcept { return db_; }

 private:
  Engine* engine_;
  std::uint8_t db_;
};

}  // namespace semel
