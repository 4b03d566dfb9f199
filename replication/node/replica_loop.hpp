// The one thread of a replica: what makes its parts, and what each turn of it does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "replication/log/log_writer.hpp"
#include "replication/node/replica_disk.hpp"
#include "replication/parts/loop_calls.hpp"
#include "replication/parts/loop_host.hpp"
#include "replication/parts/loop_thread.hpp"
#include "replication/parts/published.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/parts/replica_parts.hpp"

namespace semel::replication {

class ReplicaLoop final : private LoopHost {
 public:
  ReplicaLoop(const ReplicaOptions& options, storage::Disk& disk, ReplicaDisk found);
  ~ReplicaLoop();

  [[nodiscard]] Status start(RequestRunner* runner);
  void stop();
  using Call = std::function<Status(ReplicaParts& parts, std::uint64_t now)>;
  /// Runs `what` on the loop, followed by a turn, and waits. Errors: closing, what it returns.
  [[nodiscard]] Status call(const Call& what);

  // --- any thread -------------------------------------------------------------------------------
  [[nodiscard]] LoopCalls& calls() noexcept { return calls_; }
  [[nodiscard]] StateMachine& state() noexcept { return *found_.state; }
  [[nodiscard]] const engine::GroupTime& group_time() const noexcept { return group_time_; }
  [[nodiscard]] bool is_own_thread() const noexcept { return thread_.is_own(); }
  [[nodiscard]] const PublishedStatus& status() const noexcept;
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const engine::SessionOwner& session_owner() const noexcept { return owner_; }

 private:
  // --- LoopHost
  // -----------------------------------------------------------------------------------
  [[nodiscard]] bool is_ended() const noexcept override { return is_ended_; }
  void stop_with(const std::string& why) override;
  void turn() override;
  void wake_soon() override { calls_.wake_soon(); }

  [[nodiscard]] Status start_parts(RequestRunner* runner);
  [[nodiscard]] Status make_core(LogIndex snapshot);
  void make_snapshots(LogIndex newest);
  void apply_soon();
  void tick();
  [[nodiscard]] std::uint64_t tick_after() const;
  void note_written(const LogWriter::Written& written);
  void memory_ended() noexcept;
  /// The replica takes part no longer. Commands that were not proposed were not decided; the
  /// outcome of the others is unknown. Takes no memory.
  void end() noexcept;

  const ReplicaOptions options_;
  const engine::SessionOwner owner_;
  storage::Disk& disk_;
  const SystemClock system_clock_;
  const Clock& wall_;
  LoopThread thread_;
  PublishedTime group_time_;  // outlives the engine, whose waits look at it
  ReplicaDisk found_;         // but for the state, until start()
  ReplicaParts parts_;
  LoopCalls calls_;
  std::uint16_t port_ = 0;
  bool is_ended_ = false;
  bool is_applying_ = false;  // apply_soon() has posted
};

}  // namespace semel::replication
