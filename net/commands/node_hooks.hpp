// What a node calls in the program around it, and what it knows about its process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/resp/log_level.hpp"
#include "net/session/peer_link.hpp"
#include "semel/result.hpp"

namespace semel::lua {
enum class LogLevel : std::uint8_t;  // lua_compat/runtime/host.hpp
}  // namespace semel::lua

namespace semel::net {

/// Something that an operator wants to find in the log. The views are valid during the call.
struct NodeEvent {
  LogLevel level = LogLevel::notice;
  std::string_view name{};     ///< a word of our own; bursts are counted by it
  std::string_view address{};  ///< of the client
  std::string_view user{};
  std::string_view text{};  ///< without secrets; from clients, so any bytes
};

/// The last backup of the storage that SEMEL.BACKUP or BGSAVE started.
struct BackupState {
  enum class Stage : std::uint8_t { none, running, done, failed };
  Stage stage = Stage::none;
  std::string name{};
  std::int64_t started_unix_ms = 0;
  std::uint64_t started_changes = 0;  ///< Stats::changes before it began
  std::int64_t seconds = 0;           ///< that it took, or takes so far
  std::string error{};                ///< of a failed one
  std::uint64_t bytes = 0;            ///< that are in it so far
  std::uint64_t bytes_total = 0;
  std::uint64_t done = 0;          ///< backups since the node was started
  std::uint64_t done_changes = 0;  ///< started_changes of the last of them
  std::int64_t done_unix_ms = 0;   ///< when the last of them was done; 0: there is none
  std::int64_t last_seconds = -1;  ///< that the last one took, done or not; -1: there is none
  bool last_failed = false;        ///< the last one that ended
};

/// What only the program around a node can do. Each may be empty.
struct NodeHooks {
  /// SHUTDOWN; returns at once.
  std::function<void()> shutdown{};
  /// Puts `text` in the place of a file's content, all or nothing. False: it could not.
  std::function<bool(const std::string& path, std::string_view text)> replace_file{};
  /// CONFIG REWRITE. The detail of an error is the whole reply.
  std::function<Status()> rewrite_config{};
  /// SEMEL.BACKUP START: begins one and returns. Errors: bad_option (the name, no backup-dir, no
  /// storage), refused (one is running).
  std::function<Status(const std::string& name)> start_backup{};
  std::function<BackupState()> backup_state{};
  /// SEMEL.BACKUP CANCEL: returns at once. Errors: refused (none is running).
  std::function<Status()> cancel_backup{};
  /// A client at `address` gave a wrong password for `user`, or the user may not log in.
  std::function<void(std::string_view user, std::string_view address)> login_denied{};
  /// From any thread.
  std::function<void(const NodeEvent& event)> event{};
  /// MIGRATE: runs `work`, which blocks on the network, on a thread that serves no clients. False:
  /// too many run, or the node ends.
  std::function<bool(std::function<void()> work)> run_aside{};
  /// From such a thread. Errors: storage_failed.
  std::function<Result<std::unique_ptr<PeerLink>>(const PeerAddress&)> connect_peer{};
  /// redis.log of a script.
  std::function<void(lua::LogLevel level, std::string_view text)> script_log{};

  void report(const NodeEvent& about) const {
    if (event) event(about);
  }
};

/// What INFO shows of the process; filled in before the first connection.
struct NodeFacts {
  std::atomic<std::uint16_t> tcp_port{0};
  std::string executable{};
  std::string config_file{};
  std::string run_id{};         ///< 40 hex digits; made up when the node begins
  std::int64_t started_ms = 0;  ///< on the engine's clock; in a group on the system's
  std::int64_t started_unix_ms = 0;
  std::atomic<bool> sweeps{true};  ///< expired keys are removed in the background
  bool journals = false;           ///< changes are on a disk, or on their way there
  std::int64_t maxmemory = 0;      ///< at the start: what CONFIG SET maxmemory 0 sets
};

}  // namespace semel::net
