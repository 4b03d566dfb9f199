// What a command takes that waits until it can: elements of a list, members of a sorted set. One
// call tries it at once, and a waiter each time that one of its keys has changed. The first try is
// on the stack and points into the request; a waiter has a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/waits/attempt.hpp"
#include "net/objects/list_changes.hpp"
#include "net/resp/resp_writer.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// Why something that was taken is not wanted any more.
enum class Unwanted : std::uint8_t {
  unasked,  ///< the client had left before it was answered
  unread    ///< .. before it had the answer
};

class Taking {
 public:
  Taking() = default;
  virtual ~Taking() = default;
  Taking(const Taking&) = delete;
  Taking& operator=(const Taking&) = delete;

  [[nodiscard]] virtual engine::WaitKind kind() const noexcept = 0;
  /// In one atomic step. False: there is nothing at `key`, and nothing was changed. wrong_type: the
  /// key holds something else.
  [[nodiscard]] virtual Result<bool> take(Engine& engine, KeyRef key) = 0;
  /// Publishes the events of the change.
  virtual void publish(const ChangeSite& site) const = 0;
  /// Writes the reply: the elements, or that there are none.
  virtual void write(RespWriter& reply) const = 0;
  virtual void write_nothing(RespWriter& reply) const { reply.null_array(); }
  /// Both, in redis-server's order.
  virtual void answer(const ChangeSite& site, RespWriter& reply) const {
    write(reply);
    publish(site);
  }
  /// Puts the elements back, if that is possible.
  virtual void give_back(const ChangeSite& site, Unwanted why) = 0;
  /// The same with copies of all words that it is made of: for a client that waits.
  [[nodiscard]] virtual std::shared_ptr<Taking> kept() const = 0;
  /// Beside its keys, for the memory limit.
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;
  /// Whether it takes from an object of another kind as if the key were missing. It does so when it
  /// has waited; at first, wrong_type is an error.
  bool other_is_none = false;
};

struct ListTaking {
  engine::ListEnd end = engine::ListEnd::head;
  std::uint64_t count = 1;
  bool is_list = false;  ///< the reply has a list of elements, as LMPOP's has
};
struct SortedTaking {
  bool is_highest = false;
  std::uint64_t count = 1;
  bool is_list = false;  ///< as above
};

/// The name of a key: a view into a request; a waiter has a copy.
class TakenKey {
 public:
  /// In an object that owns what it points to.
  void keep(Bytes name) { name_ = own_.assign(name); }
  void point_to(Bytes name) noexcept { name_ = name; }
  [[nodiscard]] Bytes name() const noexcept { return name_; }

  TakenKey() = default;
  TakenKey(const TakenKey&) = delete;
  TakenKey& operator=(const TakenKey&) = delete;

 private:
  std::string own_;
  Bytes name_;
};

}  // namespace semel::net
