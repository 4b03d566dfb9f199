// A reply as the result of a claim. Storages contain it, so its form changes only with its first
// byte.
//
//   1 byte    form, 1
//   1 byte    flags: bit 0, the body was not kept
//   2 bytes   status
//   2 bytes   number of header fields
//   each      2 bytes length of the name, name, 4 bytes length of the value, value
//   rest      body
//
// Numbers are little-endian.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/result.hpp"

namespace semel::gateway {

/// Views of bytes owned by the caller, or by `held_here`.
struct RecordedReply {
  unsigned status = 0;
  bool body_dropped = false;  ///< longer than the route keeps
  std::vector<std::pair<std::string_view, std::string_view>> fields{};
  std::string_view body{};
  bool is_cut = false;                             ///< there was no memory for the whole body
  std::string_view record{};                       ///< as encode() makes it; empty: not made yet
  std::shared_ptr<const std::string> held_here{};  ///< owner of the bytes, if it is not the caller
};

/// The number of bytes that encode() makes.
[[nodiscard]] std::size_t encoded_bytes(const RecordedReply& reply) noexcept;
[[nodiscard]] std::string encode(const RecordedReply& reply);
/// Views of `bytes`. Errors: bad_encoding.
[[nodiscard]] Result<RecordedReply> decode_reply(std::string_view bytes);

}  // namespace semel::gateway
