// Fields of a claim that the code copies, stores and shows by a row, not by their name: for
// engines, storages and nodes. A new one is declared in claim.hpp and gets its row here.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "semel/claim.hpp"
#include "semel/limits.hpp"

namespace semel {

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

/// A row whose members the compiler knows where it is used: claims pass here.
template <std::size_t place>
struct ClaimLabelAt {
  static constexpr std::size_t index = place;
  static constexpr std::size_t bytes_max = claim_labels[place].bytes_max;
  static constexpr auto given = claim_labels[place].given;
  static constexpr auto kept = claim_labels[place].kept;
  static constexpr auto seen = claim_labels[place].seen;
};
/// Calls `visit` with each ClaimLabelAt.
template <class Visit>
constexpr void each_label(Visit&& visit) {
  [&]<std::size_t... place>(std::index_sequence<place...>) {
    (visit(ClaimLabelAt<place>{}), ...);
  }
  (std::make_index_sequence<claim_labels.size()>{});
}

/// Bytes of all labels, at most.
inline constexpr std::size_t claim_labels_bytes_max = [] {
  std::size_t bytes = 0;
  for (const ClaimLabel& label : claim_labels) bytes += label.bytes_max;
  return bytes;
}();

[[nodiscard]] inline bool has_labels(const ClaimRequest& request) noexcept {
  bool has = false;
  each_label([&](auto label) { has |= !(request.*label.given).empty(); });
  return has;
}
[[nodiscard]] inline bool has_labels(const ClaimRecord& record) noexcept {
  bool has = false;
  each_label([&](auto label) { has |= !(record.*label.kept).empty(); });
  return has;
}

/// The bytes of all labels, one behind the other. std::bad_alloc.
[[nodiscard]] inline std::string joined_labels(const ClaimRequest& request) {
  std::string joined;
  each_label([&](auto label) { joined.append(request.*label.given); });
  return joined;
}
/// Points the labels of `request` to a copy that joined_labels() has made of them.
inline void point_labels(ClaimRequest& request, Bytes joined) noexcept {
  std::size_t at = 0;
  each_label([&](auto label) {
    Bytes& text = request.*label.given;
    text = {joined.data() + at, text.size()};
    at += text.size();
  });
}

}  // namespace semel
