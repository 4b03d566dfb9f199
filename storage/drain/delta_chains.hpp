// Which mutations of objects the journal gets as deltas. A chain is a whole record, which this
// process has appended, and the deltas that follow on it. These are together at most three times as
// long as the record, which bounds what whole records add to the journal, and what recovery reads.
//
// A chain may be forgotten at any time: then the next mutation of its key is whole, and older ones
// are drained.
//
// Thread-safe. Mutations of one key come in the order of their versions, each after the one before
// it was appended (docs/decisions/0001-visible-before-durable.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.hpp"
#include "semel/journal.hpp"
#include "storage/log/mutation_codec.hpp"

namespace semel::storage {

class DeltaChains {
 public:
  DeltaChains();

  /// An engine was recovered, all of whose changes come here and nowhere else. `may_write`: deltas
  /// may be written; else it is only noted which records are whole.
  void begin(bool may_write);
  /// Everything is whole from now on: the engine ends, or a mutation was not appended.
  void end() noexcept;

  /// Whether shorten() has to know of a mutation.
  [[nodiscard]] static bool concerns(const Mutation& mutation) noexcept {
    return may_be_base(mutation) || mutation.base != 0;
  }
  /// Whether shorten() would choose this delta, whose record is not made. True is a promise: it
  /// stays a delta, whatever becomes of the chain, as its base is in the journal.
  [[nodiscard]] bool takes(const Mutation& delta) const noexcept;
  /// Chooses deltas in a group that is about to be appended. True: `to` is the group now.
  [[nodiscard]] bool shorten(std::span<const Mutation> group, std::vector<Mutation>& to);
  /// Of the newest whole record, or erase, of a key that is known of; 0: none is. A newer record
  /// does not rest on older mutations.
  [[nodiscard]] Version whole_version(std::uint8_t db, Bytes key) const noexcept;

 private:
  struct Chain {
    std::uint64_t key = 0;  // a hash of it
    Version newest = 0;     // 0: none
    Version whole = 0;      // of the record that it begins with
    std::size_t room = 0;   // for more deltas, in bytes
  };
  static constexpr std::size_t ways = 8;
  static constexpr std::size_t set_count = 4'096;
  using Set = std::array<Chain, ways>;

  [[nodiscard]] std::uint64_t hash_of(std::uint8_t db, Bytes key) const noexcept;
  /// True: the mutation may be a delta.
  [[nodiscard]] bool follow(const Mutation& mutation) SEMEL_REQUIRES(mutex_);

  const std::uint64_t seed_;
  mutable base::Mutex mutex_;
  std::unique_ptr<Set[]> sets_ SEMEL_GUARDED_BY(mutex_);  // null: all is whole
  bool may_write_ SEMEL_GUARDED_BY(mutex_) = false;
};

}  // namespace semel::storage
