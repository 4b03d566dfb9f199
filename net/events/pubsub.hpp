// SUBSCRIBE and PUBLISH: which connection receives which messages.
//
// One mutex for a node: all subscribers receive the messages of all channels in one order, and none
// after the confirmation of an UNSUBSCRIBE. It is held while bytes are appended for each receiver,
// which does not block. Without a subscription in the node a publication is one load.
//
// Inside a transaction a publication is held back until EXEC's reply is complete, but its receivers
// are counted at once, including the connection itself.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "net/resp/resp_writer.hpp"
#include "net/session/subscriber.hpp"
#include "semel/result.hpp"

namespace semel::net {

struct ClientState;

class PubSub {
 public:
  /// Messages are counted there while they wait to be sent.
  explicit PubSub(std::shared_ptr<ClientMemory> memory) : memory_(std::move(memory)) {}
  PubSub(const PubSub&) = delete;
  PubSub& operator=(const PubSub&) = delete;

  static constexpr std::size_t subscriptions_max = 65'536;               ///< of one connection
  static constexpr std::size_t name_bytes_max = 65'536;                  ///< of one name
  static constexpr std::size_t names_bytes_max = std::size_t{16} << 20;  ///< of one connection
  static constexpr std::size_t held_bytes_max = std::size_t{16} << 20;

  using Names = std::span<const std::string_view>;
  /// Subscribes and sends a frame for each name. Error: the detail is the whole reply; nothing was
  /// changed.
  [[nodiscard]] Status subscribe(ClientState& client, Topic topic, Names names);
  /// Unsubscribes; without names from all of the topic, or sends a frame that there was none.
  void unsubscribe(ClientState& client, Topic topic, Names names);
  /// Ends all subscriptions of `client` without a frame.
  void forget(ClientState& client);
  /// Disconnects subscribers that `may_hear` refuses, and discards their unsent output: no later
  /// publication reaches them. Calls `may_hear` under the mutex.
  void close_unless(const std::function<bool(const Subscriber&)>& may_hear);
  /// Sets the dialect of `client` from now on.
  void change_dialect(ClientState& client);

  /// Sends `text` to all subscribers of `channel` and, unless it is a shard's, to matching
  /// patterns. Returns the number of subscriptions reached. `from`: the publishing connection;
  /// null: none.
  std::size_t publish(ClientState* from, Topic topic, std::string_view channel,
                      std::string_view text);
  /// Holds back bytes for `client`, which is within a transaction, until after its reply.
  static void hold_own(ClientState& client, std::string_view bytes);
  /// Sends the bytes held back, after the reply of the transaction of `client`.
  void release(ClientState& client);

  [[nodiscard]] bool any() const noexcept {
    // mo: relaxed: a client that publishes after the reply of a SUBSCRIBE sees its count; of any
    //     other it cannot be observed which of the two was first.
    return subscriptions_.load(std::memory_order_relaxed) != 0;
  }
  /// Names with subscribers that match `pattern`, if there is one.
  [[nodiscard]] std::vector<std::string> channels(Topic topic,
                                                  std::optional<std::string_view> pattern) const;
  [[nodiscard]] std::size_t subscribers(Topic topic, std::string_view name) const;
  [[nodiscard]] std::size_t pattern_count() const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Subscribers = std::vector<Subscriber*>;  // in no order
  using ByName = std::unordered_map<std::string, Subscribers, Hash, std::equal_to<>>;

  [[nodiscard]] ByName& names_of(Topic topic) SEMEL_REQUIRES(mutex_) {
    return names_[static_cast<std::size_t>(topic)];
  }
  [[nodiscard]] const ByName& names_of(Topic topic) const SEMEL_REQUIRES(mutex_) {
    return names_[static_cast<std::size_t>(topic)];
  }
  void add(Subscriber& subscriber, Topic topic, std::string_view name) SEMEL_REQUIRES(mutex_);
  void remove(Subscriber& subscriber, Topic topic, std::string_view name) SEMEL_REQUIRES(mutex_);
  template <class Take>
  std::size_t each_receiver(Topic topic, std::string_view channel, Take&& take) const
      SEMEL_REQUIRES(mutex_);
  std::size_t send(Topic topic, std::string_view channel, std::string_view text,
                   const ClientHandle* but) const SEMEL_REQUIRES(mutex_);
  std::size_t hold(ClientState& client, Topic topic, std::string_view channel,
                   std::string_view text) SEMEL_REQUIRES(mutex_);
  void send_held(ClientState& client) SEMEL_REQUIRES(mutex_);

  const std::shared_ptr<ClientMemory> memory_;
  mutable base::Mutex mutex_;
  std::array<ByName, topic_count> names_ SEMEL_GUARDED_BY(mutex_);
  std::atomic<std::size_t> subscriptions_{0};
};

}  // namespace semel::net
