// A change of an object: several changes of its elements that become one new record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/objects/object_reader.hpp"

namespace semel::engine {

/// Reads with its own changes. Keys and values are copied when they are given. Of one thread;
/// std::bad_alloc, with which the edit is to be dropped.
class ObjectEdit final : public ObjectReader {
 public:
  /// Of no record.
  explicit ObjectEdit(Kind kind) noexcept : kind_(kind) {}
  /// `record` must live as long as this.
  ObjectEdit(Bytes record, Kind kind) noexcept : ObjectReader(record, kind), kind_(kind) {}

  // Of a kind whose elements have keys.

  /// True: the key is new. Of a key that is there, the value is replaced.
  bool put(Bytes key, Bytes value = {});
  /// True: it was there.
  bool erase(Bytes key);

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
  /// Of the record that write() would make.
  [[nodiscard]] std::size_t record_bytes() const noexcept;
  /// Makes `to` the record. Not to be called of one that is empty.
  void write(std::string& to) const;

 private:
  /// The elements, to be changed.
  [[nodiscard]] ElementPieces& pieces();
  [[nodiscard]] Bytes keep(Bytes bytes);

  const Kind kind_;
  bool is_changed_ = false;
  bool has_added_ = false;
  std::optional<ElementPieces> pieces_;          // from the first change on
  std::vector<std::unique_ptr<char[]>> chunks_;  // of kept bytes
  char* next_ = nullptr;
  std::size_t room_ = 0;
};

}  // namespace semel::engine
