// Fields of a hash with ends of their own: HEXPIRE, HTTL, HGETEX, HSETEX and their like, a call
// each. Each is one atomic step; within a section of the calling thread it is a part of it.
//
// Errors of all: those of Hashes (semel/hashes.hpp); of writes also invalid_expire. In a group only
// within an entry of its log: refused.
// Source: docs/semantics.md#hashes
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "semel/hashes.hpp"
#include "semel/op.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// What a call did to the key, for events.
struct FieldsChange {
  bool is_changed = false;
  bool removes = false;  ///< a field went
  bool retimes = false;  ///< the end of a field was set or taken away
  bool is_gone = false;  ///< the key went with its last field
};

/// Ends of fields, in the order of `fields`. None: no such field; no_end: it has no end.
[[nodiscard]] Result<std::vector<std::optional<Timestamp>>> field_ends(
    Engine& engine, KeyRef key, std::span<const Bytes> fields);

/// Whether a field of the hash has an end.
[[nodiscard]] Result<bool> has_field_ends(Engine& engine, KeyRef key);

/// By field, in their order: -2 no such field, -1 (persist) no end, 0 the rule refused it, 1 done,
/// 2 removed, as its end has passed.
struct FieldAnswers {
  std::vector<std::int64_t> numbers{};
  FieldsChange change{};
};
[[nodiscard]] Result<FieldAnswers> expire_fields(Engine& engine, KeyRef key,
                                                 std::span<const Bytes> fields, Expiry expiry,
                                                 const ExpireRule& rule);
[[nodiscard]] Result<FieldAnswers> persist_fields(Engine& engine, KeyRef key,
                                                  std::span<const Bytes> fields);

/// The values as they were, in the order of `fields`; none: no such field.
struct FieldsTaken {
  std::vector<std::optional<std::string>> values{};
  FieldsChange change{};
};
[[nodiscard]] Result<FieldsTaken> get_and_delete_fields(Engine& engine, KeyRef key,
                                                        std::span<const Bytes> fields);
/// `expiry`: none: ends stay; clear: they are taken away.
[[nodiscard]] Result<FieldsTaken> get_and_expire_fields(Engine& engine, KeyRef key,
                                                        std::span<const Bytes> fields,
                                                        const std::optional<Expiry>& expiry);

struct FieldsSet {
  bool is_set = false;  ///< false: the condition refused it
  FieldsChange change{};
};
/// `condition`: always, if_absent (if no field is there), if_present (if all are). `expiry`: clear,
/// keep, or an end that all of the fields get; one that has passed removes them.
[[nodiscard]] Result<FieldsSet> set_fields(Engine& engine, KeyRef key,
                                           std::span<const FieldValue> pairs, Expiry expiry,
                                           Condition condition);

}  // namespace semel::engine
