// The keys that a run without windows has met, in full: an exact set of one part of them.
//
// The engine's record has a time to live, a version and a slot that several threads may change. A
// run without windows needs none of it, and it costs 2 to 3 times the time (decision 0052). Here a
// key is its bytes, one after the other in a range of memory that never moves, and a slot of 8
// bytes in an open table:
//
//   slot    0, or 24 bits of the hash and 40 bits of where the record begins, plus 1
//   record  [line u64, count u64]  size of the key (1 to 4 bytes, 7 bits each)  key
//
// A thread that asks for many keys at once does not wait for memory. Keys are taken in groups of
// 32: before a group is looked up, the slots of the second group after it are fetched, then the
// records of the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "semel/result.hpp"
#include "semel/types.hpp"
#include "tools/semel/dedup/blocks/key_hash.hpp"
#include "tools/semel/dedup/blocks/pages.hpp"

namespace semel::tool {

/// A key to look up.
struct KeyRef {
  std::uint64_t hash;
  const char* data;
  std::uint32_t size;
  std::uint32_t line;  ///< of the block, from 0
};

/// The note of a counted set about a key.
struct KeyNote {
  std::uint64_t line;  ///< the first or the last of all lines, from 0
  std::uint64_t count;
};

enum class Fate : std::uint8_t { first, repeat, no_key, dropped };

/// Not thread-safe: one thread at a time.
class KeySet {
 public:
  struct Options {
    bool is_counted = false;  ///< records have a note
    bool keeps_last = false;  ///< the note's line is the last one
  };
  KeySet(const KeyHash& hash, MemoryBudget& budget, Options options);

  /// False: the process cannot reserve the addresses.
  [[nodiscard]] bool open();

  struct Batch {
    std::span<const KeyRef> keys;
    std::uint64_t first_line = 0;  ///< of the block, from the beginning of all inputs
    double share = 0;              ///< of the input that was read, 0 to 1; 0: not known
  };
  /// Adds the keys in their order and writes the fate of each line. Returns the number added: less
  /// than all if the memory is full, and then the others leave no trace.
  [[nodiscard]] std::size_t add(const Batch& batch, Fate* fates);

  [[nodiscard]] std::uint64_t size() const noexcept { return keys_; }

  /// The notes in the order of the keys' first lines.
  class Notes {
   public:
    explicit Notes(const KeySet& set) : set_(&set) {}
    /// False: there are no more.
    [[nodiscard]] bool next(KeyNote& note) noexcept;

   private:
    const KeySet* set_;
    std::size_t at_ = 0;
  };

 private:
  template <bool is_counted>
  [[nodiscard]] std::size_t add_all(const Batch& batch, Fate* fates);
  template <bool is_counted>
  [[nodiscard]] std::uint64_t* find(const KeyRef& key, bool& found) const noexcept;
  [[nodiscard]] bool append(const KeyRef& key, std::uint64_t line, std::uint64_t& slot);
  [[nodiscard]] bool grow(double share);
  [[nodiscard]] bool resize(std::size_t slots);
  [[nodiscard]] const std::uint64_t* first_slot(const KeyRef& key) const noexcept;
  /// Where the key's record probably is; null: it probably has none.
  [[nodiscard]] const char* likely_record(const KeyRef& key) const noexcept;

  const KeyHash& hash_;
  MemoryBudget& budget_;
  const Options options_;
  Pages table_;
  Pages records_;
  std::size_t slots_ = 0;     ///< a power of two
  std::size_t keys_max_ = 0;  ///< with this table
  std::uint64_t keys_ = 0;
  std::size_t end_ = 0;  ///< of the records
};

}  // namespace semel::tool
