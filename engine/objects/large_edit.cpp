#include "engine/objects/large_edit.hpp"

#include <algorithm>
#include <new>

namespace semel::engine {

namespace {

/// What a value takes in a packed object, with its length.
std::uint64_t packed_part(std::uint64_t bytes) noexcept {
  return base::varint_bytes(bytes) + bytes;
}

/// What an element takes in a packed object; not of a hash.
std::uint64_t packed_element(const TreeElementBytes& bytes, ElementParts parts) noexcept {
  return (parts == ElementParts::values ? 0 : packed_part(bytes.key)) +
         (parts == ElementParts::keys ? 0 : packed_part(bytes.value));
}

}  // namespace

LargeEdit::LargeEdit(NodePool& pool, Kind kind, std::pmr::memory_resource& lists)
    : pool_(pool), kind_(kind), lists_(lists), trees_(&first_place_.emplace(pool, lists)) {
  trees_->open(1, 0, 0, lists_, kind_);
}

LargeEdit::LargeEdit(NodePool& pool, Kind kind, std::pmr::memory_resource& lists, LargeObject& from)
    : pool_(pool), kind_(kind), lists_(lists), trees_(&first_place_.emplace(pool, lists)) {
  seed_ = from.seed;
  if (!is_newest(from)) {  // of a copied key, most likely
    build([&](const auto& add) {
      const LargeElements all = from.elements();
      all.each(0, all.size(), [&](const Element& element) { return add(element), true; });
    });
    return;
  }
  from_ = &from;
  element_bytes_ = from.element_bytes;
  field_bytes_ = {from.element_bytes, from.bare_bytes};
  if (kind_ == Kind::list) {
    const LargeElements all = from.elements();
    list_.begin(all.head, all.tail, from.ends);
  }
  trees_->open(from.number + 1, from.root, from.index, lists_, kind_);
}

LargeEdit::~LargeEdit() {
  SEMEL_ASSERT(!lock_);
  if (made_ == nullptr) return;
  if (from_ == nullptr) pool_.free(reinterpret_cast<std::uintptr_t>(made_->chain) / 8);
  pool_.free(reinterpret_cast<std::uintptr_t>(made_) / 8);
}

bool build_index(TreeBuilder& builder, std::vector<Bytes>& keys, std::vector<std::string>& ends) {
  std::sort(ends.begin(), ends.end());
  for (const std::string& key : ends) {
    if (!builder.add(key, {})) return false;
  }
  std::sort(keys.begin(), keys.end(), [](Bytes one, Bytes other) {
    return one.substr(index_skip) < other.substr(index_skip);
  });
  return std::all_of(keys.begin(), keys.end(), [&](Bytes key) {
    return builder.add(key.substr(index_skip), key.substr(0, index_skip));
  });
}

bool LargeEdit::move_end(Bytes key, std::uint64_t from, std::uint64_t to) {
  if (from == to) return true;
  if (from != 0 && !note(trees_->index->erase(end_key(from, key)))) return false;
  return to == 0 || note(trees_->index->put(end_key(to, key), {}));
}

TreeChange LargeEdit::put_field(Bytes key, Bytes value) {
  const std::uint64_t end = end_in(value);
  std::uint64_t end_before = 0;
  if (trees_->index->root() != 0) [[unlikely]] {
    if (const std::optional<Bytes> before = tree().find(key)) end_before = end_in(*before);
  }
  if (!move_end(key, end_before, end)) return TreeChange::no_memory;
  const std::uint64_t payload = trees_->main->tree().size().payload;
  const TreeChange change = trees_->main->put(key, value);
  static_cast<void>(note(change));
  const std::size_t field = key.size() - field_skip;
  const FieldBytes fresh = field_bytes(field, value.size(), end);
  if (change == TreeChange::added || change == TreeChange::replaced) field_bytes_ += fresh;
  if (change == TreeChange::replaced) {
    const std::uint64_t now = trees_->main->tree().size().payload;
    field_bytes_ -= field_bytes(field, value.size() + payload - now, end_before);
  }
  return change;
}

TreeChange LargeEdit::erase_field(Bytes key) {
  std::uint64_t end = 0;
  if (trees_->index->root() != 0) [[unlikely]] {
    const std::optional<Bytes> value = tree().find(key);
    if (!value) return TreeChange::nothing;
    end = end_in(*value);
    if (!move_end(key, end, 0)) return TreeChange::no_memory;
  }
  const std::size_t field = key.size() - field_skip;
  TreeElementBytes gone;
  const TreeChange change = trees_->main->erase(key, gone);
  if (note(change) && change != TreeChange::nothing) {
    field_bytes_ -= field_bytes(field, gone.value, end);
  }
  return change;
}

TreeChange LargeEdit::put(Bytes key, Bytes value) {
  pool_.set_growing(true);
  if (kind_ == Kind::hash) return put_field(key, value);
  const std::uint64_t before = trees_->main->tree().size().payload;
  if (has_index() && key.size() >= index_skip) {
    if (!note(trees_->index->put(key.substr(index_skip), key.substr(0, index_skip)))) {
      return TreeChange::no_memory;
    }
  }
  const TreeChange change = trees_->main->put(key, value);
  static_cast<void>(note(change));
  if (change == TreeChange::added) element_bytes_ += packed_bytes({key, value}, parts_of(kind_));
  if (change == TreeChange::replaced) {
    const std::uint64_t now = trees_->main->tree().size().payload;
    element_bytes_ += packed_part(value.size()) - packed_part(value.size() + before - now);
  }
  return change;
}

TreeChange LargeEdit::erase(Bytes key) {
  pool_.set_growing(false);
  if (kind_ == Kind::hash) return erase_field(key);
  // The index first: the key may lie in a node of the other tree.
  if (has_index() && key.size() >= index_skip) {
    const TreeChange indexed =
        trees_->index->erase_if(key.substr(index_skip), key.substr(0, index_skip));
    if (!note(indexed) || indexed == TreeChange::nothing) return indexed;
  }
  TreeElementBytes gone;
  const TreeChange change = trees_->main->erase(key, gone);
  if (note(change) && change != TreeChange::nothing)
    element_bytes_ -= packed_element(gone, parts_of(kind_));
  return change;
}

TreeChange LargeEdit::move(Bytes key, Bytes to) {
  SEMEL_ASSERT(has_index() && key.substr(index_skip) == to.substr(index_skip));
  pool_.set_growing(true);
  const TreeChange erased = trees_->main->erase(key);
  if (!note(erased) || erased == TreeChange::nothing) return erased;
  const TreeChange indexed = trees_->index->put(to.substr(index_skip), to.substr(0, index_skip));
  if (!note(indexed) || !note(trees_->main->put(to, {}))) return TreeChange::no_memory;
  return TreeChange::replaced;
}

void LargeEdit::insert_at(std::uint64_t rank, Bytes value) {
  SEMEL_ASSERT(kind_ == Kind::list);
  pool_.set_growing(true);
  has_grown_ = true;
  const std::size_t bytes = value.size();
  if (note(list_.insert(*trees_->main, rank, value))) element_bytes_ += packed_part(bytes);
}

void LargeEdit::set_at(std::uint64_t rank, Bytes value) {
  pool_.set_growing(true);
  has_grown_ = true;
  EntryRoom room;
  const std::uint64_t before = packed_part(elements().at(rank, room).value.size());
  const std::size_t bytes = value.size();
  const TreeChange change = kind_ == Kind::list ? list_.set(*trees_->main, rank, value)
                                                : trees_->main->set_at(rank, value);
  if (note(change)) element_bytes_ += packed_part(bytes) - before;
}

void LargeEdit::erase_at(std::uint64_t rank) {
  SEMEL_ASSERT(kind_ != Kind::hash);
  pool_.set_growing(false);
  if (kind_ == Kind::list) {
    EntryRoom room;
    const std::uint64_t bytes = packed_part(elements().at(rank, room).value.size());
    if (note(list_.erase(*trees_->main, rank))) element_bytes_ -= bytes;
    return;
  }
  if (has_index()) {  // first: the key lies in a node of the other tree
    const Bytes key = tree().at(rank).element().key;
    if (key.size() >= index_skip && !note(trees_->index->erase(key.substr(index_skip)))) return;
  }
  TreeElementBytes gone;
  if (note(trees_->main->erase_at(rank, gone)))
    element_bytes_ -= packed_element(gone, parts_of(kind_));
}

bool LargeEdit::finish(std::string& record) {
  SEMEL_ASSERT(made_ == nullptr);
  if (has_failed()) return false;
  // What grows a list may use no reserve, though it makes no node but this.
  pool_.set_growing(kind_ == Kind::list && has_grown_);
  constexpr std::uint32_t many = 16;  // changes: below, few nodes were changed twice
  if (changes_ >= many) {
    trees_->main->trim();
    trees_->index->trim();
    if (has_failed()) return false;
  }
  LargeChain* chain = from_ != nullptr ? from_->chain : nullptr;
  if (chain == nullptr) {
    const Handle handle = pool_.allocate(sizeof(LargeChain));
    if (handle == 0) return false;
    chain = new (pool_.writable(handle)) LargeChain;
  }
  const ListEndSizes ends = list_.sizes();
  const Handle handle = pool_.allocate(sizeof(LargeObject) + ends.bytes());
  if (handle == 0) {
    if (from_ == nullptr) pool_.free(reinterpret_cast<std::uintptr_t>(chain) / 8);
    return false;
  }
  made_ = new (pool_.writable(handle))
      LargeObject{.chain = chain,
                  .number = from_ != nullptr ? from_->number + 1 : 1,
                  .element_bytes = kind_ == Kind::hash ? field_bytes_.with_end : element_bytes_,
                  .root = trees_->main->root(),
                  .index = trees_->index->root(),
                  .seed = seed_,
                  .bare_bytes = field_bytes_.bare,
                  .made_bytes = trees_->nodes.made_bytes(),
                  .ends = ends,
                  .before = from_,
                  .after = nullptr,
                  .records = 1,
                  .dead = 0};
  list_.write(reinterpret_cast<char*>(made_ + 1));
  name_large_object(*made_, record);
  return true;
}

bool LargeEdit::begin() noexcept {
  SEMEL_ASSERT(made_ != nullptr && !lock_);
  lock_.emplace(*made_->chain);
  if (from_ == nullptr || is_newest(*from_)) return true;
  lock_.reset();
  return false;
}

void LargeEdit::end(bool is_published) noexcept {
  SEMEL_ASSERT(lock_);
  if (is_published) {
    trees_->nodes.publish(from_);
    trees_->main->commit();
    trees_->index->commit();
    trees_->main.reset();
    trees_->index.reset();
    if (from_ != nullptr) from_->after = made_;
    // mo: relaxed [large.chain]: under its lock
    made_->chain->newest.store(made_, std::memory_order_relaxed);
    made_ = nullptr;
  }
  lock_.reset();
}

}  // namespace semel::engine
