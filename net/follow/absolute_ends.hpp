// Ends of keys that are counted from now, as absolute ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace semel::net {

/// Words of a request that ends a key some time from now, in the form that names the time. A
/// redis-server before 7.0 sends them to replicas as clients gave them, and the stream of a master
/// runs where time stands still (net/time/held_clock.hpp).
class AbsoluteEnds {
 public:
  /// Returns `words`, or the words that mean the same: valid until the next call. A word that is
  /// no number stays, and the command refuses it.
  [[nodiscard]] std::span<const std::string_view> rewrite(std::span<const std::string_view> words,
                                                          std::int64_t unix_ms);

 private:
  [[nodiscard]] bool rewrite_expire(std::int64_t unit_ms);
  [[nodiscard]] bool rewrite_setex(std::int64_t unit_ms);
  [[nodiscard]] bool rewrite_options(std::size_t from);
  [[nodiscard]] bool rewrite_restore();
  /// False: it is no number, or too large.
  [[nodiscard]] bool make_end(std::string_view amount, std::int64_t unit_ms);

  std::int64_t unix_ms_ = 0;
  std::vector<std::string_view> words_;
  std::string end_;
};

}  // namespace semel::net
