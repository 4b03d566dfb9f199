// Keys and values of the elements of a stream. A stream is one ordered map; the first byte of a key
// names its section, so that each section is a range of ranks.
//
//   section        key behind its byte      value
//   0 head         none                     last id | u64 entries added | largest deleted id
//   1 entries      id                       [field] [value] ..
//   2 groups       group                    last delivered id | i64 entries read; -1: not known
//   3 consumers    [group] consumer         i64 seen | i64 active; -1: never
//   4 pending      [group] id               i64 delivered | u64 deliveries | consumer
//   5 owned        [group] [consumer] id    none
//
//   id, in a key   u64 ms | u64 seq, the highest byte first
//   id, in a value u64 ms | u64 seq, little-endian like the other numbers
//   times          ms since 1970
//   [bytes]        varint length | bytes; no such name is the beginning of another one, so the
//                  elements of one group, or of one consumer, are a range as well
//
// The head is always there: a stream without entries exists. The smallest entry is found by its
// rank and stands nowhere else. Each pending id is owned by one consumer, and `owned` lists what
// `pending` has by consumer.
//
// The bytes may come from a disk or a peer. Reading is safe whatever they are: a value of another
// size reads as if it were not there.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "engine/kinds/small_bytes.hpp"
#include "semel/types.hpp"

namespace semel::engine {

struct StreamId {
  std::uint64_t ms = 0;
  std::uint64_t seq = 0;
  friend constexpr auto operator<=>(const StreamId&, const StreamId&) = default;
};

inline constexpr StreamId stream_id_max{std::numeric_limits<std::uint64_t>::max(),
                                        std::numeric_limits<std::uint64_t>::max()};

/// The id behind `id`, or before it. None: there is none.
[[nodiscard]] std::optional<StreamId> id_behind(StreamId id) noexcept;
[[nodiscard]] std::optional<StreamId> id_before(StreamId id) noexcept;

// --- keys ---------------------------------------------------------------------------------------

inline constexpr std::size_t stream_id_bytes = 16;

enum class StreamSection : std::uint8_t { head, entries, groups, consumers, pending, owned, end };

/// The smallest key of a section: the key of the head, and where the others begin.
[[nodiscard]] inline std::string section_key(StreamSection section) {
  return std::string(1, static_cast<char>(section));
}

/// On the stack, as entries are looked up often.
class EntryKey {
 public:
  explicit EntryKey(StreamId id) noexcept;
  operator Bytes() const noexcept { return {bytes_.data(), bytes_.size()}; }

 private:
  std::array<char, 1 + stream_id_bytes> bytes_;
};

/// A key of any section, taken apart. Parts that its section does not have are empty.
struct StreamKey {
  StreamSection section = StreamSection::end;
  Bytes group{};
  Bytes consumer{};
  StreamId id{};
};
/// Put together, of a section before `end`: the reverse of read_stream_key(). Calls look up several
/// of them, so they are on the stack.
class StreamKeyBytes {
 public:
  explicit StreamKeyBytes(const StreamKey& key);
  operator Bytes() const noexcept { return bytes_; }

 private:
  SmallBytes bytes_;
};

[[nodiscard]] std::string group_key(Bytes group);
/// Without a consumer: where the consumers of the group begin.
[[nodiscard]] std::string consumer_key(Bytes group, Bytes consumer = {});
[[nodiscard]] std::string pending_key(Bytes group, StreamId id);
[[nodiscard]] std::string owned_key(Bytes group, Bytes consumer, StreamId id);
/// What all keys of a group's consumers, pending ids or owned ids begin with.
[[nodiscard]] std::string keys_of_group(StreamSection section, Bytes group);
[[nodiscard]] std::string keys_of_owner(Bytes group, Bytes consumer);
/// The smallest key that is larger than all keys that begin with `prefix`, which is of a section.
[[nodiscard]] std::string behind_all(std::string prefix);

/// Of a key that ends with an id: of an entry, a pending or an owned one. A shorter one reads as 0.
[[nodiscard]] StreamId id_of(Bytes key) noexcept;

/// None: it is no key in the one form that keys have.
[[nodiscard]] std::optional<StreamKey> read_stream_key(Bytes key) noexcept;

// --- values -------------------------------------------------------------------------------------

struct StreamHead {
  StreamId last{};
  std::uint64_t entries_added = 0;
  StreamId max_deleted{};
};
struct GroupState {
  StreamId last{};
  std::int64_t entries_read = -1;
};
struct ConsumerState {
  std::int64_t seen_ms = 0;
  std::int64_t active_ms = -1;
};
struct PendingState {
  std::int64_t delivered_ms = 0;
  std::uint64_t deliveries = 0;
  Bytes consumer{};  ///< in the value that was read
};

/// A value as its element has it.
class StreamValueBytes {
 public:
  explicit StreamValueBytes(const StreamHead& head);
  explicit StreamValueBytes(const GroupState& group);
  explicit StreamValueBytes(const ConsumerState& consumer);
  explicit StreamValueBytes(const PendingState& pending);
  operator Bytes() const noexcept { return bytes_; }

 private:
  SmallBytes bytes_;
};
[[nodiscard]] std::string encode(const StreamHead& head);
[[nodiscard]] std::string encode(const GroupState& group);
[[nodiscard]] std::string encode(const ConsumerState& consumer);
[[nodiscard]] std::string encode(const PendingState& pending);
[[nodiscard]] std::optional<StreamHead> read_head(Bytes value) noexcept;
[[nodiscard]] std::optional<GroupState> read_group(Bytes value) noexcept;
[[nodiscard]] std::optional<ConsumerState> read_consumer(Bytes value) noexcept;
[[nodiscard]] std::optional<PendingState> read_pending(Bytes value) noexcept;

/// Whether bytes that come from a disk or a peer are of a record of a stream: keys and values have
/// their forms, no entry is behind the last id, consumers have their group, and pending ids have
/// their group, their consumer, and their owned key.
[[nodiscard]] bool is_stream_sound(Bytes record) noexcept;

}  // namespace semel::engine
