// Fields of a claim that the code copies, stores and shows by a row, not by their name: for
// engines, storages and nodes. A new one is declared in claim.hpp and gets its row here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "semel/claim.hpp"
#include "semel/limits.hpp"

namespace semel {

/// A row of a list below: its members are constants where it is used, because claims pass here.
template <const auto& rows, std::size_t place>
struct ClaimRow {
  static constexpr std::size_t index = place;
  static constexpr auto row = rows[place];
};
/// Calls `visit` with each ClaimRow of `rows`, in their order.
template <const auto& rows, class Visit>
constexpr void each_row(Visit&& visit) {
  const auto all = [&]<std::size_t... place>(std::index_sequence<place...>) {
    (visit(ClaimRow<rows, place>{}), ...);
  };
  all(std::make_index_sequence<rows.size()>{});
}

/// A short text for people that a claimant gives. The record of its grant keeps it.
struct ClaimLabel {
  std::string_view name;  ///< the option of SEMEL.CLAIM and the field of replies, in lower case
  std::size_t bytes_max;  ///< at most 255
  Bytes ClaimRequest::*given;
  Bytes ClaimRecord::*kept;
  std::string ClaimView::*seen;
};
inline constexpr std::array claim_labels{
    ClaimLabel{.name = "owner",
               .bytes_max = limits::owner_label_max,
               .given = &ClaimRequest::owner,
               .kept = &ClaimRecord::owner,
               .seen = &ClaimView::owner},
};

/// Bytes of all labels, at most.
inline constexpr std::size_t claim_labels_bytes_max = [] {
  std::size_t bytes = 0;
  for (const ClaimLabel& label : claim_labels) bytes += label.bytes_max;
  return bytes;
}();

[[nodiscard]] inline bool has_labels(const ClaimRequest& request) noexcept {
  bool has = false;
  each_row<claim_labels>([&](auto label) { has |= !(request.*label.row.given).empty(); });
  return has;
}
[[nodiscard]] inline bool has_labels(const ClaimRecord& record) noexcept {
  bool has = false;
  each_row<claim_labels>([&](auto label) { has |= !(record.*label.row.kept).empty(); });
  return has;
}

/// The bytes of all labels, one behind the other. std::bad_alloc.
[[nodiscard]] inline std::string joined_labels(const ClaimRequest& request) {
  std::string joined;
  each_row<claim_labels>([&](auto label) { joined.append(request.*label.row.given); });
  return joined;
}
/// Points the labels of `request` to a copy that joined_labels() has made of them.
inline void point_labels(ClaimRequest& request, Bytes joined) noexcept {
  std::size_t at = 0;
  each_row<claim_labels>([&](auto label) {
    Bytes& text = request.*label.row.given;
    text = {joined.data() + at, text.size()};
    at += text.size();
  });
}

/// A count of a record. Views show it, the answers to claims that tell of the record, and the
/// decisions about them.
struct ClaimNumber {
  std::string_view answer_name;  ///< the field of a reply to a claim, and of a decision about one
  std::string_view view_name;    ///< the field where a record is shown
  std::uint32_t usual;           ///< of a first grant, and of a record that does not store it
  std::uint32_t ClaimRecord::*kept;
  std::uint32_t ClaimOutcome::*answered;
  std::uint32_t ClaimView::*seen;
  std::uint32_t ClaimDecision::*noted;
  std::uint16_t memory;   ///< as in ClaimFlag, 8192 or more; 0: it has a place without a bit
  std::uint16_t journal;  ///< as in ClaimFlag; 0: it has a place without a bit
  std::uint32_t cold;     ///< as in ClaimFlag
};
inline constexpr std::array claim_numbers{
    ClaimNumber{.answer_name = "attempt",
                .view_name = "attempts",
                .usual = 1,
                .kept = &ClaimRecord::attempts,
                .answered = &ClaimOutcome::attempt,
                .seen = &ClaimView::attempts,
                .noted = &ClaimDecision::attempt,
                .memory = 0,
                .journal = 0,
                .cold = 1 << 5},
};

// --- stored -------------------------------------------------------------------------------------

/// A yes or no of a record: a bit of the flags in each form that keeps records, and in the answers
/// and views that have it.
struct ClaimFlag {
  bool ClaimRecord::*field;
  bool ClaimOutcome::*answered;
  bool ClaimView::*seen;  ///< null: the view has another rule for it
  std::uint16_t memory;   ///< in the head, engine/rules/claim_codec.hpp: 8 or more
  std::uint16_t journal;  ///< in the flags, storage/log/mutation_codec.hpp: at most 4096
  std::uint32_t cold;     ///< in the flags, storage/cold/cold_bucket.cpp: 8 or more
};
inline constexpr std::array claim_flags{
    ClaimFlag{.field = &ClaimRecord::result_expired,
              .answered = &ClaimOutcome::result_expired,
              .seen = nullptr,  // bytes that are there count as gone once their time is over
              .memory = 1 << 3,
              .journal = 1,
              .cold = 1 << 3},
    ClaimFlag{.field = &ClaimRecord::poison,
              .answered = &ClaimOutcome::poison,
              .seen = &ClaimView::poison,
              .memory = 1 << 11,
              .journal = 2,
              .cold = 1 << 4},
};

/// Bytes that a record points to. A form that has a bit for them keeps them behind their length,
/// where they are not empty.
struct ClaimText {
  Bytes ClaimRecord::*field;
  std::uint16_t journal;  ///< as above; 0: its length has another place
  std::uint32_t cold;     ///< as above, at most 255 bytes; 0: never there, or another place
};
/// In the order in which the forms have them.
inline constexpr std::array claim_texts{
    ClaimText{.field = &ClaimRecord::owner, .journal = 0, .cold = 1 << 15},
    ClaimText{.field = &ClaimRecord::memos, .journal = 1 << 7, .cold = 0},  // not over: in memory
    ClaimText{.field = &ClaimRecord::result, .journal = 0, .cold = 0},      // up to the end
};

/// The bits of all rows, in the form that `bit` is of; all bits, which no form allows, if two rows
/// have one of them.
template <class Bit>
[[nodiscard]] consteval unsigned stored_bits(Bit bit) {
  unsigned bits = 0;
  bool are_apart = true;
  const auto add = [&](unsigned more) {
    are_apart &= (bits & more) == 0;
    bits |= more;
  };
  for (const ClaimFlag& flag : claim_flags) add(bit(flag));
  for (const ClaimText& text : claim_texts) add(bit(text));
  for (const ClaimNumber& number : claim_numbers) add(bit(number));
  return are_apart ? bits : ~0U;
}

}  // namespace semel
