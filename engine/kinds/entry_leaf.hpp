// A leaf of a stream's tree that has entries alone (stream_keys.hpp): ids as differences, and the
// names of fields once. For stretches of a stream to which no entry comes any more.
//
//   head | u64 ms | u64 seq | u16 names' place | u16 names' bytes | u16 names | u16 0 |
//          u16 place of each entry | names | entries
//
//   names    the fields of the first entry that lies in the leaf: varint length | bytes, of each
//   entry    varint ms above the leaf's | varint seq, of the same ms above the leaf's | value
//   value    of an entry of these fields: varint length | bytes of each field's value, of the last
//            the bytes alone; of another, as the element has it; of a long one, its run's handle
//   place    where the entry begins, from the node's begin. Its two highest bits say which value it
//            is.
//
// Which element an entry is can be told exactly, whatever bytes its value has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/assert.hpp"
#include "base/coding.hpp"
#include "engine/kinds/sought_key.hpp"
#include "engine/kinds/stream_keys.hpp"
#include "semel/types.hpp"

namespace semel::engine {

inline constexpr std::size_t entry_key_bytes = 1 + stream_id_bytes;
/// A longer value lies in a run.
inline constexpr std::size_t entry_value_bytes_max = 256;
inline constexpr unsigned entry_leaf_entries_max = 64;
/// Of a leaf, behind its node's head. Another one stays as it was.
inline constexpr std::size_t entry_leaf_bytes_max = 5 * 1024;

[[nodiscard]] inline bool is_entry_key(Bytes key) noexcept {
  return key.size() == entry_key_bytes && key[0] == static_cast<char>(StreamSection::entries);
}

/// Of bytes that are sound. Moves `at` behind it.
[[nodiscard]] inline std::uint64_t take_varint(const char*& at) noexcept {
  auto byte = static_cast<std::uint8_t>(*at++);
  std::uint64_t number = byte & 127;
  for (unsigned shift = 7; byte >= 128; shift += 7) {
    byte = static_cast<std::uint8_t>(*at++);
    number |= std::uint64_t{byte & 127U} << shift;
  }
  return number;
}

/// An element that a leaf does not have as it is is put together here.
class EntryRoom {
 public:
  // Nothing is initialized: most readers never look at such an element.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  EntryRoom() noexcept {}

  [[nodiscard]] bool has(const char* at) const noexcept {
    const auto* const begin = reinterpret_cast<const char*>(this);
    return at >= begin && at < begin + sizeof *this;
  }

  std::array<char, entry_key_bytes> key;
  std::array<char, entry_value_bytes_max> value;
};

struct EntryLeafHead {
  std::uint64_t ms;
  std::uint64_t seq;
  std::uint16_t names_at;
  std::uint16_t names_bytes;
  std::uint16_t names;
  std::uint16_t unused;
};
static_assert(sizeof(EntryLeafHead) == 24);

/// Reads a leaf. Valid as long as the leaf is.
class EntryLeaf {
 public:
  /// `node` is `used` bytes, of which `head` are before the leaf.
  EntryLeaf(const char* node, std::size_t head, unsigned count, std::size_t used) noexcept
      : node_(node), at_(node + head), count_(count), used_(used) {}

  static constexpr unsigned no_entry = entry_leaf_entries_max;
  struct Value {
    Bytes bytes;
    bool is_run;  ///< they are its handle
  };

