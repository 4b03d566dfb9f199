// What a connection listens to, and what it publishes within a transaction. Filled in by
// net/events/pubsub.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "net/resp/resp_writer.hpp"
#include "net/session/client_handle.hpp"

namespace semel::net {

/// What a subscription is for; each kind has names of its own.
enum class Topic : std::uint8_t { channel, pattern, shard };
inline constexpr std::size_t topic_count = 3;

/// A connection that has subscribed at least once. Its thread alone changes it, under the mutex of
/// PubSub, and may read it without.
struct Subscriber {
  std::shared_ptr<ClientHandle> handle;
  Resp dialect = Resp::two;
  /// Views of PubSub's own names, which stay as long as they have subscribers.
  std::array<std::set<std::string_view>, topic_count> names{};
  std::size_t name_bytes = 0;

  [[nodiscard]] const std::set<std::string_view>& of(Topic topic) const noexcept {
    return names[static_cast<std::size_t>(topic)];
  }
  [[nodiscard]] std::size_t count() const noexcept {
    return names[0].size() + names[1].size() + names[2].size();
  }
};

/// Messages to push when the present transaction has answered.
struct HeldPushes {
  struct Message {
    Topic topic;
    std::string channel;
    std::string text;
  };
  std::vector<Message> messages{};  ///< to all but the connection itself
  std::size_t bytes = 0;            ///< of messages
  std::string own{};                ///< to the connection itself, as it will be sent
};

}  // namespace semel::net
