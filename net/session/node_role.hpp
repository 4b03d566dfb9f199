// Whether this node decides by itself, or follows another server (net/follow).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "semel/result.hpp"

namespace semel::net {

/// Every request reads it, and the link to the master changes it.
///
/// Concurrency: words for themselves. A request that comes together with a change may be judged by
/// either value; a full sync begins some round trips after the role has changed.
class NodeRole {
 public:
  enum class State : std::uint8_t {
    master,   ///< it decides by itself
    follows,  ///< its databases are a whole copy, perhaps an old one
    loads,    ///< a full sync is under way, or was cut off: a part of a copy
  };

  // mo: relaxed throughout: see above
  [[nodiscard]] State state() const noexcept { return state_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool follows() const noexcept { return state() != State::master; }
  void become(State state) noexcept { state_.store(state, std::memory_order_relaxed); }
  [[nodiscard]] bool is_linked() const noexcept {
    return is_linked_.load(std::memory_order_relaxed);  // mo: relaxed: see above
  }
  void set_linked(bool is_linked) noexcept {
    is_linked_.store(is_linked, std::memory_order_relaxed);  // mo: relaxed: see above
  }

 private:
  std::atomic<State> state_{State::master};
  std::atomic<bool> is_linked_{false};  // the stream of commands flows
};

struct MasterAddress {
  std::string host{};
  std::uint16_t port = 0;

  friend bool operator==(const MasterAddress&, const MasterAddress&) = default;
};

/// What INFO and ROLE show of a link.
struct FollowView {
  enum class Link : std::uint8_t { connect, connecting, handshake, sync, connected };

  MasterAddress master{};
  Link link = Link::connect;
  std::string replid{};             ///< of the master's history; empty: none is known
  std::int64_t offset = -1;         ///< up to where the stream was applied; -1: there was none yet
  std::int64_t read_offset = -1;    ///< up to where it was read
  std::int64_t quiet_seconds = -1;  ///< since the master sent something; -1: it is not connected
  std::int64_t down_seconds = -1;   ///< since the stream flowed; -1: it flows, or never has
  std::int64_t sync_bytes = 0;      ///< of a full sync; 0: the master did not say
  std::int64_t sync_bytes_read = 0;
  std::uint64_t full_syncs = 0;
  std::uint64_t partial_syncs = 0;
  std::uint64_t commands_refused = 0;  ///< of the stream, here, and skipped
  std::string error{};                 ///< why there is no link; empty: there is one, or it begins
};
[[nodiscard]] constexpr std::string_view name_of(FollowView::Link link) noexcept {
  switch (link) {
    case FollowView::Link::connect:
      return "connect";
    case FollowView::Link::connecting:
      return "connecting";
    case FollowView::Link::handshake:
      return "handshake";
    case FollowView::Link::sync:
      return "sync";
    case FollowView::Link::connected:
      return "connected";
  }
  return {};
}

/// The link to a master, as commands see it. Thread-safe.
class Following {
 public:
  /// From now on. Again the same address: as if nothing was said. Errors, with the whole reply as
  /// detail: refused (claims are here).
  [[nodiscard]] virtual Status follow(const MasterAddress& master) = 0;
  /// The node decides by itself again. When this returns, no command of the master runs any more.
  /// What a full sync left incomplete is removed. Progress: waits for the command of the master
  /// that runs; not to be called inside a section.
  virtual void stop() = 0;
  [[nodiscard]] virtual FollowView view() const = 0;

 protected:
  ~Following() = default;
};

}  // namespace semel::net
