// The listpack of a node. All items are numbers but fields and values.
//
//   entries | deleted | n | n fields | 0 | entries, deleted ones as well
//   entry   1 deleted + 2 fields of the node | ms and seq, less those of the node's id | fields
//           and values: values of the node's fields, or n | field and value each | items so far
#include "net/rdb/dump_stream.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/rdb/packed_lists.hpp"

namespace semel::net {

namespace {

using Id = DumpStream::Id;

constexpr std::uint32_t no_consumer = std::numeric_limits<std::uint32_t>::max();

/// The items of a node, from the first on. After a fault every number is 0.
class NodeItems {
 public:
  explicit NodeItems(const ByteItems& items) noexcept : items_(items) {}

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool at_end() const noexcept { return next_ == items_.size(); }
  [[nodiscard]] std::size_t left() const noexcept { return items_.size() - next_; }
  std::string_view text() noexcept {
    if (at_end()) return good_ = false, std::string_view{};
    return items_[next_++];
  }
  std::int64_t number() noexcept {
    const std::string_view digits = text();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || end != digits.data() + digits.size()) good_ = false;
    return good_ ? number : 0;
  }
  /// Of items that are still to come.
  std::size_t count() noexcept {
    const std::int64_t count = number();
    if (count < 0 || static_cast<std::uint64_t>(count) > left()) good_ = false;
    return good_ ? static_cast<std::size_t>(count) : 0;
  }
  void skip(std::size_t items) noexcept { next_ += std::min(items, left()); }
  [[nodiscard]] std::size_t place() const noexcept { return next_; }

