#include "engine/rules/kinds.hpp"

#include "engine/rules/hash_value.hpp"

namespace semel::engine {

namespace {

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
  row(Kind::string) = {.name = "string"};
  row(Kind::claim) = {.name = "claim",
                      .is_visible = is_no_vacant,
                      .wake = claim_wake_of,
                      .encode = encode_claim,
                      .decode = decode_claim};
  row(Kind::hash) = {.name = "hash",
                     .is_sound = [](Bytes value) noexcept { return is_sound(value); }};
  return rows;
}

}  // namespace

constexpr std::array<KindRow, kinds_max> kind_rows = make_rows();

}  // namespace semel::engine
