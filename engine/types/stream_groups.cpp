#include "engine/types/stream_groups.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace semel::engine {

namespace {

/// Of the keys `prefix` id with `from` <= id <= `to`.
Ranks ids_of(const ObjectReader& stream, const std::string& first_key,
             const std::string& last_key) {
  const std::size_t from = stream.rank(first_key);
  std::size_t to = stream.rank(last_key);
  if (to < stream.size() && stream.at(to).key == last_key) ++to;
  return {from, std::max(from, to)};
}

void erase_all(ObjectEdit& stream, const std::string& prefix) {
  const Ranks ranks = ranks_of(stream, prefix);
  stream.erase_range(ranks.from, ranks.to);
}

StreamKeyBytes key_of(GroupName name) {
  return StreamKeyBytes{{.section = StreamSection::groups, .group = name.group}};
}
StreamKeyBytes key_of(ConsumerName name) {
  return StreamKeyBytes{
      {.section = StreamSection::consumers, .group = name.group, .consumer = name.consumer}};
}
StreamKeyBytes pending_key_of(GroupName name, StreamId id) {
  return StreamKeyBytes{{.section = StreamSection::pending, .group = name.group, .id = id}};
}
StreamKeyBytes owned_key_of(ConsumerName name, StreamId id) {
  return StreamKeyBytes{
      {.section = StreamSection::owned, .group = name.group, .consumer = name.consumer, .id = id}};
}

/// True: it is new.
bool put_consumer(ObjectEdit& stream, ConsumerName name, const ConsumerState& state) {
  return stream.put(key_of(name), StreamValueBytes{state});
}

}  // namespace

// --- reading ------------------------------------------------------------------------------------

std::optional<GroupState> find_group(const ObjectReader& stream, GroupName name) {
  const auto value = stream.find(key_of(name));
  return value ? read_group(*value) : std::nullopt;
}

std::optional<ConsumerState> find_consumer(const ObjectReader& stream, ConsumerName name) {
  const auto value = stream.find(key_of(name));
  return value ? read_consumer(*value) : std::nullopt;
}

std::optional<PendingState> find_pending(const ObjectReader& stream, GroupName name, StreamId id) {
  const auto value = stream.find(pending_key_of(name, id));
  return value ? read_pending(*value) : std::nullopt;
}

Ranks groups_of(const ObjectReader& stream) {
  return ranks_of(stream, section_key(StreamSection::groups));
}

Ranks consumers_of(const ObjectReader& stream, GroupName name) {
  return ranks_of(stream, keys_of_group(StreamSection::consumers, name.group));
}

Ranks pending_of(const ObjectReader& stream, GroupName name) {
  return ranks_of(stream, keys_of_group(StreamSection::pending, name.group));
}

Ranks owned_by(const ObjectReader& stream, ConsumerName name) {
  return ranks_of(stream, keys_of_owner(name.group, name.consumer));
}

Ranks pending_of(const ObjectReader& stream, GroupName name, StreamId from, StreamId to) {
  return ids_of(stream, pending_key(name.group, from), pending_key(name.group, to));
}

Ranks owned_by(const ObjectReader& stream, ConsumerName name, StreamId from, StreamId to) {
  return ids_of(stream, owned_key(name.group, name.consumer, from),
                owned_key(name.group, name.consumer, to));
}

Bytes group_of(const Element& element) noexcept {
  return element.key.substr(std::min<std::size_t>(element.key.size(), 1));
}

Bytes consumer_of(const Element& element, Bytes group) noexcept {
  const auto key = read_stream_key(element.key);
  return key && key->group == group ? key->consumer : Bytes{};
}

std::optional<std::int64_t> lag_of(const StreamReader& stream, const GroupState& group) noexcept {
  const std::uint64_t added = stream.head().entries_added;
  if (added == 0) return 0;
  const auto behind = [added](std::uint64_t position) {
    return static_cast<std::int64_t>(added - position);
  };
  if (group.entries_read >= 0 && !stream.may_have_gaps_from(group.last)) {
    return behind(static_cast<std::uint64_t>(group.entries_read));
  }
  const auto position = stream.position_of(group.last);
  if (!position) return std::nullopt;
  return behind(*position);
}

