#include "engine/objects/tree_builder.hpp"

namespace semel::engine {

TreeBuilder::~TreeBuilder() {
  for (unsigned i = 0; values_ && i < values_->count(); ++i) {
    const ListValues value = values_->values(i, i + 1);
    if (*value.lengths != list_run_length) continue;
    Handle run;
    std::memcpy(&run, value.bytes, sizeof run);
    memory_.free(run);
  }
  for (std::size_t height = 0; height < levels_.size(); ++height) {
    const Level& level = *levels_[height];
    if (level.count != 0 && level.bound.run != 0) memory_.free(level.bound.run);
    for (unsigned i = 0; i < level.count; ++i) {
      const Piece& piece = level.pieces[i];
      if (piece.key.run != 0) memory_.free(piece.key.run);
      if (piece.value.run != 0) memory_.free(piece.value.run);
      if (height == 0) continue;
      TreeChild child;
      std::memcpy(&child, piece.value.bytes.data(), sizeof child);
      free_newer(memory_, child.node, 0);
    }
  }
}

TreeBuilder::Level& TreeBuilder::level(std::size_t height) {
  SEMEL_ASSERT(height < tree_levels_max && height <= levels_.size());
  if (height == levels_.size()) levels_.push_back(std::make_unique<Level>());
  return *levels_[height];
}

bool TreeBuilder::has_room(const Level& level, const TreePart& key,
                           const TreePart& value) noexcept {
  const std::size_t more = base::varint_bytes(key.bytes.size()) +
                           base::varint_bytes(value.bytes.size()) + key.stored_bytes() +
                           value.stored_bytes() + place_bytes;
  return level.count == 0 ||
         (level.count < tree_entries_max && level.bytes + more <= tree_node_bytes);
}

void TreeBuilder::append(Level& level, const TreePart& key, const TreePart& value,
                         const TreeSize& size) noexcept {
  const Bytes raw = level.raws[level.count].write(key, value);
  const std::size_t behind_key = raw.size() - value.stored_bytes();
  // What lies in the entry is read from the copy: the caller's bytes end before this.
  const TreePart kept_key =
      key.run != 0 ? key : TreePart{raw.substr(behind_key - key.bytes.size(), key.bytes.size()), 0};
  const TreePart kept_value = value.run != 0 ? value : TreePart{raw.substr(behind_key), 0};
  level.pieces[level.count++] = {raw, kept_key, kept_value, size};
  level.bytes += raw.size() + place_bytes;
}

bool TreeBuilder::add_value(Bytes value) {
  if (!values_) values_ = std::make_unique<ListLeafDraft>();
  NodeMaker maker{memory_, stamp_};
  const TreePart part = maker.part(value, list_apart_min);
  if (maker.failed()) return false;
  if (!values_->has_room(part.stored_bytes()) && !flush_values()) return maker.free_all(), false;
  if (part.run != 0) {
    values_->add(list_run_length, reinterpret_cast<const char*>(&part.run));
  } else {
    values_->add(static_cast<std::uint8_t>(value.size()), value.data());
  }
  return true;
}

bool TreeBuilder::flush_values() {
  static_cast<void>(level(0));  // stays empty: the values are its own
  static_cast<void>(level(1));
  NodeMaker maker{memory_, stamp_};
  const NodeMaker::Made made = maker.leaf(values_->values(0, values_->count()));
  if (maker.failed()) return false;
  values_->clear();
  if (add_child(1, {}, made)) return true;
  free_newer(memory_, made.node, 0);
  return false;
}

bool TreeBuilder::add(Bytes key, Bytes value) {
  if (of_ == Of::list) {
    SEMEL_ASSERT(key.empty());
    return add_value(value);
  }
  Level& leaf = level(0);
  NodeMaker maker{memory_, stamp_};
  const TreePart new_key = maker.part(key);
  const TreePart new_value = maker.part(value);
  const bool fits = has_room(leaf, new_key, new_value);
  const bool ends_leaf = !fits || begins_section(leaf, key);
  if (maker.failed() || (ends_leaf && !flush(0, !fits))) return maker.free_all(), false;
  if (leaf.count == 0) {
    leaf.bound = is_first_leaf_ ? TreePart{} : maker.part(bound_between(last_key_, key));
    if (maker.failed()) return maker.free_all(), false;
    if (leaf.bound.run == 0) {
      leaf.bound_bytes.assign(leaf.bound.bytes);
      leaf.bound.bytes = leaf.bound_bytes;
    }
    is_first_leaf_ = false;
  }
  append(leaf, new_key, new_value, {1, key.size() + value.size()});
  return true;
}

bool TreeBuilder::flush(std::size_t height, bool is_full) {
  Level& from = *levels_[height];
  SEMEL_ASSERT(from.count != 0);
  NodeMaker maker{memory_, stamp_};
  const auto pieces = std::span{from.pieces}.first(from.count);
  const NodeMaker::Made made = of_ == Of::stream && height == 0 && is_full
                                   ? maker.entries(pieces)
                                   : maker.node(static_cast<std::uint8_t>(height), pieces, false);
  if (maker.failed()) return false;
  if (height == 0) last_key_.assign(from.pieces[from.count - 1].key.bytes);
  const TreePart bound = from.bound;
  from.count = 0;
  from.bytes = 0;
  if (add_child(height + 1, bound, made)) return true;
  free_newer(memory_, made.node, 0);
  if (bound.run != 0) memory_.free(bound.run);
  return false;
}

bool TreeBuilder::add_child(std::size_t height, const TreePart& bound,
                            const NodeMaker::Made& made) {
  Level& to = level(height);
  const TreeChild child{made.node, made.size};
  const TreePart value{{reinterpret_cast<const char*>(&child), sizeof child}, 0};
  if (!has_room(to, bound, value) && !flush(height)) return false;
  const bool is_first = to.count == 0;  // it has no bound of its own: that moves up
  if (is_first) {
    to.bound = bound;
    if (bound.run == 0) {
      to.bound_bytes.assign(bound.bytes);
      to.bound.bytes = to.bound_bytes;
    }
  }
  append(to, is_first ? TreePart{} : bound, value, made.size);
  return true;
}

bool TreeBuilder::finish(Handle& root) {
  root = 0;
  if (values_ && values_->count() != 0 && !flush_values()) return false;
  for (std::size_t height = 0; height < levels_.size(); ++height) {
    Level& top = *levels_[height];
    if (height + 1 < levels_.size()) {
      if (top.count != 0 && !flush(height)) return false;
      continue;
    }
    if (height > 0 && top.count == 1) {  // a root with one child is none
      TreeChild child;
      std::memcpy(&child, top.pieces[0].value.bytes.data(), sizeof child);
      root = child.node;
    } else {
      NodeMaker maker{memory_, stamp_};
      root = maker
                 .node(static_cast<std::uint8_t>(height), std::span{top.pieces}.first(top.count),
                       false)
                 .node;
      if (maker.failed()) return false;
    }
    top.count = 0;
  }
  return true;
}

}  // namespace semel::engine
