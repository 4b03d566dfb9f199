#include "engine/types/stream.hpp"

#include <algorithm>
#include <utility>

#include "base/coding.hpp"

namespace semel::engine {

namespace {

/// Fields and values, as an entry has them.
class EntryBytes {
 public:
  explicit EntryBytes(std::span<const Bytes> words) : bytes_(size_of(words)) {
    base::ByteWriter to{bytes_.data()};
    for (const Bytes word : words) {
      to.varint(word.size());
      to.bytes(word);
    }
  }
  operator Bytes() const noexcept { return bytes_; }

 private:
  static std::size_t size_of(std::span<const Bytes> words) noexcept {
    std::size_t bytes = 0;
    for (const Bytes word : words) bytes += base::varint_bytes(word.size()) + word.size();
    return bytes;
  }

  SmallBytes bytes_;
};

/// Of the first element, which is the head.
StreamHead head_of(const ObjectReader& stream) {
  constexpr char key = static_cast<char>(StreamSection::head);
  if (stream.empty()) return {};
  const Element first = stream.at(0);
  if (first.key.size() != 1 || first.key.front() != key) return {};
  return read_head(first.value).value_or(StreamHead{});
}

/// None: there is none that is larger.
std::optional<StreamId> next_id(const StreamHead& head, const WantedId& wanted,
                                std::int64_t now_ms) noexcept {
  if (wanted.has_ms && wanted.has_seq) return wanted.id;
  if (wanted.has_ms) {
    if (head.last.ms != wanted.id.ms) return StreamId{wanted.id.ms, 0};
    if (head.last.seq == stream_id_max.seq) return std::nullopt;
    return StreamId{head.last.ms, head.last.seq + 1};
  }
  const auto now = static_cast<std::uint64_t>(std::max<std::int64_t>(now_ms, 0));
  if (now > head.last.ms) return StreamId{now, 0};
  return id_behind(head.last);
}

/// How many entries the first node has lost: the entries of a stream from which none was deleted
/// went from its front. Nodes begin where they began when all entries were there.
std::uint64_t lost_of_node(const StreamReader& stream, const StreamTrim& by) noexcept {
  const StreamHead& head = stream.head();
  const std::uint64_t there = stream.length();
  const bool is_known = head.max_deleted == StreamId{} && head.entries_added >= there;
  if (by.node_entries == 0 || !is_known) return 0;
  return (head.entries_added - there) % by.node_entries;
}

/// How many of the first entries make up the next node, of which `lost` are gone.
std::size_t node_size(const ObjectEdit& stream, const Ranks& entries, const StreamTrim& by,
                      std::uint64_t lost) noexcept {
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  stream.each(entries.from, entries.to, [&](const Element& entry) {
    ++count;
    bytes += entry.key.size() + entry.value.size();
    const bool has_entries = by.node_entries != 0 && count + lost >= by.node_entries;
    return !has_entries && (by.node_bytes == 0 || bytes < by.node_bytes);
  });
  return count;
}

/// How many of the first entries a trim would take that is exact.
std::size_t surplus(const StreamReader& stream, const StreamTrim& by) noexcept {
  switch (by.by) {
    case StreamTrim::By::length:
      return stream.length() > by.length ? stream.length() - static_cast<std::size_t>(by.length)
                                         : 0;
    case StreamTrim::By::id: {
      const auto before = id_before(by.id);
      return before ? stream.between({}, *before).count() : 0;
    }
    case StreamTrim::By::nothing:
      break;
  }
  return 0;
}

}  // namespace

Ranks ranks_of(const ObjectReader& object, const std::string& prefix) {
  const std::size_t from = object.rank(prefix);
  return {from, std::max(from, object.rank(behind_all(prefix)))};
}

// --- reading ------------------------------------------------------------------------------------

EntryFields::EntryFields(Bytes value) noexcept : value_(value) {
  base::ByteReader reader{value};
  while (!reader.rest().empty()) {
    static_cast<void>(reader.prefixed());
    if (!reader.is_good()) break;
    ++parts_;
  }
}

Bytes EntryFields::take(Bytes& rest) noexcept {
  base::ByteReader reader{rest};
  const Bytes part = reader.prefixed();
  rest = reader.rest();
  return part;
}

namespace {

StreamSection section_of(const Element& element) noexcept {
  if (element.key.empty()) return StreamSection::end;  // of damaged bytes
  return static_cast<StreamSection>(element.key.front());
}

}  // namespace

StreamReader::StreamReader(const ObjectReader& object) : object_(object) {
  if (object.empty()) return;
  const Element first = object.at(0);
  if (first.key.size() != 1 || section_of(first) != StreamSection::head) return;
  head_ = read_head(first.value).value_or(StreamHead{});
  begin_ = 1;
}

bool StreamReader::is_entry(std::size_t rank) const noexcept {
  return rank < object_.size() && section_of(object_.at(rank)) == StreamSection::entries;
}

Ranks StreamReader::entries() const noexcept {
  if (!end_) {
    // What groups have is behind the entries: a look at the last element costs less than a search.
    constexpr char behind_entries = static_cast<char>(StreamSection::groups);
    const std::size_t size = object_.size();
    const bool has_groups = size != 0 && section_of(object_.at(size - 1)) > StreamSection::entries;
    end_ = has_groups ? object_.rank({&behind_entries, 1}) : size;
  }
  return {begin_, *end_};
}

StreamId StreamReader::first_id() const noexcept {
  return is_entry(begin_) ? id_of(object_.at(begin_).key) : StreamId{};
}

StreamId StreamReader::last_id() const noexcept {
  const Ranks all = entries();
  return all.empty() ? StreamId{} : id_of(object_.at(all.to - 1).key);
}

Ranks StreamReader::between(StreamId from, StreamId to) const noexcept {
  if (to < from) return {begin_, begin_};
  const std::size_t first = object_.rank(EntryKey{from});
  const auto behind = id_behind(to);
  const std::size_t last = behind ? object_.rank(EntryKey{*behind}) : entries().to;
  return {first, std::max(first, last)};
}

Ranks StreamReader::behind(StreamId id, std::uint64_t count) const noexcept {
  const auto next = id_behind(id);
  if (!next) return {begin_, begin_};
  const std::size_t first = object_.rank(EntryKey{*next});
  if (count == 1) return {first, first + (is_entry(first) ? 1 : 0)};  // as workers ask
  const std::size_t all = entries().to - first;
  return {
      first,
      first + (count == 0 ? all : static_cast<std::size_t>(std::min<std::uint64_t>(all, count)))};
}

bool StreamReader::may_have_gaps_from(StreamId id) const noexcept {
  if (head_.max_deleted == StreamId{} || id > head_.max_deleted || !is_entry(begin_)) return false;
  return head_.max_deleted >= first_id();
}

std::optional<std::uint64_t> StreamReader::position_of(StreamId id) const noexcept {
  if (head_.entries_added == 0) return 0;
  if (length() == 0 && id <= head_.last) return head_.entries_added;
  if (id == head_.last) return head_.entries_added;
  if (id > head_.last) return std::nullopt;
  const StreamId first = first_id();
  if (head_.max_deleted != StreamId{} && head_.max_deleted >= first) return std::nullopt;
  // Nothing is missing from the first entry on.
  const std::uint64_t before = head_.entries_added - length();
  if (id < first) return before;
  if (id == first) return before + 1;
  return std::nullopt;
}

// --- changing -----------------------------------------------------------------------------------

void write_head(ObjectEdit& stream, const StreamHead& head) {
  constexpr char key = static_cast<char>(StreamSection::head);
  stream.put({&key, 1}, StreamValueBytes{head});
}

void begin_stream(ObjectEdit& stream) {
  if (stream.empty()) write_head(stream, {});
}

AddError add_entry(ObjectEdit& stream, const WantedId& wanted, std::int64_t now_ms,
                   std::span<const Bytes> words, StreamId& added) {
  StreamHead head = head_of(stream);
  if (head.last == stream_id_max) return AddError::exhausted;
  const auto id = next_id(head, wanted, now_ms);
  if (!id || *id <= head.last) return AddError::not_larger;
  stream.put(EntryKey{*id}, EntryBytes{words});
  head.last = added = *id;
  ++head.entries_added;
  write_head(stream, head);
  return AddError::none;
}

std::size_t trim_stream(ObjectEdit& stream, const StreamTrim& by) {
  if (by.by == StreamTrim::By::nothing) return 0;
  const StreamReader reader{stream};
  const std::size_t most = surplus(reader, by);
  Ranks going{reader.entries().from, reader.entries().from + most};
  if (by.is_about) {
    std::size_t count = 0;
    std::uint64_t lost = lost_of_node(reader, by);
    while (count < most) {
      const Ranks left{going.from + count, reader.entries().to};
      const std::size_t node = node_size(stream, left, by, std::exchange(lost, 0));
      if (count + node > most || (by.limit != 0 && count + node > by.limit)) break;
      count += node;
    }
    going.to = going.from + count;
  }
  stream.erase_range(going.from, going.to);
  return going.count();
}

bool delete_entry(ObjectEdit& stream, StreamId id) {
  if (!stream.erase(EntryKey{id})) return false;
  StreamHead head = head_of(stream);
  if (id > head.max_deleted) {
    head.max_deleted = id;
    write_head(stream, head);
  }
  return true;
}

}  // namespace semel::engine
