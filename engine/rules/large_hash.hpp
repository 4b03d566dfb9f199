// What the record of a large hash says, for those who do not know its trees
// (engine/objects/hash_tree.hpp): its form, the ends of its fields, and who knows the rest.
//
//   u8 0x20 | 7 zeros | address of the version | address of the rules | ends
//
// The ends are those of hash_value.hpp, and there only if a field has one. Bytes that come from
// outside the process never look so: they do not pass is_sound().
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "engine/rules/record.hpp"
#include "semel/types.hpp"

namespace semel::engine {

class NodePool;

/// The first byte of a record that names a large object of any kind. No other record of an object
/// begins with it.
inline constexpr char large_form = 0x20;
inline constexpr std::size_t large_record_bytes = 16;  ///< of a record that only names one
inline constexpr std::size_t large_hash_bytes = large_record_bytes + sizeof(void*);
inline constexpr std::size_t large_hash_ends_bytes = large_hash_bytes + 3 * sizeof(std::int64_t);

/// What a decision points into until it is published.
class HeldChange {
 public:
  virtual ~HeldChange() = default;
};

/// Reads and trims large hashes. Their records name it, so a program without hashes links none of
/// it.
class LargeHashRules {
 public:
  /// Bytes of the hash, packed.
  [[nodiscard]] virtual std::size_t whole_size(Bytes record) const noexcept = 0;
  /// Makes `to` the hash, packed. std::bad_alloc.
  virtual void pack(Bytes record, std::string& to) const = 0;
  /// The first end of a field that is later than `now`; no_end: there is none.
  [[nodiscard]] virtual Timestamp next_end(Bytes record, Timestamp now) const noexcept = 0;
  /// Takes the ended fields out, of which there is one. `scratch` and `held` must live until the
  /// decision is published. std::bad_alloc.
  [[nodiscard]] virtual Decision trim(const RecordView& live, Timestamp now, NodePool& pool,
                                      std::string& scratch,
                                      std::unique_ptr<HeldChange>& held) const = 0;

 protected:
  ~LargeHashRules() = default;
};

[[nodiscard]] inline bool is_large_hash(Bytes value) noexcept {
  return (value.size() == large_hash_bytes || value.size() == large_hash_ends_bytes) &&
         value[0] == large_form;
}
/// Null: the hash is packed.
[[nodiscard]] inline const LargeHashRules* large_hash_rules(Bytes value) noexcept {
  if (!is_large_hash(value)) return nullptr;
  const LargeHashRules* rules = nullptr;
  std::memcpy(&rules, value.data() + large_record_bytes, sizeof rules);
  return rules;
}

}  // namespace semel::engine
