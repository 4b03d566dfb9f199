#include "net/dump/stream_record.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/coding.hpp"
#include "engine/objects/object_edit.hpp"
#include "engine/types/stream.hpp"
#include "engine/types/stream_groups.hpp"
#include "net/rdb/listpack_writer.hpp"

namespace semel::net {

using engine::Element;
using engine::ObjectEdit;
using engine::ObjectReader;
using engine::Ranks;
using engine::StreamId;

namespace {

StreamId engine_id(DumpStream::Id id) noexcept {
  return {id.ms, id.seq};
}

// --- to a record --------------------------------------------------------------------------------

/// Keys of groups and what belongs to them, with their values.
using Elements = std::vector<std::pair<std::string, std::string>>;

void put_entries(ObjectEdit& stream, const DumpValue& value) {
  std::size_t next = 0;
  std::string fields;
  for (const DumpStream::Entry& entry : value.stream.entries) {
    fields.clear();
    for (std::uint32_t i = 0; i < entry.parts; ++i) {
      base::put_prefixed(fields, value.items[next++]);
    }
    stream.put(engine::EntryKey{engine_id(entry.id)}, fields);
  }
}

/// How many entries the group has read. -1: that is not known.
std::int64_t entries_read(const ObjectEdit& stream, const DumpStream& from,
                          const DumpStream::Group& group) {
  if (from.has_positions) return group.entries_read;
  const auto position = engine::StreamReader{stream}.position_of(engine_id(group.last));
  return position ? static_cast<std::int64_t>(*position) : -1;
}

void add_group(Elements& to, const DumpStream::Group& group, std::int64_t read) {
  to.emplace_back(engine::group_key(group.name),
                  encode(engine::GroupState{.last = engine_id(group.last), .entries_read = read}));
  for (const DumpStream::Consumer& consumer : group.consumers) {
    to.emplace_back(engine::consumer_key(group.name, consumer.name),
                    encode(engine::ConsumerState{.seen_ms = consumer.seen_ms,
                                                 .active_ms = consumer.active_ms}));
  }
  for (const DumpStream::Pending& pending : group.pending) {
    const std::string& consumer = group.consumers[pending.consumer].name;
    const StreamId id = engine_id(pending.id);
    to.emplace_back(
        engine::pending_key(group.name, id),
        encode(engine::PendingState{pending.delivered_ms, pending.deliveries, consumer}));
    to.emplace_back(engine::owned_key(group.name, consumer, id), std::string{});
  }
}

// --- to a dump ----------------------------------------------------------------------------------

/// As many entries as redis-server puts into a node by its usual settings.
constexpr std::size_t node_entries_max = 100;
constexpr std::size_t node_bytes_max = 4096;

std::string big_id(StreamId id) {
  std::string bytes;
  for (const std::uint64_t part : {id.ms, id.seq}) {
    for (unsigned bits = 64; bits > 0;) bytes.push_back(static_cast<char>(part >> (bits -= 8)));
  }
  return bytes;
}

std::vector<Bytes> parts_of_entry(const Element& entry) {
  std::vector<Bytes> parts;
  const engine::EntryFields fields{entry.value};
  parts.reserve(fields.parts());
  fields.each([&](Bytes part) { parts.push_back(part); });
  return parts;
}

bool has_fields(const std::vector<Bytes>& parts, const std::vector<Bytes>& others) {
  if (parts.size() != others.size()) return false;
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    if (parts[i] != others[i]) return false;
  }
  return true;
}

void write_entry(ListpackWriter& node, StreamId base, StreamId id, const std::vector<Bytes>& first,
                 const std::vector<Bytes>& parts) {
  constexpr std::int64_t same_fields = 2;
  const bool is_same = has_fields(parts, first);
  node.number(is_same ? same_fields : 0);
  node.number(static_cast<std::int64_t>(id.ms - base.ms));
  node.number(static_cast<std::int64_t>(id.seq - base.seq));
  const auto fields = static_cast<std::int64_t>(parts.size() / 2);
  if (!is_same) node.number(fields);
  for (std::size_t i = is_same ? 1 : 0; i < parts.size(); i += is_same ? 2 : 1) node.text(parts[i]);
  node.number(is_same ? fields + 3 : 2 * fields + 4);
}

/// The bytes that the node will have more with the entry, about.
std::size_t bytes_of(const Element& entry) noexcept {
  return entry.value.size() + engine::stream_id_bytes;
}

/// How many entries from rank `from` on make a node.
std::size_t node_end(const ObjectReader& stream, std::size_t from, std::size_t to) noexcept {
  std::size_t bytes = bytes_of(stream.at(from));
  std::size_t end = from + 1;
  while (end < to && end - from < node_entries_max) {
    bytes += bytes_of(stream.at(end));
    if (bytes > node_bytes_max) break;
    ++end;
  }
  return end;
}

std::string node_of(const ObjectReader& stream, std::size_t from, std::size_t to) {
  ListpackWriter node;
  const Element head = stream.at(from);
  const StreamId base = engine::id_of(head.key);
  const std::vector<Bytes> first = parts_of_entry(head);
  node.number(static_cast<std::int64_t>(to - from));
  node.number(0);
  node.number(static_cast<std::int64_t>(first.size() / 2));
  for (std::size_t i = 0; i < first.size(); i += 2) node.text(first[i]);
  node.number(0);
  stream.each(from, to, [&](const Element& entry) {
    write_entry(node, base, engine::id_of(entry.key), first, parts_of_entry(entry));
    return true;
  });
  return node.take();
}

void write_nodes(DumpWriter& to, const ObjectReader& stream, const Ranks& entries) {
  std::vector<std::size_t> ends;
  for (std::size_t from = entries.from; from < entries.to;) {
    from = node_end(stream, from, entries.to);
    ends.push_back(from);
  }
  to.count(ends.size());
  std::size_t from = entries.from;
  for (const std::size_t end : ends) {
    to.string(big_id(engine::id_of(stream.at(from).key)));
    to.string(node_of(stream, from, end));
    from = end;
  }
}

void write_id(DumpWriter& to, StreamId id) {
  to.count(id.ms);
  to.count(id.seq);
}

bool write_consumers(DumpWriter& to, const ObjectReader& stream, Bytes group) {
  const Ranks consumers = engine::consumers_of(stream, {group});
  to.count(consumers.count());
  bool is_good = true;
  stream.each(consumers.from, consumers.to, [&](const Element& element) {
    const Bytes consumer = engine::consumer_of(element, group);
    const auto state = engine::read_consumer(element.value);
    if (!state) return is_good = false;
    to.string(consumer);
    to.fixed(static_cast<std::uint64_t>(state->seen_ms));
    const Ranks owned = engine::owned_by(stream, {group, consumer});
    to.count(owned.count());
    stream.each(owned.from, owned.to, [&](const Element& id) {
      to.raw(big_id(engine::id_of(id.key)));
      return true;
    });
    return true;
  });
  return is_good;
}

bool write_group(DumpWriter& to, const ObjectReader& stream, const Element& element) {
  const Bytes group = engine::group_of(element);
  const auto state = engine::read_group(element.value);
  if (!state) return false;
  to.string(group);
  write_id(to, state->last);
  to.count(static_cast<std::uint64_t>(state->entries_read));
  const Ranks pending = engine::pending_of(stream, {group});
  to.count(pending.count());
  bool is_good = true;
  stream.each(pending.from, pending.to, [&](const Element& each) {
    const auto of_id = engine::read_pending(each.value);
    if (!of_id) return is_good = false;
    to.raw(big_id(engine::id_of(each.key)));
    to.fixed(static_cast<std::uint64_t>(of_id->delivered_ms));
    to.count(of_id->deliveries);
    return true;
  });
  return is_good && write_consumers(to, stream, group);
}

}  // namespace

