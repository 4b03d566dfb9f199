// An entry of the replicated log: 1 to 1,024 commands with the time, and the secret, that every
// replica decides them by.
//
//   u8 format 1 | u64 time, unix ms | u64 secret | origin, command | origin, command | .. to the
//   end
//
//   origin   node; if it is not 0: life | lowest sequence | sequence - lowest (origin.hpp)
//
// A fence is 48 bits of the entry's index and 16 bits of a place in it: the versions that its
// commands take, in their order, from 1 on. So epochs grow over failovers, restarts and restores.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "replication/core/types.hpp"
#include "replication/state/command.hpp"
#include "replication/state/origin.hpp"

namespace semel::replication {

inline constexpr std::size_t entry_commands_max = 1'024;
/// An entry ends before it is larger, unless one command alone is.
inline constexpr std::size_t entry_bytes_max = std::size_t{64} << 10;
inline constexpr unsigned fence_place_bits = 16;
inline constexpr std::size_t entry_versions_max = (std::size_t{1} << fence_place_bits) - 1;
inline constexpr LogIndex log_index_max = limits::version_max >> fence_place_bits;

/// The version before the first one of an entry.
[[nodiscard]] constexpr Version version_before(LogIndex index) noexcept {
  return index << fence_place_bits;
}

/// A command as bytes that every replica can read.
struct PreparedCommand {
  std::string bytes;
  std::size_t versions = 0;
};
/// Errors: too_many_keys (it needs more versions than an entry has), bad_encoding (no replica could
/// read it).
[[nodiscard]] Result<PreparedCommand> prepare(const Command& command);
/// The same of a command that was read from `bytes`, all of them.
[[nodiscard]] Result<PreparedCommand> prepare(const Command& command, std::string bytes);

/// Made by the leader. Belongs to one thread.
class EntryBuilder {
 public:
  EntryBuilder(std::int64_t unix_ms, std::uint64_t secret);

  /// False: it has no room for this command, which belongs into the next entry. An entry without
  /// commands takes any.
  [[nodiscard]] bool add(const PreparedCommand& command, Origin origin = {});
  /// The same. Errors: those of prepare().
  [[nodiscard]] Result<bool> add(const Command& command, const Origin& origin = {});
  /// For `commands` of `bytes` together, whose add() takes no memory then.
  void reserve(std::size_t commands, std::size_t bytes);
  [[nodiscard]] std::size_t size() const noexcept { return commands_; }
  [[nodiscard]] const std::string& bytes() const& noexcept { return bytes_; }
  [[nodiscard]] std::string bytes() && noexcept { return std::move(bytes_); }

 private:
  std::string bytes_;
  std::size_t commands_ = 0;
  std::size_t versions_ = 0;
};

struct Entry {
  std::int64_t unix_ms = 0;
  std::uint64_t secret = 0;
  std::vector<Command> commands{};  ///< point into the entry's bytes
  std::vector<Origin> origins{};    ///< of each
};

/// Errors: storage_newer (another format: a later release wrote it), bad_encoding.
[[nodiscard]] Result<Entry> read_entry(Bytes bytes);

}  // namespace semel::replication