  [[nodiscard]] StreamId id(unsigned index) const noexcept {
    const char* at = begin(index);
    return take_id(at);
  }
  [[nodiscard]] Bytes key(unsigned index, EntryRoom& room) const noexcept {
    return put_key(id(index), room);
  }
  /// An entry's key, which is in the room then, and its value.
  [[nodiscard]] Value element(unsigned index, EntryRoom& room) const noexcept {
    const char* at = begin(index);
    static_cast<void>(put_key(take_id(at), room));
    const auto left = static_cast<std::size_t>(node_ + end(index) - at);
    if ((place_of(index) & shares_names) != 0) return {put_together(at, left, room), false};
    return {{at, left}, is_run(index)};
  }
  /// How long the value of an entry is that has none in a run.
  [[nodiscard]] std::size_t value_bytes(unsigned index) const noexcept;
  /// Of an entry that has.
  [[nodiscard]] const char* handle(unsigned index) const noexcept {
    const char* at = begin(index);
    static_cast<void>(take_id(at));
    return at;
  }
  [[nodiscard]] bool is_run(unsigned index) const noexcept {
    return (place_of(index) & is_in_run) != 0;
  }
  /// The first entry whose id is not below `id`.
  [[nodiscard]] unsigned lower_bound(StreamId id) const noexcept {
    unsigned first = 0;
    for (unsigned count = count_; count > 0;) {
      const unsigned half = count / 2;
      if (this->id(first + half) < id) {
        first += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return first;
  }
  /// The first entry whose key is not below `key`, which most often is an entry's itself.
  [[nodiscard]] unsigned lower_bound(const SoughtKey& key) const noexcept;
  /// What the leaf takes behind its node's head, without entry `index`; of `no_entry`, with all.
  [[nodiscard]] std::size_t bytes_without(unsigned index) const noexcept;
  /// Writes that.
  void write_without(unsigned index, char* to) const noexcept;
  /// Shrinks a fresh leaf by entry `index`. Returns where the leaf ends then.
  [[nodiscard]] static std::size_t erase(char* node, std::size_t head, unsigned count,
                                         std::size_t used, unsigned index) noexcept;

  /// Names are in order, and so are entries; nothing is left between them but what erase() leaves.
  [[nodiscard]] bool is_sound() const noexcept;

 private:
  friend class EntryLeafDraft;
  static constexpr unsigned shares_names = 1U << 15;
  static constexpr unsigned is_in_run = 1U << 14;
  static constexpr unsigned place_mask = is_in_run - 1;
  static constexpr std::size_t place_bytes = sizeof(std::uint16_t);

  static void put_big_endian(std::uint64_t number, char* to) noexcept {
    number = __builtin_bswap64(number);
    std::memcpy(to, &number, sizeof number);
  }
  static Bytes put_key(StreamId id, EntryRoom& room) noexcept {
    room.key[0] = static_cast<char>(StreamSection::entries);
    put_big_endian(id.ms, room.key.data() + 1);
    put_big_endian(id.seq, room.key.data() + 1 + sizeof id.ms);
    return {room.key.data(), room.key.size()};
  }
  [[nodiscard]] EntryLeafHead head() const noexcept {
    EntryLeafHead head;
    std::memcpy(&head, at_, sizeof head);
    return head;
  }
  [[nodiscard]] unsigned place_of(unsigned index) const noexcept {
    SEMEL_ASSERT_SLOW(index < count_);
    std::uint16_t place;
    std::memcpy(&place, at_ + sizeof(EntryLeafHead) + index * place_bytes, sizeof place);
    return place;
  }
  [[nodiscard]] const char* begin(unsigned index) const noexcept {
    return node_ + begin_place(index);
  }
  [[nodiscard]] std::size_t begin_place(unsigned index) const noexcept {
    return index < count_ ? place_of(index) & place_mask : used_;
  }
  [[nodiscard]] std::size_t end(unsigned index) const noexcept {
    return index < count_ ? begin_place(index + 1) : used_;
  }
  /// Moves `at` behind it.
  [[nodiscard]] StreamId take_id(const char*& at) const noexcept {
    StreamId first;
    std::memcpy(&first.ms, at_ + offsetof(EntryLeafHead, ms), sizeof first.ms);
    std::memcpy(&first.seq, at_ + offsetof(EntryLeafHead, seq), sizeof first.seq);
    const std::uint64_t ms = take_varint(at);
    const std::uint64_t seq = take_varint(at);
    return {first.ms + ms, ms == 0 ? first.seq + seq : seq};
  }
  /// The names of the leaf with the values of `left` bytes from `at` on.
  [[nodiscard]] Bytes put_together(const char* at, std::size_t left,
                                   EntryRoom& room) const noexcept;

  const char* node_;
  const char* at_;
  unsigned count_;
  std::size_t used_;
};

/// A leaf that is to be made.
class EntryLeafDraft {
 public:
  /// Of `count` entries, the first of which is `first`, with the names of the entry whose value is
  /// `named`. `head` bytes are before the leaf. It is to have at most `bytes_max` bytes, which are
  /// at most entry_leaf_bytes_max.
  EntryLeafDraft(unsigned count, StreamId first, Bytes named, std::size_t head,
                 std::size_t bytes_max) noexcept;
  EntryLeafDraft(const EntryLeafDraft&) = delete;
  EntryLeafDraft& operator=(const EntryLeafDraft&) = delete;

  /// The next entry, in order. Of a value in a run, `value` is the handle. False: it has no room.
  [[nodiscard]] bool add(StreamId id, Bytes value, bool is_run) noexcept;
  /// Behind the node's head, when all have been added.
  [[nodiscard]] Bytes bytes() const noexcept { return {bytes_.data(), used_}; }
  [[nodiscard]] unsigned runs() const noexcept { return runs_; }

 private:
  /// Whether the fields of `value` are those of the leaf: its last value then.
  [[nodiscard]] bool has_names(Bytes value, std::size_t& last) const noexcept;
  void put_names(Bytes named) noexcept;
  [[nodiscard]] Bytes names() const noexcept {
    return {bytes_.data() + (head_.names_at - before_), head_.names_bytes};
  }

  EntryLeafHead head_{};
  std::size_t before_;
  std::size_t bytes_max_;
  unsigned count_;
  unsigned added_ = 0;
  unsigned runs_ = 0;
  std::size_t used_;
  std::array<char, entry_leaf_bytes_max> bytes_;
};

}  // namespace semel::engine
