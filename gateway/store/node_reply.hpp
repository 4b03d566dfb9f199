// Replies of a node in RESP2, of the kinds that SEMEL.* commands, AUTH and CLUSTER MYID have: no
// nested arrays. Malformed bytes are invalid, truncated ones incomplete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace semel::gateway {

struct NodeReply {
  enum class Kind : std::uint8_t { text, error, null, array };
  Kind kind = Kind::null;
  std::string text{};  ///< simple and bulk strings, numbers as digits, errors
  std::vector<std::optional<std::string>> items{};

  [[nodiscard]] bool is_error() const noexcept { return kind == Kind::error; }
  /// The value of a name in an array of names and values. None: absent, or null.
  [[nodiscard]] std::optional<std::string_view> field(std::string_view name) const noexcept;
};

struct ParsedReply {
  enum class State : std::uint8_t { complete, incomplete, invalid };
  State state = State::incomplete;
  std::size_t bytes = 0;  ///< complete: how many it took; incomplete: it has so many at least
  NodeReply reply{};
};

namespace limits {
inline constexpr std::size_t reply_line_max = 4'096;  ///< of an error, mostly
inline constexpr std::size_t reply_items_max = 64;
inline constexpr std::size_t reply_bytes_max = std::size_t{17} << 20;  ///< of all of it
}  // namespace limits

/// The reply at the front of `bytes`. Pure.
[[nodiscard]] ParsedReply parse_reply(std::string_view bytes);

}  // namespace semel::gateway
