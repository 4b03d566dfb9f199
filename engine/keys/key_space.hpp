// The keys of one engine: the numbered databases, the keyed hash, the shards, and the tables that
// lead from a key to its record.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/keys/database_map.hpp"
#include "engine/keys/key_hash.hpp"
#include "engine/keys/own_section.hpp"
#include "engine/keys/records.hpp"
#include "engine/keys/shard.hpp"
#include "semel/options.hpp"

namespace semel::engine {

using TableProbe = ShardTable::Probe;
using HomeLook = ShardTable::HomeLook;

struct KeyLocation {
  Shard* shard;
  HashBits hash;
  std::uint8_t stored_db;
};

/// Confirms the key after a tag match.
struct Match {
  [[nodiscard]] bool operator()(Handle handle) const noexcept {
    return static_cast<const Entry*>(region.at(handle))->has_key(db, key);
  }
  const Region& region;
  std::uint8_t db;
  Bytes key;
};

/// What a look has found: the record's head, read for a thread that may answer from it.
struct HomeRecord {
  HomeLook look;
  Entry::Head head;
  bool is_found = false;

  /// Whether it is a live record that a thread may answer from at once.
  [[nodiscard, gnu::always_inline]] inline bool answers(const DatabaseMap& databases,
                                                        Timestamp now) const noexcept {
    return is_found && !head.is_pending() && databases.lives(head, now);
  }
};

/// Thread-safe.
class KeySpace final : public SegmentSink {
 public:
  KeySpace(const Region& region, const Options& options);
  ~KeySpace() override;
  KeySpace(const KeySpace&) = delete;
  KeySpace& operator=(const KeySpace&) = delete;

  /// Makes the shards. Errors: out_of_address_space, bad_option (the memory holds no table).
  [[nodiscard]] Status start(Region& region, Threads& threads);

  // --- keys -------------------------------------------------------------------------------
  /// The checks of a key that need no table. Errors: key_empty, key_too_long, db_out_of_range.
  [[nodiscard]] ErrorCode check(std::uint8_t db, Bytes key) const noexcept {
    if (key.empty()) return ErrorCode::key_empty;
    if (key.size() > key_bytes_max_) return ErrorCode::key_too_long;
    return db < limits::db_count ? ErrorCode::ok : ErrorCode::db_out_of_range;
  }
  /// `db`: as stored.
  [[nodiscard]] HashBits hash_of(std::uint8_t db, Bytes key) const noexcept {
    return HashBits::of(hash64_of(db, key));
  }
  [[nodiscard]] std::uint64_t hash64_of(std::uint8_t db, Bytes key) const noexcept;
  /// Its place in the order of a spill; `db`: as stored.
  [[nodiscard]] std::uint64_t rank_of(std::uint8_t db, Bytes key) const noexcept;
  [[nodiscard]] unsigned shard_bits() const noexcept;
  [[nodiscard]] Shard& shard_of(HashBits hash) noexcept {
    return shards_[hash.shard() & shard_mask_];
  }
  /// Shard and hash of a key that has passed check(). Needs no operation.
  [[nodiscard, gnu::always_inline]] inline KeyLocation location_of(KeyRef key) noexcept {
    return location_of(key, databases_.map());
  }
  /// The same by a map of the databases that was read before. `whole`: becomes all of the hash.
  [[nodiscard, gnu::always_inline]] inline KeyLocation location_of(
      KeyRef key, std::uint64_t map, std::uint64_t* whole = nullptr) noexcept {
    const std::uint8_t stored = DatabaseMap::stored_by(map, key.db);
    const std::uint64_t bits = key_hash(stored, key.key, secret_);
    if (whole != nullptr) *whole = bits;
    const HashBits hash = HashBits::of(bits);
    return {&shard_of(hash), hash, stored};
  }
  /// Whether the thread is in a section that holds this shard.
  [[nodiscard]] bool is_own(const ThreadContext& context, const Shard& shard) const noexcept {
    return context.section != nullptr &&
           context.section->holds_shard(static_cast<std::uint32_t>(&shard - shards_));
  }
  [[nodiscard]] DatabaseMap& databases() noexcept { return databases_; }
  [[nodiscard]] std::span<Shard> shards() const noexcept { return {shards_, shard_count_}; }

