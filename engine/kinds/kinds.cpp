#include "engine/kinds/kinds.hpp"

#include "engine/kinds/element_keys.hpp"
#include "engine/kinds/packed_object.hpp"
#include "engine/kinds/stream_keys.hpp"
#include "engine/rules/hash_value.hpp"

namespace semel::engine {

namespace {

bool is_claim_sound(Bytes value) noexcept {
  return has_sound_memos(value);
}

bool is_no_vacant(Bytes value) noexcept {
  return !is_vacant(value);
}

Bytes encode_claim(const Mutation& mutation, Scratch& scratch) {
  return mutation.claim ? encode(*mutation.claim, scratch) : mutation.value;
}

void decode_claim(Bytes value, Mutation& mutation) noexcept {
  static_cast<void>(decode(value, mutation.claim.emplace()));  // we wrote these bytes
}

constexpr std::array<KindRow, kinds_max> make_rows() {
  std::array<KindRow, kinds_max> rows{};
  const auto row = [&](Kind kind) -> KindRow& { return rows[static_cast<std::size_t>(kind)]; };
  row(Kind::string) = {.name = name_of(Kind::string)};
  row(Kind::claim) = {.name = name_of(Kind::claim),
                      .is_sound = is_claim_sound,
                      .is_visible = is_no_vacant,
                      .wake = claim_wake_of,
                      .encode = encode_claim,
                      .decode = decode_claim};
  row(Kind::hash) = {.name = name_of(Kind::hash),
                     .is_sound = [](Bytes value) noexcept { return is_sound(value); },
                     .wake = hash_wake_of};
  row(Kind::list) = {.name = name_of(Kind::list), .is_sound = [](Bytes value) noexcept {
                       return is_sound(value, ElementParts::values);
                     }};
  row(Kind::set) = {.name = name_of(Kind::set), .is_sound = is_set_sound};
  row(Kind::sorted_set) = {.name = name_of(Kind::sorted_set), .is_sound = is_sorted_set_sound};
  row(Kind::stream) = {.name = name_of(Kind::stream), .is_sound = is_stream_sound};
  return rows;
}

}  // namespace

constexpr std::array<KindRow, kinds_max> kind_rows = make_rows();

namespace {

constexpr std::size_t rows_used() {
  std::size_t count = 0;
  for (const KindRow& row : make_rows()) count += row.name.empty() ? 0 : 1;
  return count;
}

constexpr auto kinds_with_rows = [] {
  const auto rows = make_rows();
  std::array<Kind, rows_used()> kinds{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].name.empty()) kinds[count++] = static_cast<Kind>(i);
  }
  return kinds;
}();

}  // namespace

}  // namespace semel::engine

namespace semel {

std::span<const Kind> record_kinds() noexcept {
  return engine::kinds_with_rows;
}

bool is_record_kind(Kind kind) noexcept {
  const auto number = static_cast<std::size_t>(kind);
  return number < engine::kinds_max && !engine::kind_rows[number].name.empty();
}

}  // namespace semel
