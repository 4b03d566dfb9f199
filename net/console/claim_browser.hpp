// The browser of keys and the recent decisions of all keys, slice by slice as the search of
// claim_scan.hpp is: the node keeps nothing between two slices.
//
// A record has no time of its grant. The age of a claim comes from the decision log, and is not
// known where the log has dropped the grant, which is then an old one, or where the process is
// younger. The log knows keys by their hash, so recent decisions are those about keys that have a
// record.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/acl/user.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// Which keys a page shows. Empty texts and none allow all.
struct KeyFilter {
  std::string space{};
  std::string prefix{};  ///< of the key without its namespace
  std::string owner{};   ///< what the owner's label begins with
  std::string state{};   ///< a word of list_of()
  std::optional<Millis> left_min{};
  std::optional<Millis> left_max{};
  std::optional<Millis> age_min{};  ///< an age that is not known is more
};

/// Whether list_of() has this word.
[[nodiscard]] bool is_list(std::string_view word) noexcept;

/// Keys from `cursor` on that `user` may read, about console_limits::page_rows of them:
/// {"cursor", "rows": [..], "left_out"}. Keys whose bytes are too many for a page are left out.
/// Progress and errors: as scan_claims().
[[nodiscard]] Result<boost::json::object> browse_claims(Engine& engine, const User& user,
                                                        const KeyFilter& filter,
                                                        std::uint64_t cursor);

/// The newest decisions about keys of `space` (empty: of all namespaces) that a slice from `cursor`
/// on meets and `user` may have explained: {"cursor", "decisions": [..], "left_out"}, newest first.
/// Progress and errors: as scan_claims(); bad_option: no decisions are kept.
[[nodiscard]] Result<boost::json::object> recent_decisions(Engine& engine, const User& user,
                                                           std::string_view space,
                                                           std::uint64_t cursor);

}  // namespace semel::net
