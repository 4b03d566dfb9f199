// What a replica says for the operator's log: each change once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "replication/parts/replica_options.hpp"
#include "replication/parts/stall_watch.hpp"

namespace semel::replication {

/// Belongs to one thread.
class ReplicaReports {
 public:
  using To = std::function<void(const ReplicaEvent& event)>;
  struct Facts {
    std::uint64_t now = 0;  ///< milliseconds of a clock that does not go back
    Term term = 0;
    bool is_disk_full = false;
    bool is_disk_writing = false;
    std::uint64_t syncs = 0;
    bool has_work = false;  ///< commands wait, and a leader is known
    LogIndex applied = 0;
    std::uint64_t patience_ms = 0;             ///< without anything applied
    std::optional<std::int64_t> clock_off_ms;  ///< none: the group's time is not known here
  };

  /// `to` may be empty; it must outlive this.
  explicit ReplicaReports(const To& to) noexcept : to_(to) {}

  void say(ReplicaEvent::What what, Term term, const std::string& text) const noexcept;
  /// Reports conditions that have begun or ended since the last call. `what_waits`: called for a
  /// stall.
  void look(const Facts& facts, const std::function<std::string()>& what_waits);
  /// A configuration was applied. std::bad_alloc.
  void say_members(Term term, Bytes configuration);
  /// How long commands have waited with nothing applied, at the last look(); 0: no stall.
  [[nodiscard]] std::uint64_t stalled_ms() const noexcept {
    return group_.is_stalled() ? group_.stalled_ms() : 0;
  }

 private:
  void look_at_disk(const Facts& facts);
  void look_at_group(const Facts& facts, const std::function<std::string()>& what_waits);
  void look_at_clock(const Facts& facts);

  const To& to_;
  StallWatch disk_;
  StallWatch group_;
  bool is_full_ = false;  // this and the next are as they were said
  bool is_clock_off_ = false;
  std::string members_;
};

}  // namespace semel::replication