 private:
  const ByteItems& items_;
  std::size_t next_ = 0;
  bool good_ = true;
};

void add_part(DumpBytes& in, std::string_view part, DumpValue& value) {
  if (in.spend(part.size() + dump_item_bytes)) value.items.add(part);
}

/// The fields and values of one entry. Returns how many these are.
std::size_t read_parts(DumpBytes& in, NodeItems& node, const std::vector<std::string_view>* fields,
                       bool is_kept, DumpValue& value) {
  const std::size_t count = fields == nullptr ? node.count() : fields->size();
  for (std::size_t i = 0; i < count && node.good() && in.good(); ++i) {
    const std::string_view field = fields == nullptr ? node.text() : (*fields)[i];
    const std::string_view text = node.text();
    if (!is_kept || !node.good()) continue;
    add_part(in, field, value);
    add_part(in, text, value);
  }
  return 2 * count;
}

/// False: the node is damaged.
bool read_entry(DumpBytes& in, NodeItems& node, Id base,
                const std::vector<std::string_view>& node_fields, DumpValue& value) {
  constexpr std::int64_t deleted = 1;
  constexpr std::int64_t same_fields = 2;
  const std::size_t begin = node.place();
  const std::int64_t flags = node.number();
  const Id id{base.ms + static_cast<std::uint64_t>(node.number()),
              base.seq + static_cast<std::uint64_t>(node.number())};
  const bool is_kept = (flags & deleted) == 0;
  const bool has_fields = (flags & same_fields) == 0;
  const std::size_t parts =
      read_parts(in, node, has_fields ? nullptr : &node_fields, is_kept, value);
  const std::size_t items = node.place() - begin;
  if (node.number() != static_cast<std::int64_t>(items) || !node.good() || !in.good()) return false;
  if ((flags & ~(deleted | same_fields)) != 0) return false;
  if (!is_kept) return true;
  auto& entries = value.stream.entries;
  const Id before = entries.empty() ? Id{} : entries.back().id;
  if (id <= before || parts == 0 || !in.spend(sizeof(DumpStream::Entry))) return false;
  entries.push_back({id, static_cast<std::uint32_t>(parts)});
  return true;
}

bool read_node(DumpBytes& in, Id base, const ByteItems& items, DumpValue& value) {
  NodeItems node{items};
  const std::int64_t entries = node.number();
  const std::int64_t deleted = node.number();
  std::vector<std::string_view> fields(node.count());
  for (std::string_view& field : fields) field = node.text();
  if (node.number() != 0 || !node.good()) return false;
  const std::size_t before = value.stream.entries.size();
  std::int64_t read = 0;
  for (; !node.at_end(); ++read) {
    if (!read_entry(in, node, base, fields, value)) return false;
  }
  const auto kept = static_cast<std::int64_t>(value.stream.entries.size() - before);
  return entries == kept && deleted == read - kept;
}

Id raw_id(DumpBytes& in) noexcept {
  const std::uint64_t ms = big_number(in.take(8));
  return {ms, big_number(in.take(8))};
}

Id id_of_lengths(DumpBytes& in) noexcept {
  const std::uint64_t ms = in.length();
  return {ms, in.length()};
}

std::int64_t signed_number(DumpBytes& in) noexcept {
  return static_cast<std::int64_t>(little_number(in.take(8)));
}

void read_nodes(DumpBytes& in, DumpValue& value) {
  for (std::uint64_t count = in.length(); count > 0 && in.good(); --count) {
    std::string key;
    in.string(key);
    if (!in.good() || key.size() != 2 * sizeof(std::uint64_t)) return in.fail();
    const Id base{big_number(std::string_view{key}.substr(0, 8)),
                  big_number(std::string_view{key}.substr(8))};
    ByteItems items;
    const std::string_view packed = in.string();
    const bool is_read = in.good() && read_listpack(packed, items);
    if (!is_read || !read_node(in, base, items, value)) return in.fail();
  }
}

void read_pending(DumpBytes& in, DumpStream::Group& group) {
  for (std::uint64_t count = in.length(); count > 0 && in.good(); --count) {
    DumpStream::Pending pending{.id = raw_id(in), .consumer = no_consumer};
    pending.delivered_ms = signed_number(in);
    pending.deliveries = in.length();
    const bool ascends = group.pending.empty() || group.pending.back().id < pending.id;
    if (!ascends) in.fail();
    if (in.good() && in.spend(sizeof pending)) group.pending.push_back(pending);
  }
}

/// Puts the consumer's name to its pending ids.
void read_owned(DumpBytes& in, DumpStream::Group& group) {
  const auto consumer = static_cast<std::uint32_t>(group.consumers.size() - 1);
  for (std::uint64_t count = in.length(); count > 0 && in.good(); --count) {
    const Id id = raw_id(in);
    const auto found = std::lower_bound(
        group.pending.begin(), group.pending.end(), id,
        [](const DumpStream::Pending& pending, Id wanted) { return pending.id < wanted; });
    const bool is_there = found != group.pending.end() && found->id == id;
    if (!in.good() || !is_there || found->consumer != no_consumer) return in.fail();
    found->consumer = consumer;
  }
}

void read_consumers(DumpBytes& in, StreamForm form, DumpStream::Group& group) {
  for (std::uint64_t count = in.length(); count > 0 && in.good(); --count) {
    if (!in.spend(sizeof(DumpStream::Consumer))) return;
    DumpStream::Consumer& consumer = group.consumers.emplace_back();
    in.string(consumer.name);
    consumer.seen_ms = signed_number(in);
    consumer.active_ms = form == StreamForm::of_7_2 ? signed_number(in) : consumer.seen_ms;
    read_owned(in, group);
  }
  const bool is_complete =
      std::none_of(group.pending.begin(), group.pending.end(),
                   [](const auto& pending) { return pending.consumer == no_consumer; });
  if (!is_complete) in.fail();
}

template <class Named>
bool has_name_twice(const std::vector<Named>& all) {
  std::vector<std::string_view> names;
  names.reserve(all.size());
  for (const Named& each : all) names.push_back(each.name);
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

void read_groups(DumpBytes& in, StreamForm form, DumpStream& stream) {
  for (std::uint64_t count = in.length(); count > 0 && in.good(); --count) {
    if (!in.spend(sizeof(DumpStream::Group))) return;
    DumpStream::Group& group = stream.groups.emplace_back();
    in.string(group.name);
    group.last = id_of_lengths(in);
    if (form != StreamForm::of_5_0) group.entries_read = static_cast<std::int64_t>(in.length());
    if (group.entries_read < -1) return in.fail();
    read_pending(in, group);
    read_consumers(in, form, group);
    if (in.good() && has_name_twice(group.consumers)) in.fail();
  }
  if (in.good() && has_name_twice(stream.groups)) in.fail();
}

}  // namespace

void read_stream(DumpBytes& in, StreamForm form, DumpValue& value) {
  DumpStream& stream = value.stream;
  read_nodes(in, value);
  const std::uint64_t length = in.length();
  stream.last = id_of_lengths(in);
  stream.has_positions = form != StreamForm::of_5_0;
  if (stream.has_positions) {
    static_cast<void>(id_of_lengths(in));  // the first: it is that of the first entry
    stream.max_deleted = id_of_lengths(in);
    stream.entries_added = in.length();
  } else {
    stream.entries_added = length;
  }
  const bool is_behind = !stream.entries.empty() && stream.last < stream.entries.back().id;
  if (!in.good() || length != stream.entries.size() || is_behind) return in.fail();
  read_groups(in, form, stream);
}

}  // namespace semel::net
