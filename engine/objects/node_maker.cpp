#include "engine/objects/node_maker.hpp"

#include <algorithm>
#include <utility>

namespace semel::engine {

namespace {

/// All but the link, which the memory has written already.
template <class Head>
void write_head(char* to, const Head& head) noexcept {
  constexpr std::size_t rest = NodeMemory::link_offset + sizeof head.link;
  std::memcpy(to, &head, NodeMemory::link_offset);
  std::memcpy(to + rest, reinterpret_cast<const char*>(&head) + rest, sizeof head - rest);
}

struct Stretch {
  std::uint32_t begin = 0;
  std::uint32_t bytes = 0;
};

using Places = std::array<std::uint16_t, tree_entries_max>;

// Of as many places as the node has, and some behind them, in arithmetic of 16 bits, which wraps
// around: such loops the compiler does for eight at a time, without a rest.
constexpr unsigned at_once = 8;
static_assert(tree_entries_max % at_once == 0);

void move_places(Places& places, unsigned count, std::uint16_t by) noexcept {
  for (unsigned begin = 0; begin < count; begin += at_once) {
    for (unsigned i = begin; i < begin + at_once; ++i) {
      places[i] = static_cast<std::uint16_t>(places[i] + by);
    }
  }
}
/// The same, and `gap` is closed.
void move_places(Places& places, unsigned count, std::uint16_t by, const Stretch& gap) noexcept {
  const auto begin_of = static_cast<std::uint16_t>(gap.begin);
  const auto behind = static_cast<std::uint16_t>(by - gap.bytes);
  for (unsigned begin = 0; begin < count; begin += at_once) {
    for (unsigned i = begin; i < begin + at_once; ++i) {
      places[i] = static_cast<std::uint16_t>(places[i] + (places[i] > begin_of ? behind : by));
    }
  }
}

/// Of a list's leaf, from its values. A value in a run costs a look at it, often out of the cache.
TreeSize size_of_leaf(const TreeNode& leaf) noexcept {
  const unsigned count = leaf.entries();
  TreeSize size{count, 0};
  if (leaf.head().places == 0) {
    if (count != 0) size.payload = leaf.list().values(0, count).stored;
    return size;
  }
  leaf.each_value(0, count, [&](Bytes value) {
    size.payload += value.size();
    return true;
  });
  return size;
}

}  // namespace

Piece NodeMaker::piece(const TreePart& key, const TreePart& value, const TreeSize& size) noexcept {
  SEMEL_ASSERT(raw_count_ < raws_.size());
  const Bytes raw = raws_[raw_count_++].write(key, value);
  const std::size_t end_of_key = raw.size() - value.stored_bytes();
  // Key and value may lie in memory of the caller that ends before this step does.
  const std::size_t key_bytes = key.bytes.size();
  const TreePart kept_key =
      key.run != 0 ? key : TreePart{raw.substr(end_of_key - key_bytes, key_bytes), 0};
  const TreePart kept = value.run != 0 ? value : TreePart{raw.substr(end_of_key), 0};
  return {raw, kept_key, kept, size};
}

Piece NodeMaker::child_piece(const TreePart& bound, const Made& made) noexcept {
  const TreeChild child{made.node, made.size};
  return piece(bound, {{reinterpret_cast<const char*>(&child), sizeof child}, 0}, made.size);
}

/// A node without entries that has room for some.
Handle NodeMaker::make_empty(std::uint8_t height, unsigned entries, std::size_t bytes,
                             bool with_room) {
  const std::size_t places = with_room ? tree_entries_max : entries;
  const std::size_t begin = sizeof(TreeNodeHead) + places * place_bytes;
  std::size_t room = begin + bytes;
  if (with_room) room += std::min(bytes, tree_node_bytes) + raw_bytes_max / 4;
  room = (room + 7) / 8 * 8;
  const Handle handle = make(room);
  if (handle == 0) return 0;
  const TreeNodeHead head{.stamp = stamp_,
                          .link = 0,
                          .size = {},
                          .room = static_cast<std::uint32_t>(room),
                          .used = static_cast<std::uint32_t>(begin),
                          .entries = 0,
                          .places = static_cast<std::uint16_t>(places),
                          .dead = 0,
                          .level = height,
                          .form = NodeForm::entries};
  write_head(memory_.writable(handle), head);
  return handle;
}

void NodeMaker::append(char* node, unsigned index, Bytes raw) noexcept {
  auto& head = *reinterpret_cast<TreeNodeHead*>(node);
  const auto place = static_cast<std::uint16_t>(head.used);
  std::memcpy(node + sizeof head + index * place_bytes, &place, place_bytes);
  std::memcpy(node + head.used, raw.data(), raw.size());
  head.used += static_cast<std::uint32_t>(raw.size());
  SEMEL_ASSERT(head.used <= head.room && index < head.places);
}

NodeMaker::Made NodeMaker::node(std::uint8_t height, std::span<const Piece> pieces,
                                bool with_room) {
  std::size_t bytes = 0;
  TreeSize size;
  for (const Piece& each : pieces) {
    bytes += each.raw.size();
    size += each.size;
  }
  const auto entries = static_cast<unsigned>(pieces.size());
  const Handle handle = make_empty(height, entries, bytes, with_room);
  if (handle == 0) return {};
  char* const to = memory_.writable(handle);
  for (unsigned i = 0; i < entries; ++i) append(to, i, pieces[i].raw);
  auto& head = *reinterpret_cast<TreeNodeHead*>(to);
  head.entries = static_cast<std::uint16_t>(entries);
  head.size = size;
  return {handle, size};
}

void NodeMaker::write_leaf(const ListValues& values, char* node) noexcept {
  auto& head = *reinterpret_cast<TreeNodeHead*>(node);
  const auto runs = values.has_runs
                        ? std::count(values.lengths, values.lengths + values.count, list_run_length)
                        : 0;
  ListValues written = values;
  written.has_runs = runs != 0;
  head.entries = static_cast<std::uint16_t>(values.count);
  head.places = static_cast<std::uint16_t>(runs);
  head.used = static_cast<std::uint32_t>(sizeof head +
                                         ListLeafDraft::bytes_of(values.count, values.stored));
  head.form = NodeForm::list;
  SEMEL_ASSERT(head.used <= head.room && values.count <= list_leaf_entries_max);
  ListLeafDraft::write(written, node + sizeof head);
}

NodeMaker::Made NodeMaker::leaf(const ListValues& values, const TreeSize* known) {
  const std::size_t bytes = ListLeafDraft::bytes_of(values.count, values.stored);
  SEMEL_ASSERT(values.count != 0 && sizeof(TreeNodeHead) + bytes <= list_leaf_bytes);
  const Handle handle = make_empty(0, 0, bytes, false);
  if (handle == 0) return {};
  char* const to = memory_.writable(handle);
  write_leaf(values, to);
  const TreeSize size = known != nullptr ? *known : size_of_leaf({memory_, handle});
  SEMEL_ASSERT_SLOW(size == size_of_leaf({memory_, handle}));
  reinterpret_cast<TreeNodeHead*>(to)->size = size;
  return {handle, size};
}

NodeMaker::Made NodeMaker::entries(std::span<const Piece> pieces) {
  std::size_t bytes = 0;
  const Piece* named = nullptr;
  for (const Piece& each : pieces) {
    if (!is_entry_key(each.key.bytes)) return node(0, pieces, false);
    if (named == nullptr && each.value.run == 0) named = &each;
    bytes += each.raw.size() + place_bytes;
  }
  EntryLeafDraft draft{static_cast<unsigned>(pieces.size()), id_of(pieces[0].key.bytes),
                       named != nullptr ? named->value.bytes : Bytes{}, sizeof(TreeNodeHead),
                       bytes};
  TreeSize size;
  for (const Piece& each : pieces) {
    const Handle run = each.value.run;
    const Bytes handle{reinterpret_cast<const char*>(&run), sizeof run};
    if (!draft.add(id_of(each.key.bytes), run != 0 ? handle : each.value.bytes, run != 0)) {
      return node(0, pieces, false);
    }
    size += each.size;
  }
  const Handle made = make_empty(0, 0, draft.bytes().size(), false);
  if (made == 0) return {};
  char* const to = memory_.writable(made);
  auto& head = *reinterpret_cast<TreeNodeHead*>(to);
  std::memcpy(to + sizeof head, draft.bytes().data(), draft.bytes().size());
  head.size = size;
  head.used = static_cast<std::uint32_t>(sizeof head + draft.bytes().size());
  head.entries = static_cast<std::uint16_t>(pieces.size());
  head.places = static_cast<std::uint16_t>(draft.runs());
  head.form = NodeForm::stream;
  return {made, size};
}

NodeMaker::Made NodeMaker::copy_entries(Handle from, unsigned gone, const TreeSize& delta) {
  const TreeNode node{memory_, from};
  const TreeNodeHead& old = node.head();
  const EntryLeaf leaf = node.entry_leaf();
  const std::size_t bytes = leaf.bytes_without(gone);
  const Handle made = make_empty(0, 0, bytes, false);
  if (made == 0) return {};
  char* const to = memory_.writable(made);
  leaf.write_without(gone, to + sizeof old);
  auto& head = *reinterpret_cast<TreeNodeHead*>(to);
  const bool is_gone = gone < old.entries;
  head.size = old.size;
  head.size += delta;
  head.used = static_cast<std::uint32_t>(sizeof head + bytes);
  head.entries = static_cast<std::uint16_t>(old.entries - (is_gone ? 1 : 0));
  head.places = static_cast<std::uint16_t>(old.places - (is_gone && leaf.is_run(gone) ? 1 : 0));
  head.form = NodeForm::stream;
  return {made, head.size};
}

TreePart NodeMaker::part(Bytes bytes, std::size_t apart_min) {
  if (bytes.size() < apart_min) return {bytes, 0};
  const Handle handle = make(sizeof(TreeRun) + (bytes.size() + 7) / 8 * 8);
  if (handle == 0) return {};
  const TreeRun run{stamp_, 0, bytes.size()};
  char* const to = memory_.writable(handle);
  write_head(to, run);
  std::memcpy(to + sizeof run, bytes.data(), bytes.size());
  return {{to + sizeof run, bytes.size()}, handle};
}

Handle NodeMaker::make(std::size_t bytes) {
  const Handle handle = failed_ ? 0 : memory_.allocate(bytes);
  failed_ = handle == 0;
  if (failed_) return 0;
  SEMEL_ASSERT(made_count_ < made_.size());
  return made_[made_count_++] = handle;
}

/// Copies the node with the change, without a look at the entries that stay: they lie in at most
/// three stretches around those that go.
NodeMaker::Made NodeMaker::copy(Handle from, const NodeChange& change, bool with_room) {
  const TreeNode node{memory_, from};
  const TreeNodeHead& old = node.head();
  const char* const at = memory_.at(from);
  SEMEL_ASSERT(old.dead == 0);
  std::array<Stretch, 2> gone{};  // in the order of the entries, and then of their places
  for (unsigned i = 0; i < change.removed; ++i) {
    const Bytes raw = node.entry(change.index + i).raw;
    gone[i] = {static_cast<std::uint32_t>(raw.data() - at), static_cast<std::uint32_t>(raw.size())};
  }
  if (change.removed == 2 && gone[0].begin > gone[1].begin) std::swap(gone[0], gone[1]);
  const unsigned entries = change.entries_of(old);
  const std::size_t begin = sizeof(TreeNodeHead) + old.places * place_bytes;
  const std::size_t bytes = old.used - begin - gone[0].bytes - gone[1].bytes + change.added_bytes();
  const Handle made = make_empty(old.level, entries, bytes, with_room);
  if (made == 0) return {};
  char* const to = memory_.writable(made);
  auto& head = *reinterpret_cast<TreeNodeHead*>(to);
  const auto shift = static_cast<std::uint16_t>(head.used - begin);  // may wrap around
  for (std::size_t next = begin, i = 0; i <= change.removed; ++i) {
    const std::size_t end = i < change.removed ? gone[i].begin : old.used;
    std::memcpy(to + head.used, at + next, end - next);
    head.used += static_cast<std::uint32_t>(end - next);
    if (i < change.removed) next = end + gone[i].bytes;
  }
  Places places{};
  std::memcpy(places.data(), at + sizeof head, old.entries * place_bytes);
  if (change.removed == 2) move_places(places, old.entries, 0, gone[1]);  // the last one first
  if (change.removed == 0) {
    move_places(places, old.entries, shift);
  } else {
    move_places(places, old.entries, shift, gone[0]);
  }
  char* const to_places = to + sizeof head;
  const unsigned behind = change.index + change.removed;
  std::memcpy(to_places, places.data(), change.index * place_bytes);
  std::memcpy(to_places + (change.index + change.added) * place_bytes, places.data() + behind,
              (old.entries - behind) * place_bytes);
  for (unsigned i = 0; i < change.added; ++i) {
    append(to, change.index + i, change.pieces[i].raw);
  }
  head.entries = static_cast<std::uint16_t>(entries);
  head.size = old.size;
  head.size += change.delta;
  return {made, head.size};
}

NodeMaker::Made NodeMaker::copy_with(Handle from, std::size_t offset, Bytes bytes,
                                     const TreeSize& delta) {
  const char* const at = memory_.at(from);
  // Not its link: another thread may write that, which retires the node.
  const TreeNodeHead& old = TreeNode{memory_, from}.head();
  SEMEL_ASSERT(offset > sizeof old && offset + bytes.size() <= old.used);
  const std::size_t room = (old.used + std::size_t{7}) / 8 * 8;
  const Handle made = make(room);
  if (made == 0) return {};
  char* const to = memory_.writable(made);
  TreeNodeHead head{.stamp = stamp_,
                    .link = 0,
                    .size = old.size,
                    .room = static_cast<std::uint32_t>(room),
                    .used = old.used,
                    .entries = old.entries,
                    .places = old.places,
                    .dead = old.dead,
                    .level = old.level,
                    .form = NodeForm::entries};
  head.size += delta;
  write_head(to, head);
  std::memcpy(to + sizeof head, at + sizeof head, head.used - sizeof head);
  std::memcpy(to + offset, bytes.data(), bytes.size());
  return {made, head.size};
}

}  // namespace semel::engine
