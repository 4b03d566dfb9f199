#include "engine/kinds/stream_keys.hpp"

#include <cstring>
#include <new>

#include "base/assert.hpp"
#include "base/coding.hpp"
#include "engine/kinds/packed_object.hpp"

namespace semel::engine {

namespace {

constexpr std::uint64_t number_max = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t number_bytes = sizeof(std::uint64_t);

void put_number(std::uint64_t number, char* to) noexcept {
  number = __builtin_bswap64(number);
  std::memcpy(to, &number, sizeof number);
}
void put_id(StreamId id, char* to) noexcept {
  put_number(id.ms, to);
  put_number(id.seq, to + number_bytes);
}
void put_id_value(base::ByteWriter& to, StreamId id) noexcept {
  to.fixed(id.ms);
  to.fixed(id.seq);
}
StreamId take_id(base::ByteReader& reader) noexcept {
  const auto ms = reader.fixed<std::uint64_t>();
  return {ms, reader.fixed<std::uint64_t>()};
}

/// A [name] in the one form that it has.
Bytes take_name(base::ByteReader& reader) noexcept {
  const std::size_t before = reader.rest().size();
  const Bytes name = reader.prefixed();
  const std::size_t taken = before - reader.rest().size();
  if (taken != base::varint_bytes(name.size()) + name.size()) reader.fail();
  return name;
}

}  // namespace

std::optional<StreamId> id_behind(StreamId id) noexcept {
  if (id.seq != number_max) return StreamId{id.ms, id.seq + 1};
  if (id.ms != number_max) return StreamId{id.ms + 1, 0};
  return std::nullopt;
}

std::optional<StreamId> id_before(StreamId id) noexcept {
  if (id.seq != 0) return StreamId{id.ms, id.seq - 1};
  if (id.ms != 0) return StreamId{id.ms - 1, number_max};
  return std::nullopt;
}

// --- keys ---------------------------------------------------------------------------------------

EntryKey::EntryKey(StreamId id) noexcept {
  bytes_[0] = static_cast<char>(StreamSection::entries);
  put_id(id, bytes_.data() + 1);
}

namespace {

std::size_t name_bytes(Bytes name) noexcept {
  return base::varint_bytes(name.size()) + name.size();
}

std::size_t key_bytes(const StreamKey& key) noexcept {
  switch (key.section) {
    case StreamSection::groups:
      return 1 + key.group.size();
    case StreamSection::consumers:
      return 1 + name_bytes(key.group) + key.consumer.size();
    case StreamSection::pending:
      return 1 + name_bytes(key.group) + stream_id_bytes;
    case StreamSection::owned:
      return 1 + name_bytes(key.group) + name_bytes(key.consumer) + stream_id_bytes;
    case StreamSection::entries:
      return 1 + stream_id_bytes;
    case StreamSection::head:
    case StreamSection::end:
      break;
  }
  return 1;
}

void put_name(base::ByteWriter& to, Bytes name) noexcept {
  to.varint(name.size());
  to.bytes(name);
}

/// Everything but the first byte, the section.
void put_parts(base::ByteWriter& to, const StreamKey& key) noexcept {
  switch (key.section) {
    case StreamSection::groups:
      return to.bytes(key.group);
    case StreamSection::consumers:
      put_name(to, key.group);
      return to.bytes(key.consumer);
    case StreamSection::pending:
      put_name(to, key.group);
      return put_id(key.id, to.end());
    case StreamSection::owned:
      put_name(to, key.group);
      put_name(to, key.consumer);
      return put_id(key.id, to.end());
    case StreamSection::entries:
      return put_id(key.id, to.end());
    case StreamSection::head:
    case StreamSection::end:
      break;
  }
}

std::string string_of(Bytes bytes) {
  return std::string{bytes};
}

}  // namespace

StreamKeyBytes::StreamKeyBytes(const StreamKey& key) : bytes_(key_bytes(key)) {
  SEMEL_ASSERT(key.section < StreamSection::end);
  base::ByteWriter to{bytes_.data()};
  to.fixed(static_cast<std::uint8_t>(key.section));
  put_parts(to, key);
}

std::string group_key(Bytes group) {
  return string_of(StreamKeyBytes{{.section = StreamSection::groups, .group = group}});
}

std::string keys_of_group(StreamSection section, Bytes group) {
  std::string key = section_key(section);
  base::put_prefixed(key, group);
  return key;
}

std::string keys_of_owner(Bytes group, Bytes consumer) {
  std::string key = keys_of_group(StreamSection::owned, group);
  base::put_prefixed(key, consumer);
  return key;
}

std::string consumer_key(Bytes group, Bytes consumer) {
  return string_of(
      StreamKeyBytes{{.section = StreamSection::consumers, .group = group, .consumer = consumer}});
}

std::string pending_key(Bytes group, StreamId id) {
  return string_of(StreamKeyBytes{{.section = StreamSection::pending, .group = group, .id = id}});
}

std::string owned_key(Bytes group, Bytes consumer, StreamId id) {
  return string_of(StreamKeyBytes{
      {.section = StreamSection::owned, .group = group, .consumer = consumer, .id = id}});
}

std::string behind_all(std::string prefix) {
  constexpr unsigned char highest = 255;
  while (static_cast<unsigned char>(prefix.back()) == highest) prefix.pop_back();
  SEMEL_ASSERT(!prefix.empty());
  ++prefix.back();
  return prefix;
}

StreamId id_of(Bytes key) noexcept {
  if (key.size() < stream_id_bytes) return {};
  const char* const id = key.data() + (key.size() - stream_id_bytes);
  return {base::big_endian(id), base::big_endian(id + number_bytes)};
}

std::optional<StreamKey> read_stream_key(Bytes key) noexcept {
  base::ByteReader reader{key};
  StreamKey parts;
  parts.section = static_cast<StreamSection>(reader.fixed<std::uint8_t>());
  if (!reader.is_good() || parts.section >= StreamSection::end) return std::nullopt;
  switch (parts.section) {
    case StreamSection::groups:
      parts.group = reader.take_rest();
      break;
    case StreamSection::consumers:
      parts.group = take_name(reader);
      parts.consumer = reader.take_rest();
      break;
    case StreamSection::pending:
      parts.group = take_name(reader);
      parts.id = id_of(reader.take(stream_id_bytes));
      break;
    case StreamSection::owned:
      parts.group = take_name(reader);
      parts.consumer = take_name(reader);
      parts.id = id_of(reader.take(stream_id_bytes));
      break;
    case StreamSection::entries:
      parts.id = id_of(reader.take(stream_id_bytes));
      break;
    case StreamSection::head:
    case StreamSection::end:
      break;
  }
  if (!reader.is_at_end()) return std::nullopt;
  return parts;
}

// --- values -------------------------------------------------------------------------------------

StreamValueBytes::StreamValueBytes(const StreamHead& head)
    : bytes_(2 * stream_id_bytes + number_bytes) {
  base::ByteWriter to{bytes_.data()};
  put_id_value(to, head.last);
  to.fixed(head.entries_added);
  put_id_value(to, head.max_deleted);
}

StreamValueBytes::StreamValueBytes(const GroupState& group)
    : bytes_(stream_id_bytes + number_bytes) {
  base::ByteWriter to{bytes_.data()};
  put_id_value(to, group.last);
  to.fixed(group.entries_read);
}

StreamValueBytes::StreamValueBytes(const ConsumerState& consumer) : bytes_(2 * number_bytes) {
  base::ByteWriter to{bytes_.data()};
  to.fixed(consumer.seen_ms);
  to.fixed(consumer.active_ms);
}

StreamValueBytes::StreamValueBytes(const PendingState& pending)
    : bytes_(2 * number_bytes + pending.consumer.size()) {
  base::ByteWriter to{bytes_.data()};
  to.fixed(pending.delivered_ms);
  to.fixed(pending.deliveries);
  to.bytes(pending.consumer);
}

std::string encode(const StreamHead& head) {
  return string_of(StreamValueBytes{head});
}
std::string encode(const GroupState& group) {
  return string_of(StreamValueBytes{group});
}
std::string encode(const ConsumerState& consumer) {
  return string_of(StreamValueBytes{consumer});
}
std::string encode(const PendingState& pending) {
  return string_of(StreamValueBytes{pending});
}

std::optional<StreamHead> read_head(Bytes value) noexcept {
  base::ByteReader reader{value};
  StreamHead head;
  head.last = take_id(reader);
  head.entries_added = reader.fixed<std::uint64_t>();
  head.max_deleted = take_id(reader);
  if (!reader.is_at_end()) return std::nullopt;
  return head;
}

std::optional<GroupState> read_group(Bytes value) noexcept {
  base::ByteReader reader{value};
  GroupState group;
  group.last = take_id(reader);
  group.entries_read = reader.fixed<std::int64_t>();
  if (!reader.is_at_end()) return std::nullopt;
  return group;
}

std::optional<ConsumerState> read_consumer(Bytes value) noexcept {
  base::ByteReader reader{value};
  ConsumerState consumer;
  consumer.seen_ms = reader.fixed<std::int64_t>();
  consumer.active_ms = reader.fixed<std::int64_t>();
  if (!reader.is_at_end()) return std::nullopt;
  return consumer;
}

std::optional<PendingState> read_pending(Bytes value) noexcept {
  base::ByteReader reader{value};
  PendingState pending;
  pending.delivered_ms = reader.fixed<std::int64_t>();
  pending.deliveries = reader.fixed<std::uint64_t>();
  pending.consumer = reader.take_rest();
  if (!reader.is_good()) return std::nullopt;
  return pending;
}

// --- bytes from elsewhere -----------------------------------------------------------------------

namespace {

bool are_fields(Bytes value) noexcept {
  base::ByteReader reader{value};
  std::size_t parts = 0;
  for (; reader.is_good() && !reader.rest().empty(); ++parts) static_cast<void>(reader.prefixed());
  return reader.is_good() && parts != 0 && parts % 2 == 0;
}

/// The elements of one stream, each judged by the others.
class StreamCheck {
 public:
  explicit StreamCheck(const PackedObject& object) noexcept : object_(object) {}

