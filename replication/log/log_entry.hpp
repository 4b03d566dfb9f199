// The content of the records of an entry log. Little-endian; the record around it, with its
// checksum, is storage/log/log_record.hpp.
//
//   begin    u8 1 | u64 offset at which the segment before ends: all bytes behind it are void
//   entry    u8 2 | u8 type | u64 index | u64 term | u64 synced | data
//   truncate u8 3 | u64 first index that is void | u64 synced
//   restart  u8 4 | u64 index | u64 term | u64 synced: entries begin behind it, others are void
//
// An entry whose index is there already replaces it and all behind it. `synced`: everything before
// that offset was on the disk when this was written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "replication/core/types.hpp"
#include "replication/state/entry.hpp"
#include "storage/log/log_format.hpp"

namespace semel::replication {

struct LogEntry {
  LogIndex index = 0;
  Term term = 0;
  std::uint8_t type = 0;  ///< of the consensus: its own affair
  Bytes data;
};

struct LogStatement {
  enum class What : std::uint8_t { begin = 1, entry, truncate, restart };
  What what = What::entry;
  LogEntry entry{};               ///< of truncate and restart the index, and the term
  storage::LogOffset offset = 0;  ///< of begin: the end before; of others: synced
};

/// Bytes of an entry without data.
inline constexpr std::size_t entry_overhead = 2 + 3 * 8;

void encode(const LogStatement& statement, std::string& to);
/// Points into `bytes`. None: they say nothing of this kind.
[[nodiscard]] std::optional<LogStatement> read_statement(Bytes bytes) noexcept;

}  // namespace semel::replication