std::string record_of_stream(const DumpValue& value) {
  const DumpStream& from = value.stream;
  ObjectEdit stream{Kind::stream};
  engine::write_head(stream, {.last = engine_id(from.last),
                              .entries_added = from.entries_added,
                              .max_deleted = engine_id(from.max_deleted)});
  put_entries(stream, value);
  Elements elements;
  for (const DumpStream::Group& group : from.groups) {
    add_group(elements, group, entries_read(stream, from, group));
  }
  // In order, so that each is put behind the others.
  std::sort(elements.begin(), elements.end());
  for (const auto& [key, state] : elements) stream.put(key, state);
  std::string bytes;
  stream.write(bytes);
  return bytes;
}

bool write_stream(DumpWriter& to, const ObjectReader& stream) {
  const engine::StreamReader reader{stream};
  write_nodes(to, stream, reader.entries());
  to.count(reader.length());
  write_id(to, reader.head().last);
  write_id(to, reader.first_id());
  write_id(to, reader.head().max_deleted);
  to.count(reader.head().entries_added);
  const Ranks groups = engine::groups_of(stream);
  to.count(groups.count());
  bool is_good = true;
  stream.each(groups.from, groups.to,
              [&](const Element& group) { return is_good = write_group(to, stream, group); });
  return is_good;
}

}  // namespace semel::net
