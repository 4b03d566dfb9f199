// A change of a large hash, and what others ask of one (LargeHashRules).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "engine/objects/edit_trail.hpp"
#include "engine/objects/large_edit.hpp"
#include "engine/rules/large_hash.hpp"
#include "engine/rules/record.hpp"

namespace semel::engine {

/// Of one thread. After a failure of memory it goes on, and write() makes no record.
/// std::bad_alloc, with which it is to be dropped.
class HashTreeEdit final : public HeldChange {
 public:
  // A hash is packed up to both of these, and packed again from half of both on. Up to so many
  // fields redis-server keeps their order, and so does a packed hash.
  static constexpr std::size_t packed_fields_max = 512;
  static constexpr std::size_t packed_bytes_max = 32 * 1024;

  /// Of a large hash, inside the operation that has found its record.
  HashTreeEdit(Bytes record, NodePool& pool);
  /// Of a packed hash without ended fields, or of none, which becomes large. `seed`: unless `hash`
  /// has an index.
  HashTreeEdit(const HashView& hash, std::uint64_t seed, NodePool& pool);

  /// True: the field is new.
  bool put(Bytes field, Bytes value, Timestamp due);
  /// True: it was there.
  bool erase(Bytes field);
  /// Erases the fields that have ended by `now`, and notes that in the trail.
  void erase_ended(Timestamp now, EditTrail& trail);

  /// There was no memory: the other answers mean nothing, and write() makes no record.
  [[nodiscard]] bool has_failed() const noexcept { return edit_.has_failed(); }
  /// Something is not as it was.
  [[nodiscard]] bool is_changed() const noexcept { return is_changed_; }
  [[nodiscard]] std::size_t fields() const noexcept { return edit_.hash().size(); }
  /// Of the hash, packed.
  [[nodiscard]] std::size_t bytes() const noexcept { return edit_.hash().packed_bytes().whole(); }
  /// Makes `to` the record of the hash, whose key ends at `key_end`. A field is left. A packed one
  /// has at most `packed_max` bytes. The last call.
  [[nodiscard]] Decision write(Timestamp key_end, std::size_t packed_max, std::string& to);

 private:
  void erase_key(Bytes key);

  // What a change of a few fields needs; the heap has the rest.
  alignas(std::max_align_t) std::array<std::byte, 512> own_;
  std::pmr::monotonic_buffer_resource memory_{own_.data(), own_.size()};
  LargeEdit edit_;
  bool is_changed_ = false;
  std::string value_;
};

/// What the records of large hashes name.
[[nodiscard]] const LargeHashRules& rules_of_trees() noexcept;

}  // namespace semel::engine
