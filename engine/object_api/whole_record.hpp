// A record as the bytes that memory and disk have: for callers that carry it from one engine to
// another and need not know its kind.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "semel/engine.hpp"
#include "semel/hashes.hpp"
#include "semel/op.hpp"
#include "semel/result.hpp"
#include "semel/section.hpp"

namespace semel::engine {

struct WholeRecord {
  Kind kind = Kind::string;
  Timestamp due = no_end;
  Version version = 0;
  std::string value{};
};

/// Whether a record of this kind is carried whole. Claims are not: their log decides them.
[[nodiscard]] bool is_carried(Kind kind) noexcept;

/// None: there is no record. Also as a part of the section that the calling thread is in. Errors:
/// key_empty, key_too_long, db_out_of_range; wrong_type: a kind that is not carried. Thread-safe.
/// std::bad_alloc.
[[nodiscard]] Result<std::optional<WholeRecord>> read_whole(Engine& engine, KeyRef key);

/// Puts the record in place of what the key holds, as one atomic step. One whose end has passed
/// only removes that. The engine gives it a version. Errors, and nothing was changed: those of
/// read_whole(), bad_option (the bytes are not of the kind), wrong_type (a claim is there, or the
/// kind is not carried), value_too_long, memory_full, refused, section_held; outcome_unknown.
/// Thread-safe.
[[nodiscard]] Status replace_whole(Engine& engine, KeyRef key, const WholeRecord& record);

/// The bytes of a hash that is to be put at `key`: with these fields, one at least and none of them
/// twice, in their order. `ends`: of the fields, in their order, or none; then `end` is that of the
/// key. In an entry of a group's log the same on all nodes. std::bad_alloc.
[[nodiscard]] std::string hash_bytes(Engine& engine, KeyRef key, std::span<const FieldValue> pairs,
                                     std::span<const Timestamp> ends, Timestamp end);
/// When a record with these bytes ends whose key ends at `end`: earlier, if all fields of a hash
/// do.
[[nodiscard]] Timestamp due_of_record(Kind kind, Bytes value, Timestamp end) noexcept;

}  // namespace semel::engine