  // --- records, inside an operation -------------------------------------------------------
  [[nodiscard]] const Entry& entry(SlotWord word) const noexcept {
    return *reinterpret_cast<const Entry*>(base_ + slot::handle(word) * 8);
  }
  [[nodiscard]] TableProbe find(const KeyLocation& location, Bytes key) const noexcept {
    return location.shard->table.find(location.hash, Match{region_, location.stored_db, key});
  }
  /// What the home line of a key holds of it. `bytes_ahead`: of the record, for prefetching.
  template <std::size_t bytes_ahead = 0>
  [[nodiscard, gnu::always_inline]] inline HomeRecord look_home_record(const KeyLocation& location,
                                                                       Bytes key) const noexcept {
    HomeRecord record;
    const auto match = [&](Handle handle) __attribute__((always_inline)) {
      const Entry& entry = this->entry(handle);
      if constexpr (bytes_ahead != 0) {
        __builtin_prefetch(reinterpret_cast<const char*>(&entry) + bytes_ahead);
      }
      record.head = entry.settled_head();
      record.is_found = record.head.is_of(location.stored_db, key);
      return record.is_found;
    };
    record.look = location.shard->table.look_home(location.hash, match);
    return record;
  }
  /// The live record that such a look has found; null: none.
  [[nodiscard, gnu::always_inline]] inline const Entry* live_of(const HomeLook& look,
                                                                Timestamp now) const noexcept {
    if (look.seen == 0) return nullptr;
    const Entry& found = entry(look.seen);
    if (!databases_.lives(found, now)) return nullptr;
    await_append(found);
    return &found;
  }
  /// The look for a record of which more than the first cache line will be read: its second line is
  /// prefetched, so that both misses overlap.
  [[nodiscard, gnu::always_inline]] inline HomeLook look_home_with_prefetch(
      const KeyLocation& location, Bytes key) const noexcept {
    const Match match{region_, location.stored_db, key};
    return location.shard->table.look_home(location.hash, [&](Handle handle) {
      constexpr std::size_t line_bytes = 64;
      __builtin_prefetch(static_cast<const char*>(region_.at(handle)) + line_bytes);
      return match(handle);
    });
  }
  /// Brings slots and the first `bytes` of the records of up to 64 keys into the cache, so
  /// that their misses are waited for together. `hash_at(i) -> HashBits`.
  template <class HashAt>
  void prefetch(std::size_t count, HashAt&& hash_at, std::size_t bytes) noexcept;
  /// The same of one record.
  void prefetch_record(SlotWord word, std::size_t bytes) const noexcept {
    const auto* const record = static_cast<const char*>(region_.at(slot::handle(word)));
    __builtin_prefetch(record);
    __builtin_prefetch(record + bytes - 1);  // records are packed: most lie in two lines
  }
  /// Helps the replacement of the segment that `stuck` lies in.
  void help_growth(Shard& shard, HashBits hash, Handle stuck);
  /// The same after a compare-and-set on `probe` was lost, if that segment is being replaced.
  static void help_growth(Shard& shard, HashBits hash, const TableProbe& probe);
  /// The first rule that the line of a change just published breaks; null: none. Costs the hashes
  /// of at most slots_per_line keys.
  [[nodiscard]] const char* line_broken_by(const KeyLocation& location,
                                           const TableProbe& probe) const noexcept;

  /// Of the threads: no operation reads it any more.
  void reuse_segment(void* segment) noexcept override;

 private:
  const Region& region_;
  const std::byte* const base_;  // of the region, which never moves
  const std::size_t key_bytes_max_;
  const unsigned shard_count_max_;  // of the options; shards_ has room for so many
  std::uint32_t shard_mask_ = 0;
  Shard* shards_ = nullptr;  // one block: an index away, without a pointer between
  std::size_t shard_count_ = 0;
  ShardTable::Word* directories_ = nullptr;
  DatabaseMap databases_;
  alignas(64) unsigned char secret_[secret_bytes];
};

template <class HashAt>
void KeySpace::prefetch(std::size_t count, HashAt&& hash_at, std::size_t bytes) noexcept {
  constexpr std::size_t count_max = 64;
  SEMEL_ASSERT(count <= count_max);
  std::array<ShardTable::Word*, count_max> lines;
  // Whether nothing is left to be looked at.
  const auto look_at = [&](std::size_t i, unsigned distance) {
    const auto candidate = ShardTable::candidate_in(lines[i], hash_at(i), distance);
    if (candidate.slot == nullptr) return candidate.is_last;
    prefetch_record(candidate.seen, bytes);
    return true;
  };
  for (std::size_t i = 0; i < count; ++i) {
    lines[i] = shard_of(hash_at(i)).table.line_at(hash_at(i), 0);
    __builtin_prefetch(lines[i]);
  }
  std::uint64_t elsewhere = 0;  // bit i: perhaps in the line behind its home line
  for (std::size_t i = 0; i < count; ++i) {
    if (look_at(i, 0)) continue;
    elsewhere |= std::uint64_t{1} << i;
    lines[i] = shard_of(hash_at(i)).table.line_at(hash_at(i), 1);
    __builtin_prefetch(lines[i]);
  }
  for (; elsewhere != 0; elsewhere &= elsewhere - 1) {
    static_cast<void>(look_at(static_cast<std::size_t>(__builtin_ctzll(elsewhere)), 1));
  }
}

}  // namespace semel::engine
