// One slice of the search for claims that need attention: held, in doubt, and failed by the limit
// of attempts. The page requests slice after slice, as with SCAN: the node keeps no state between
// slices, other requests run between them, and the search ends when the page is closed.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/acl/user.hpp"
#include "net/console/console_limits.hpp"
#include "semel/claim.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// A claim that a scan has met.
struct FoundClaim {
  std::string space;
  std::string key;
  std::uint8_t db;
  Timestamp until;  ///< its place in the order of a list
};

/// The claims whose `until` is first, bounded in number and bytes of keys.
class EarliestClaims {
 public:
  explicit EarliestClaims(std::size_t count_max = console_limits::scan_found_max) noexcept
      : count_max_(count_max) {}

  void add(FoundClaim found);
  [[nodiscard]] const std::vector<FoundClaim>& found() const noexcept { return heap_; }
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }

 private:
  const std::size_t count_max_;
  std::vector<FoundClaim> heap_;
  std::size_t bytes_ = 0;
  std::uint64_t left_out_ = 0;
};

/// A command that reads a key: whether `user` may run it with a key of the table.
class ReadRight {
 public:
  /// `command` is in the table of commands.
  ReadRight(const User& user, std::string_view command);
  [[nodiscard]] bool allows(std::string_view table_key) const;

 private:
  const User& user_;
  const std::uint32_t command_;
};

/// Namespace and key of a key of the table; none: it belongs to no namespace.
[[nodiscard]] std::optional<std::pair<std::string_view, std::string_view>> split_table_key(
    std::string_view table_key) noexcept;

/// The page's word for the state of a claim: held, over (the lease is), in_doubt, done, failed,
/// poison, issued.
[[nodiscard]] std::string_view list_of(const ClaimView& view) noexcept;
/// Until the end of its lease, or until the record ends.
[[nodiscard]] Millis remaining_of(const ClaimView& view) noexcept;
/// A claim as a row of a list.
[[nodiscard]] boost::json::object claim_row(const FoundClaim& found, const ClaimView& view);

/// Scans about console_limits::scan_records records from `cursor` on, and returns the claims that
/// `user` may read: {"cursor", "found": [..], "left_out"}; of each kind those that end first.
/// Progress: takes some milliseconds, and waits for an atomic section only if the thread may.
/// Errors: bad_cursor; section_held: repeat the call.
[[nodiscard]] Result<boost::json::object> scan_claims(Engine& engine, const User& user,
                                                      std::uint64_t cursor);

}  // namespace semel::net
