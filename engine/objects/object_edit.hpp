// A change of an object: several changes of its elements that become one new record.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "engine/objects/edit_trail.hpp"
#include "engine/objects/large_edit.hpp"
#include "engine/objects/object_reader.hpp"

namespace semel::engine {

/// Reads with its own changes. Keys and values are copied when they are given. Of one thread;
/// std::bad_alloc, with which the edit is to be dropped.
class ObjectEdit final : public ObjectReader {
 public:
  /// An object with more elements or bytes than these is kept in trees, where there is a pool of
  /// nodes; and packed again from half of both on.
  static constexpr std::size_t packed_elements_max = 256;
  static constexpr std::size_t packed_bytes_max = 8 * 1024;

  /// Of no record. Without a pool of nodes it stays packed, however large.
  explicit ObjectEdit(Kind kind, NodePool* pool = nullptr) noexcept : kind_(kind), pool_(pool) {}
  /// `record` must live as long as this. One that names a large object needs a pool to be changed.
  /// `wants_trail`: false where no journal asks for it.
  ObjectEdit(Bytes record, Kind kind, NodePool* pool = nullptr, bool wants_trail = true) noexcept
      : ObjectReader(record, kind),
        kind_(kind),
        pool_(pool),
        bytes_(record.size()),
        trail_(wants_trail ? whole_size(kind, record) : 0) {}

  // Of a kind whose elements have keys.

  /// True: the key is new. Of a key that is there, the value is replaced.
  bool put(Bytes key, Bytes value = {});
  /// True: it was there.
  bool erase(Bytes key);
  /// Of a sorted set: the member of `key` gets the score of `to`. False: `key` was not there.
  bool move(Bytes key, Bytes to);

  // Of a list: `rank` says before which element, size() behind the last.

  void insert_at(std::size_t rank, Bytes value);
  void set_at(std::size_t rank, Bytes value);

  // Of all.

  void erase_at(std::size_t rank) { erase_range(rank, rank + 1); }
  /// The elements of ranks `from` .. `to` - 1.
  void erase_range(std::size_t from, std::size_t to);
  void clear() { erase_range(0, size()); }

  [[nodiscard]] bool is_changed() const noexcept { return is_changed_; }
  /// Nothing was put or inserted: the object has become smaller.
  [[nodiscard]] bool only_erases() const noexcept { return is_changed_ && !has_added_; }
  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  /// The steps that were made, if they are wanted and much shorter than the record; else empty.
  [[nodiscard]] Bytes trail() const noexcept { return trail_.bytes(); }
  /// Of the record that write() would make; of a large object, of its whole bytes.
  [[nodiscard]] std::size_t record_bytes() const noexcept;
  /// Makes `to` the record, of `bytes` = record_bytes(). Not to be called of one that is empty. The
  /// last call.
  void write(std::string& to, std::size_t bytes);
  void write(std::string& to) { write(to, record_bytes()); }
  /// Of a large object that write() has made: what publishes it. Null: it is packed. It must not
  /// outlive this.
  [[nodiscard]] Publication* publication() noexcept { return large_ ? &*large_ : nullptr; }
  /// There was no memory for nodes: the record is not to be used.
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }

 private:
  /// The elements, to be changed.
  [[nodiscard]] ElementPieces& pieces();
  /// The same of a large object, which it may become; null: it is packed.
  [[nodiscard]] LargeEdit* large_edit();
  /// The first change copies the whole object: where nothing is to be done, none is begun.
  [[nodiscard]] bool is_costly_to_open() const noexcept;
  void note_change(bool adds) noexcept;
  void erase_large(std::size_t from, std::size_t to);
  [[nodiscard]] Bytes keep(Bytes bytes);

  const Kind kind_;
  NodePool* const pool_;
  // What a change of a few elements needs; the heap has the rest.
  alignas(std::max_align_t) std::array<std::byte, 512> own_;
  std::pmr::monotonic_buffer_resource memory_{own_.data(), own_.size()};
  std::size_t bytes_ = 0;  // of the packed object, at most
  bool has_failed_ = false;
  std::optional<LargeEdit> large_;
  bool is_changed_ = false;
  bool has_added_ = false;
  EditTrail trail_;
  std::optional<ElementPieces> pieces_;  // from the first change on
};

}  // namespace semel::engine
