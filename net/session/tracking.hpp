// CLIENT TRACKING: messages to connections about changes of keys that they may have cached.
//
// By default a connection gets one message for each key that it has read since the last one; the
// table has those keys, by name, all databases together. With BCAST it gets a message for each key
// that begins with one of its prefixes, and the table is not used.
//
// Messages are queued under the mutex. send() sends them between two replies: on the connection
// that made the change, behind the reply of the command. A message too many costs a read; one that
// is missing leaves a stale value. So a read is remembered before it runs, and confirmed behind it.
//
// Concurrency: one mutex, the last in every order of locks. Under it nothing else is called:
// changed() runs within sections, and inside the engine's sink of expired keys. A reader is
// remembered, then reads; a writer changes the key, then looks it up. So the look-up finds the
// reader, or the reader finds the change.
//
// Bounds: tracking-table-max-keys and TrackedKeys::bytes_max, beyond which random keys leave the
// table with a message; the prefixes of a connection; a queue, beyond which one message says that
// all keys have changed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.hpp"
#include "net/session/clients.hpp"
#include "net/session/overlapping_writes.hpp"
#include "net/session/tracked_keys.hpp"
#include "net/session/tracker.hpp"
#include "net/session/watches.hpp"
#include "semel/engine.hpp"

namespace semel::net {

class Tracking {
 public:
  static constexpr std::size_t prefixes_max = 1'024;                     ///< of one connection
  static constexpr std::size_t prefix_bytes_max = std::size_t{1} << 20;  ///< of one connection
  static constexpr std::size_t queued_bytes_max = std::size_t{4} << 20;  ///< of one receiver
  static constexpr std::uint64_t nobody = 0;                             ///< no client's number

  using Keys = std::span<const std::string_view>;

  /// All must outlive this.
  Tracking(Engine& engine, Watches& watches, const Clients& clients);
  ~Tracking();
  Tracking(const Tracking&) = delete;
  Tracking& operator=(const Tracking&) = delete;

  /// Whether any connection tracks.
  [[nodiscard]] bool any() const noexcept {
    // mo: relaxed: enable() counts inside a section over everything, so that a command that begins
    //     later sees it, and one that ended before has made a change that later reads see.
    return count_.load(std::memory_order_relaxed) != 0;
  }

  // On the thread of the connection.
  /// Begins to track, or changes the options and adds prefixes. Inside a section over everything.
  void enable(std::shared_ptr<Tracker>& tracker, const std::shared_ptr<ClientHandle>& handle,
              const TrackingOptions& options, Keys prefixes);
  /// Ends it. Null: nothing to do.
  void disable(std::shared_ptr<Tracker>& tracker);
  /// Before the keys are read.
  void remember(const Tracker& tracker, Keys keys);
  /// After the keys were read: keys that have left the table since are remembered anew, and a
  /// message follows the reply. Keeps the table within its bounds.
  void confirm(const Tracker& tracker, Keys keys);
  /// A message about keys that another node has read, to be pushed behind the reply. Without a
  /// receiver: there is nothing to push.
  struct Message {
    std::shared_ptr<ClientHandle> to{};
    std::string bytes{};
  };
  [[nodiscard]] Message message_of(const Tracker& tracker, Keys keys) const;

  // Any thread.
  /// The commands that write while any connection tracks.
  [[nodiscard]] WriteCounts& writes() noexcept { return writes_; }
  /// Behind a change of a key by the client of this number, or by none.
  void changed(std::uint64_t by, std::string_view key);
  /// Any key may have changed.
  void all_changed();
  /// Sends the queued messages, those of BCAST only `at_end` of a round. Without any lock held.
  /// Costs one load if there are none.
  void send(bool at_end) {
    // mo: relaxed: the next call sends a message that is queued concurrently
    if (queued_.load(std::memory_order_relaxed)) [[unlikely]]
      send_queued(at_end);
  }
  /// 0: bounded by bytes alone.
  void set_keys_max(std::size_t keys_max);

  struct Figures {
    std::size_t clients = 0;
    std::size_t keys = 0;
    std::size_t items = 0;  ///< pairs of a key and a client
    std::size_t prefixes = 0;
  };
  [[nodiscard]] Figures figures() const;

 private:
  /// For one connection that tracks, in the order of the changes.
  struct Queue {
    std::deque<std::string> keys{};
    std::unordered_set<std::string_view> names{};  // of keys
    std::size_t bytes = 0;
    bool all = false;  // behind the keys: everything has changed
  };
  struct Prefix {
    std::set<std::uint64_t> clients{};
    std::map<std::string, std::uint64_t, std::less<>> keys{};  // and who changed it last
    std::size_t bytes = 0;
    bool all = false;  // too many to name
  };
  struct Outgoing {
    std::shared_ptr<Tracker> tracker;
    std::vector<std::string> keys{};
    bool all = false;
  };

  /// A message to the readers of the key, which leaves the table.
  void invalidate(std::uint64_t by, std::string_view key) SEMEL_REQUIRES(mutex_);
  void queue(std::uint64_t id, std::string_view key) SEMEL_REQUIRES(mutex_);
  void gather(std::uint64_t by, std::string_view key) SEMEL_REQUIRES(mutex_);
  void evict(std::size_t keys) SEMEL_REQUIRES(mutex_);
  void add_prefix(Tracker& tracker, std::string_view prefix) SEMEL_REQUIRES(mutex_);
  void remove_prefixes(Tracker& tracker) SEMEL_REQUIRES(mutex_);
  void send_queued(bool at_end);
  [[nodiscard]] std::vector<Outgoing> take(bool at_end) SEMEL_REQUIRES(mutex_);
  void take_prefix(Prefix& prefix, std::vector<Outgoing>& to) SEMEL_REQUIRES(mutex_);
  void send(const Outgoing& each) const;

  Engine& engine_;
  Watches& watches_;
  const Clients& clients_;
  std::uint64_t sink_ = 0;
  std::atomic<std::size_t> count_{0};
  std::atomic<bool> queued_{false};
  WriteCounts writes_;
  mutable base::Mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Tracker>> trackers_ SEMEL_GUARDED_BY(mutex_);
  TrackedKeys table_ SEMEL_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Queue> queues_ SEMEL_GUARDED_BY(mutex_);
  std::map<std::string, Prefix, std::less<>> prefixes_ SEMEL_GUARDED_BY(mutex_);
  std::map<std::size_t, std::size_t> lengths_ SEMEL_GUARDED_BY(mutex_);  // of prefixes_: how many
};

}  // namespace semel::net
