// What an object of many elements holds, as the rules of its kind read it: elements that are
// counted and in order. The kinds (engine/types) know keys and values; this knows where they lie.
//
//   kind         key of an element                    its value     parts
//   list         none: the place is the order         the element   values
//   set          the member (element_keys.hpp)        none          keys
//   sorted set   the score, then the member           none          keys
//   stream       see engine/kinds/stream_keys.hpp                   both
#pragma once

#include <cstddef>
#include <optional>

#include "engine/objects/element_pieces.hpp"
#include "engine/objects/large_object.hpp"
#include "semel/op.hpp"

namespace semel::engine {

/// A present state of an object. Bytes of elements stay valid until the object is changed through
/// the ObjectEdit that this is, or until the call that gave it has ended; those of a stream's entry
/// until the next at() or find(), and from each() for one call. Of one thread.
class ObjectReader {
 public:
  /// An object without elements.
  ObjectReader() noexcept = default;
  /// Of a large object, inside the operation that has found its record.
  ObjectReader(Bytes record, Kind kind) noexcept
      : large_(large_object_of(kind, record)),
        packed_(large_ == nullptr ? PackedObject{record, parts_of(kind)} : PackedObject{}) {
    if (large_ != nullptr) set_trees(large_->elements(), large_->index_tree());
  }
  ObjectReader(const ObjectReader&) = delete;
  ObjectReader& operator=(const ObjectReader&) = delete;

  /// False: the record is damaged, and reads as empty.
  [[nodiscard]] bool is_good() const noexcept { return packed_.is_good(); }
  [[nodiscard]] std::size_t size() const noexcept {
    if (is_tree_) return static_cast<std::size_t>(large_elements_.size());
    return edited_ == nullptr ? packed_.size() : edited_->size();
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  /// `rank` < size().
  [[nodiscard]] Element at(std::size_t rank) const noexcept {
    if (is_tree_) return large_elements_.at(rank, room_);
    return edited_ == nullptr ? packed_.at(rank) : edited_->at(rank);
  }
  /// The value of `key`. Not of a list, like the calls below.
  [[nodiscard]] std::optional<Bytes> find(Bytes key) const noexcept;
  /// How many keys are below `key`: the rank that it has, or would have.
  [[nodiscard]] std::size_t rank(Bytes key) const noexcept;
  /// The element whose key is `suffix` behind its first `skip` bytes, of which there is at most
  /// one.
  [[nodiscard]] std::optional<Element> find_suffix(std::size_t skip, Bytes suffix) const noexcept;

  /// The first `skip` bytes of that element's key.
  [[nodiscard]] std::optional<Bytes> find_prefix(std::size_t skip, Bytes suffix) const noexcept;

  /// Whether find_suffix() of a sorted set looks at few elements, as it does of a large one.
  [[nodiscard]] bool has_index() const noexcept { return is_tree_ && index_.root() != 0; }

  /// Calls `visit(Element)` for the elements of ranks `from` .. `to` - 1, in order. If it returns
  /// false, they end there.
  template <class Visit>
  void each(std::size_t from, std::size_t to, Visit&& visit) const {
    if (is_tree_) return large_elements_.each(from, to, visit);
    for (std::size_t i = from; i < to; ++i) {
      if (!visit(at(i))) return;
    }
  }
  /// The same from `to` - 1 down to `from`.
  template <class Visit>
  void each_back(std::size_t from, std::size_t to, Visit&& visit) const {
    if (is_tree_) return large_elements_.each_back(from, to, visit);
    for (std::size_t i = to; i > from; --i) {
      if (!visit(at(i - 1))) return;
    }
  }

 protected:
  const PackedObject& packed() const noexcept { return packed_; }
  void set_edited(const ElementPieces* pieces) noexcept { edited_ = pieces; }
  /// The large object that the record names; null: none.
  [[nodiscard]] LargeObject* large() const noexcept { return large_; }
  [[nodiscard]] bool is_tree() const noexcept { return is_tree_; }
  void set_trees(const LargeElements& elements, const Tree& index) noexcept {
    is_tree_ = true;
    large_elements_ = elements;
    index_ = index;
  }

 private:
  [[nodiscard]] std::optional<Element> find_indexed(Bytes suffix) const noexcept;

  LargeObject* large_ = nullptr;
  bool is_tree_ = false;  // then the trees have the elements
  LargeElements large_elements_{{nodes_of_process(), 0}};
  Tree index_{nodes_of_process(), 0};  // of a sorted set
  PackedObject packed_;
  const ElementPieces* edited_ = nullptr;  // of an edit that has changed something
  mutable EntryRoom room_;
};

}  // namespace semel::engine
