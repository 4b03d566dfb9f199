// The term and the vote of a node, which must be on the disk before it answers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/log/checkpoint.hpp"

namespace semel::replication {

struct VoteContent {
  static constexpr std::uint64_t magic_value = 0x3145544f'564c4d53;  // "SMLVOTE1"
  std::uint64_t magic = magic_value;
  std::uint64_t sequence = 0;  // grows with each write
  std::uint64_t cluster_id = 0;
  std::uint64_t node_id = 0;
  std::uint64_t term = 0;
  std::uint64_t voted_for = 0;  // 0: no vote in this term
  std::uint64_t digest = 0;     // of the bytes before it

  [[nodiscard]] std::uint64_t right_digest() const noexcept {
    return XXH3_64bits(this, offsetof(VoteContent, digest));
  }
};

using VoteFile = storage::TwoSlots<VoteContent>;

}  // namespace semel::replication
