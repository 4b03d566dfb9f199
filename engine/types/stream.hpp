// The rules of streams: entries in the order of their ids, which only grow. Groups of consumers are
// in stream_groups.hpp, the bytes in engine/kinds/stream_keys.hpp.
//
// Unusual rules are redis-server's (7.0): which ids XADD accepts, how far `~` trims, and which
// positions of entries are known (XINFO's entries-read and lag).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/kinds/stream_keys.hpp"
#include "engine/objects/object_edit.hpp"

namespace semel::engine {

/// Ranks of elements: `from` .. `to` - 1.
struct Ranks {
  std::size_t from = 0;
  std::size_t to = 0;
  [[nodiscard]] std::size_t count() const noexcept { return to - from; }
  [[nodiscard]] bool empty() const noexcept { return from == to; }
};
/// Of the keys that begin with `prefix`, which is of a section.
[[nodiscard]] Ranks ranks_of(const ObjectReader& object, const std::string& prefix);

/// The fields of an entry, each with its value. Safe whatever the bytes are: damaged ones end
/// early.
class EntryFields {
 public:
  explicit EntryFields(Bytes value) noexcept;
  /// Fields and values, counted.
  [[nodiscard]] std::size_t parts() const noexcept { return parts_; }
  /// Calls `visit(Bytes)` for each field and each value in turn.
  template <class Visit>
  void each(Visit&& visit) const {
    Bytes rest = value_;
    for (std::size_t i = 0; i < parts_; ++i) visit(take(rest));
  }

 private:
  [[nodiscard]] static Bytes take(Bytes& rest) noexcept;

  Bytes value_;
  std::size_t parts_ = 0;
};

/// A stream as `object`, which must outlive this, holds it. Of an object without elements: a stream
/// that never had an entry. What groups have may change while this is in use, entries may not. Of
/// one thread.
class StreamReader {
 public:
  explicit StreamReader(const ObjectReader& object);

  [[nodiscard]] const StreamHead& head() const noexcept { return head_; }
  [[nodiscard]] std::size_t length() const noexcept { return entries().count(); }
  [[nodiscard]] Ranks entries() const noexcept;
  /// 0-0: there is no entry.
  [[nodiscard]] StreamId first_id() const noexcept;
  [[nodiscard]] StreamId last_id() const noexcept;
  /// The entries from id `from` to id `to`, both included.
  [[nodiscard]] Ranks between(StreamId from, StreamId to) const noexcept;
  /// The first `count` (0: all) of the entries behind `id`.
  [[nodiscard]] Ranks behind(StreamId id, std::uint64_t count) const noexcept;
  [[nodiscard]] std::optional<Bytes> find(StreamId id) const noexcept {
    return object_.find(EntryKey{id});
  }
  /// Whether an entry behind `id`, or `id`, may have been deleted from the midst.
  [[nodiscard]] bool may_have_gaps_from(StreamId id) const noexcept;
  /// How many entries were ever added up to `id`. None: that is not known.
  [[nodiscard]] std::optional<std::uint64_t> position_of(StreamId id) const noexcept;

 private:
  /// Whether there is an element of this rank, and it is an entry. Of a rank before all groups.
  [[nodiscard]] bool is_entry(std::size_t rank) const noexcept;

  const ObjectReader& object_;
  StreamHead head_;
  std::size_t begin_ = 0;  // of the entries
  // Behind them. Found when it is asked for: of most calls a worker makes, it is not.
  mutable std::optional<std::size_t> end_;
};

/// Makes the object a stream without entries, if it is none yet.
void begin_stream(ObjectEdit& stream);

/// What id an entry is to have.
struct WantedId {
  StreamId id{};
  bool has_ms = false;   ///< else it is made of the time
  bool has_seq = false;  ///< else it is the next of its millisecond
};
enum class AddError : std::uint8_t { none, exhausted, not_larger };
/// `words`: fields and values in turn. On an error nothing is changed.
[[nodiscard]] AddError add_entry(ObjectEdit& stream, const WantedId& wanted, std::int64_t now_ms,
                                 std::span<const Bytes> words, StreamId& added);

struct StreamTrim {
  enum class By : std::uint8_t { nothing, length, id };
  By by = By::nothing;
  bool is_about = false;     ///< whole nodes only, and at most `limit` entries
  std::uint64_t length = 0;  ///< at most so many entries stay
  StreamId id{};             ///< no smaller one stays
  std::uint64_t limit = 0;   ///< 0: none
  // A node ends with the entry that reaches one of these; 0: no bound.
  std::uint64_t node_entries = 0;
  std::uint64_t node_bytes = 0;
};
/// Returns how many entries went.
std::size_t trim_stream(ObjectEdit& stream, const StreamTrim& by);

/// True: the entry was there.
bool delete_entry(ObjectEdit& stream, StreamId id);

void write_head(ObjectEdit& stream, const StreamHead& head);

}  // namespace semel::engine
