// Which replicated log is in a directory (core/log_identity.hpp), in the file `identity`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/log/checkpoint.hpp"

namespace semel::replication {

struct IdentityContent {
  static constexpr std::uint64_t magic_value = 0x314e4449'544c4d53;  // "SMLTIDN1"
  std::uint64_t magic = magic_value;
  std::uint64_t sequence = 0;  // grows with each write
  std::uint64_t cluster_id = 0;
  std::uint64_t node_id = 0;
  std::uint64_t high = 0;  // random
  std::uint64_t low = 0;
  std::uint64_t digest = 0;  // of the bytes before it

  [[nodiscard]] std::uint64_t right_digest() const noexcept {
    return XXH3_64bits(this, offsetof(IdentityContent, digest));
  }
};

using IdentityFile = storage::TwoSlots<IdentityContent>;

}  // namespace semel::replication
