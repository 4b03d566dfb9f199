// Replies of the commands of streams.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/types/stream.hpp"
#include "net/commands/command.hpp"

namespace semel::net {

/// "ms-seq".
void write_id(RespWriter& reply, engine::StreamId id);
/// At most `count` of them; 0: all.
[[nodiscard]] inline engine::Ranks first_ranks(engine::Ranks ranks, std::uint64_t count) noexcept {
  if (count != 0 && count < ranks.count()) ranks.to = ranks.from + static_cast<std::size_t>(count);
  return ranks;
}
[[nodiscard]] inline engine::Ranks last_ranks(engine::Ranks ranks, std::uint64_t count) noexcept {
  if (count != 0 && count < ranks.count()) ranks.from = ranks.to - static_cast<std::size_t>(count);
  return ranks;
}
/// a - b, round the ends of the numbers: times may be any that a client gave.
[[nodiscard]] inline std::int64_t ms_apart(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
/// Its id, and its fields and values. `entry`: an element of the section of entries.
void write_entry(RespWriter& reply, const engine::Element& entry);
/// The entries of `ranks`, at most `count` of them (0: all), with the last first if `is_back`.
void write_entries(RespWriter& reply, const engine::ObjectReader& stream, engine::Ranks ranks,
                   std::uint64_t count, bool is_back = false);

/// A held reply does not grow step by step to this.
inline constexpr std::size_t held_bytes_usual = 240;

/// Elements of an array or a map that are counted while they are written. They are held until
/// write(), within the bound of the reply that they are for.
class CountedReply {
 public:
  explicit CountedReply(RespWriter& to) : to_(to), inner_(bytes_, to.dialect()) {
    inner_.set_bound(to.room());
  }
  /// The reply to which the next element is to be written.
  [[nodiscard]] RespWriter& next() {
    if (count_++ == 0) bytes_.reserve(held_bytes_usual);
    return inner_;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// For the elements to come, in bytes.
  [[nodiscard]] std::size_t room() const noexcept { return inner_.room(); }
  /// There is no room for more.
  [[nodiscard]] bool is_cut() const noexcept { return inner_.is_cut(); }
  void write() {
    to_.array(count_);
    write_elements();
  }
  /// Each element has a key and a value.
  void write_map() {
    to_.map(count_);
    write_elements();
  }

 private:
  void write_elements() {
    to_.prepared(bytes_);
    if (inner_.is_cut()) to_.cut();
  }

  RespWriter& to_;
  std::string bytes_;
  RespWriter inner_;
  std::size_t count_ = 0;
};

/// A call whose reply is held while its command changes a record: the change may run several times,
/// and its events come before the reply.
class HeldCall {
 public:
  /// `room`: of the reply, in bytes.
  HeldCall(Call& to, std::size_t room)
      : to_(to), reply_(bytes_, to.reply.dialect()), call_{to.services, to.engine, to.client,
                                                           to.args,     reply_,    to.row} {
    reply_.set_bound(room);
  }
  HeldCall(const HeldCall&) = delete;
  HeldCall& operator=(const HeldCall&) = delete;

  /// For another run.
  [[nodiscard]] Call& begin() {
    reply_.take_back(0);
    bytes_.reserve(held_bytes_usual);
    return call_;
  }
  void write() { write_to(to_.reply); }
  void write_to(RespWriter& to) {
    to.prepared(bytes_);
    if (reply_.is_cut()) to.cut();
  }

 private:
  Call& to_;
  std::string bytes_;
  RespWriter reply_;
  Call call_;
};

/// Of a command that needs the group.
void fail_no_group(Call& call, std::string_view key, std::string_view group);
/// The same of XGROUP and XINFO.
void fail_no_such_group(Call& call, std::string_view key, std::string_view group);
/// "unknown subcommand or wrong number of arguments".
void fail_subcommand(Call& call, std::string_view container);

}  // namespace semel::net
