// What the engine has to know about each kind of object, a row each. Another kind is a file with
// its functions, a number in semel/op.hpp and a row in kinds.cpp.
#pragma once

#include <array>
#include <cstddef>

#include "engine/rules/claim_codec.hpp"
#include "engine/rules/record.hpp"
#include "semel/journal.hpp"

namespace semel::engine {

/// One kind. A null function means the default, so that a string costs no call.
struct KindRow {
  Bytes name{};  ///< none: no record has this kind
  /// Whether bytes that a journal or a disk brings are of this kind. Null: any are.
  bool (*is_sound)(Bytes value) noexcept = nullptr;
  /// False: to calls of other kinds the record is absent. Null: never.
  bool (*is_visible)(Bytes value) noexcept = nullptr;
  /// When the wheel should look at a record that ends at `due`. Null: then.
  Timestamp (*wake)(Bytes value, Timestamp due) noexcept = nullptr;
  /// The record's bytes of a mutation, in `scratch` or the mutation. Null: Mutation::value.
  Bytes (*encode)(const Mutation& mutation, Scratch& scratch) = nullptr;
  /// Fills a mutation from the record's bytes. Null: into Mutation::value.
  void (*decode)(Bytes value, Mutation& mutation) noexcept = nullptr;
};

inline constexpr std::size_t kinds_max = 8;  ///< of mutations; a record has two bits for it
/// Indexed by Kind.
extern const std::array<KindRow, kinds_max> kind_rows;

[[nodiscard]] inline const KindRow& row_of(Kind kind) noexcept {
  return kind_rows[static_cast<std::size_t>(kind) % kinds_max];
}

[[nodiscard]] inline bool is_sound(Kind kind, Bytes value) noexcept {
  const KindRow& row = row_of(kind);
  return row.is_sound == nullptr || row.is_sound(value);
}
[[nodiscard]] inline bool is_visible(Kind kind, Bytes value) noexcept {
  const KindRow& row = row_of(kind);
  return row.is_visible == nullptr || row.is_visible(value);
}
[[nodiscard]] inline Timestamp wake_of(Kind kind, Bytes value, Timestamp due) noexcept {
  const KindRow& row = row_of(kind);
  return row.wake == nullptr ? due : row.wake(value, due);
}
[[nodiscard]] inline Bytes value_of(const Mutation& mutation, Scratch& scratch) {
  const KindRow& row = row_of(mutation.kind);
  return row.encode == nullptr ? mutation.value : row.encode(mutation, scratch);
}
/// Sets value and claim; the other is cleared.
inline void fill_value(Kind kind, Bytes value, Mutation& mutation) noexcept {
  const KindRow& row = row_of(kind);
  mutation.claim.reset();
  mutation.value = row.decode == nullptr ? value : Bytes{};
  if (row.decode != nullptr) row.decode(value, mutation);
}

}  // namespace semel::engine