// --- changing -----------------------------------------------------------------------------------

bool create_group(ObjectEdit& stream, GroupName name, const GroupState& state) {
  if (find_group(stream, name)) return false;
  set_group(stream, name, state);
  return true;
}

void set_group(ObjectEdit& stream, GroupName name, const GroupState& state) {
  stream.put(key_of(name), StreamValueBytes{state});
}

bool destroy_group(ObjectEdit& stream, GroupName name) {
  if (!stream.erase(group_key(name.group))) return false;
  erase_all(stream, keys_of_group(StreamSection::consumers, name.group));
  erase_all(stream, keys_of_group(StreamSection::pending, name.group));
  erase_all(stream, keys_of_group(StreamSection::owned, name.group));
  return true;
}

bool create_consumer(ObjectEdit& stream, ConsumerName name, std::int64_t now_ms) {
  if (find_consumer(stream, name)) return false;
  put_consumer(stream, name, {.seen_ms = now_ms});
  return true;
}

bool see_consumer(ObjectEdit& stream, ConsumerName name, std::int64_t now_ms) {
  ConsumerState state = find_consumer(stream, name).value_or(ConsumerState{});
  state.seen_ms = now_ms;
  return put_consumer(stream, name, state);
}

bool note_active(ObjectEdit& stream, ConsumerName name, std::int64_t now_ms) {
  return put_consumer(stream, name, {.seen_ms = now_ms, .active_ms = now_ms});
}

std::optional<std::size_t> delete_consumer(ObjectEdit& stream, ConsumerName name) {
  if (!stream.erase(consumer_key(name.group, name.consumer))) return std::nullopt;
  const Ranks owned = owned_by(stream, name);
  // Those that are pending come first in the order of keys: each erasure moves what it reads next.
  std::size_t rank = owned.from;
  for (std::size_t left = owned.count(); left != 0; --left) {
    const StreamId id = id_of(stream.at(rank).key);
    if (!stream.erase(pending_key(name.group, id))) {
      ++rank;
    }
  }
  erase_all(stream, keys_of_owner(name.group, name.consumer));
  return owned.count();
}

bool acknowledge(ObjectEdit& stream, GroupName name, StreamId id) {
  const StreamKeyBytes key = pending_key_of(name, id);
  const auto pending = stream.find(key);
  const auto state = pending ? read_pending(*pending) : std::nullopt;
  if (!state) return false;
  stream.erase(owned_key_of({name.group, state->consumer}, id));
  stream.erase(key);
  return true;
}

void give(ObjectEdit& stream, ConsumerName name, StreamId id, std::int64_t delivered_ms,
          std::uint64_t deliveries) {
  const StreamKeyBytes key = pending_key_of({name.group}, id);
  const auto before = stream.find(key);
  const auto state = before ? read_pending(*before) : std::nullopt;
  if (state && state->consumer != name.consumer) {
    stream.erase(owned_key_of({name.group, state->consumer}, id));
  }
  stream.put(key, StreamValueBytes{PendingState{delivered_ms, deliveries, name.consumer}});
  stream.put(owned_key_of(name, id));
}

GroupState read_on(const StreamReader& stream, GroupState group, StreamId id) noexcept {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (id <= group.last) return group;
  if (group.entries_read >= 0 && !stream.may_have_gaps_from(id)) {
    group.entries_read += group.entries_read == most ? 0 : 1;  // XGROUP can set it to the end
  } else if (stream.head().entries_added != 0) {
    const auto position = stream.position_of(id);
    group.entries_read =
        position ? static_cast<std::int64_t>(std::min(*position, std::uint64_t{most})) : -1;
  }
  group.last = id;
  return group;
}

}  // namespace semel::engine