  [[nodiscard]] bool is_sound() const {
    const Element first = object_.at(0);
    if (first.key != section_key(StreamSection::head)) return false;
    const auto head = read_head(first.value);
    if (!head) return false;
    std::size_t pending = 0;
    std::size_t owned = 0;
    for (std::size_t i = 1; i < object_.size(); ++i) {
      const Element element = object_.at(i);
      const auto key = read_stream_key(element.key);
      if (!key || !is_sound(*key, element.value, *head)) return false;
      pending += key->section == StreamSection::pending ? 1 : 0;
      owned += key->section == StreamSection::owned ? 1 : 0;
    }
    return pending == owned;  // each pending one has its own
  }

 private:
  [[nodiscard]] bool is_sound(const StreamKey& key, Bytes value, const StreamHead& head) const {
    switch (key.section) {
      case StreamSection::entries:
        return key.id <= head.last && are_fields(value);
      case StreamSection::groups: {
        const auto group = read_group(value);
        return group && group->entries_read >= -1;
      }
      case StreamSection::consumers:
        return has(group_key(key.group)) && read_consumer(value);
      case StreamSection::pending: {
        const auto pending = read_pending(value);
        return pending && has(group_key(key.group)) &&
               has(consumer_key(key.group, pending->consumer)) &&
               has(owned_key(key.group, pending->consumer, key.id));
      }
      case StreamSection::owned:
        return value.empty();
      case StreamSection::head:
      case StreamSection::end:
        break;
    }
    return false;
  }
  [[nodiscard]] bool has(const std::string& key) const noexcept {
    const std::size_t rank = object_.rank(key);
    return rank < object_.size() && object_.at(rank).key == key;
  }

  const PackedObject& object_;
};

}  // namespace

bool is_stream_sound(Bytes record) noexcept {
  if (!is_sound(record, ElementParts::both)) return false;
  const PackedObject object{record, ElementParts::both};
  try {
    return StreamCheck{object}.is_sound();
  } catch (const std::bad_alloc&) {
    return true;  // without memory to find out: reading is safe either way
  }
}

}  // namespace semel::engine
