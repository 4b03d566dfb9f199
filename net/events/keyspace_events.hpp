// Events of keys, published to subscribers: a message of __keyspace@<db>__:<key> is the name of the
// event, one of __keyevent@<db>__:<event> is the key. The letters of notify-keyspace-events choose
// the classes of events:
//
//   K keyspace channels   $ strings   s sets          x expired    n new keys (not in A)
//   E keyevent channels   l lists     z sorted sets   e evicted    m missed reads (not in A)
//   g of any kind         h hashes    t streams       d modules    A g$lshzxetd
//
// Events are published after the command has run, not inside its atomic step: if two clients change
// one key at the same moment, their events may arrive in the opposite order. Events of a
// transaction follow it, in the order of its changes. Events without a subscriber are dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "net/events/pubsub.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"

namespace semel::net {

class KeyspaceEvents {
 public:
  /// Both arguments must live as long as this.
  KeyspaceEvents(Engine& engine, PubSub& pubsub);
  ~KeyspaceEvents();
  KeyspaceEvents(const KeyspaceEvents&) = delete;
  KeyspaceEvents& operator=(const KeyspaceEvents&) = delete;

  /// Error: the detail is redis-server's message; nothing was changed.
  [[nodiscard]] Status set_flags(std::string_view letters);
  /// In redis-server's order, but `n` is shown beside A as well.
  [[nodiscard]] std::string flags() const;

  /// Whether any event is published.
  [[nodiscard]] bool any() const noexcept {
    // mo: relaxed: a setting; its change does not wait for the commands under way
    return flags_.load(std::memory_order_relaxed) != 0;
  }
  /// Whether events of a class, by its letter, are published.
  [[nodiscard]] bool wants(char event_class) const noexcept;
  /// Publishes an event. `from`: the client whose command caused it; null: none.
  void notify(ClientState* from, char event_class, std::string_view event, std::uint8_t db,
              std::string_view key);

  /// Of a key that was evicted. drain() publishes it.
  void queue_evicted(std::uint8_t db, std::string_view key);

  /// Publishes the keys, and the hashes whose fields, have expired, and the keys that were evicted,
  /// since the last call. Call it often: connections do at the end of a round, and after each
  /// Engine::advance(). Costs one load if there is nothing.
  void drain(ClientState* from = nullptr) {
    // mo: relaxed: an event that is queued concurrently is published by the next call
    if (waiting_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      notify_ended(from);
  }
  /// Such keys that were not published because the queue was full.
  [[nodiscard]] std::uint64_t lost() const noexcept {
    return lost_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

  static constexpr std::size_t waiting_max = 65'536;
  static constexpr std::size_t waiting_bytes_max = std::size_t{16} << 20;  ///< of their keys

 private:
  struct Ended {
    char event_class;  // x expired, e evicted
    std::uint8_t db;
    std::string key;
    ExpiredEvent::What what;
  };
  [[nodiscard]] bool wants(ExpiredEvent::What what) const noexcept;
  void queue(const ExpiredEvent& event);
  void hold(char event_class, std::uint8_t db, std::string_view key, ExpiredEvent::What what);
  void notify_ended(ClientState* from);
  void publish(ClientState* from, std::string_view event, std::uint8_t db, std::string_view key);

  Engine& engine_;
  PubSub& pubsub_;
  std::uint64_t sink_ = 0;
  std::atomic<std::uint32_t> flags_{0};  // 0 also if neither K nor E is among them: see set_flags()
  std::atomic<std::uint32_t> letters_{0};
  base::Mutex notifying_;  // held while ended_ is published; before mutex_
  base::Mutex mutex_;
  std::deque<Ended> ended_ SEMEL_GUARDED_BY(mutex_);
  std::size_t ended_bytes_ SEMEL_GUARDED_BY(mutex_) = 0;  // of their keys
  std::atomic<std::size_t> waiting_{0};  // in ended_, or removed and not published yet
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace semel::net
