// What a replica shows of itself: its status for any thread, and its events for the operator's log.
#pragma once

#include <cstdint>
#include <string>

#include "replication/parts/published.hpp"
#include "replication/parts/replica_parts.hpp"
#include "replication/parts/replica_reports.hpp"

namespace semel::replication {

/// Belongs to the loop's thread, but for what status() returns.
class ReplicaView {
 public:
  explicit ReplicaView(const ReplicaParts& parts);
  ReplicaView(const ReplicaView&) = delete;
  ReplicaView& operator=(const ReplicaView&) = delete;

  [[nodiscard]] const PublishedStatus& status() const noexcept { return status_; }
  /// Publishes the status. std::bad_alloc.
  void show();
  /// The core has another role or knows another leader.
  void note_role();
  /// At once: a caller that is answered that the level is raised looks here.
  void note_level(FeatureLevel level) noexcept { status_.set_level(level); }
  void note_members(Bytes configuration);
  void note_needs_reopen() noexcept { status_.set_needs_reopen(); }
  /// It takes part no longer. A short reason takes no memory. The first one stays.
  void note_failed(std::string_view why) { status_.set_failed(why); }
  void note_end() noexcept { status_.set_leads(false); }

  void say(ReplicaEvent::What what, const std::string& text) const noexcept;
  /// Reports conditions that have begun or ended since the last call.
  void report_changes();

 private:
  /// And what they wait for: entries for this node's disk or for other nodes, commands for entries.
  [[nodiscard]] std::string what_waits() const;
  [[nodiscard]] Term term() const noexcept;

  const ReplicaParts& parts_;
  PublishedStatus status_;
  ReplicaReports reports_;
  std::uint64_t elections_ = 0;  // won
};

}  // namespace semel::replication
