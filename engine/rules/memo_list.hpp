// The memos of a claim's steps as bytes of its record: each has the fingerprint of the payload that
// made it, so that payloads which take turns under one key keep what each has brought about. The
// newest comes last. Little-endian:
//
//   memo   u8 fingerprint algorithm | 16 bytes digest, unless that is 0 | u16 bytes of the name
//          | u32 bytes of the memo | name | memo
//
// The bytes may come from a disk. Reading never leaves them, whatever they are; is_sound_memos()
// checks them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "semel/claim.hpp"

namespace semel::engine {

struct MemoView {
  Fingerprint payload{};
  Bytes step{};
  Bytes bytes{};
};

/// From the oldest to the newest.
class MemoReader {
 public:
  explicit MemoReader(Bytes memos) noexcept : rest_(memos) {}
  /// False: there are no more, or the rest cannot be read.
  [[nodiscard]] bool next(MemoView& memo) noexcept;
  [[nodiscard]] bool is_at_end() const noexcept { return rest_.empty(); }

 private:
  Bytes rest_;
};

[[nodiscard]] bool is_sound_memos(Bytes memos) noexcept;

/// Of a step, for this payload: its own memo, or else the newest that may be its own, as
/// fingerprints of different algorithms are not compared.
[[nodiscard]] std::optional<Bytes> find_memo(Bytes memos, const Fingerprint& payload,
                                             Bytes step) noexcept;

/// What the memos would be with one more.
struct MemoSize {
  std::size_t bytes = 0;
  std::size_t count = 0;
};
/// The one that this payload has for the step is replaced.
[[nodiscard]] MemoSize size_with(Bytes memos, const MemoView& added) noexcept;
/// The list itself.
[[nodiscard]] std::string with_memo(Bytes memos, const MemoView& added);

}  // namespace semel::engine
