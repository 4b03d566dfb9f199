#include "engine/keys/key_space.hpp"

#include <sys/mman.h>
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "engine/table/rank.hpp"
#include "semel/cold.hpp"

namespace semel::engine {

namespace {

constexpr std::size_t directory_bytes = (std::size_t{1} << depth_max) * sizeof(std::uint64_t);

/// Shards grow at different moments, or the whole table would be half empty at the same time:
/// shard s has 2^(s / count) times the lines of shard 0, rounded up to a prime (table.hpp).
std::uint32_t line_count_of(unsigned shard, unsigned shard_count) noexcept {
  constexpr double smallest = 257;
  const auto is_prime = [](std::uint32_t number) {
    for (std::uint32_t divisor = 2; divisor * divisor <= number; ++divisor) {
      if (number % divisor == 0) return false;
    }
    return true;
  };
  auto count = static_cast<std::uint32_t>(
      std::lround(smallest * std::exp2(static_cast<double>(shard) / shard_count)));
  while (!is_prime(count)) ++count;
  return count;
}

void fill_secret(std::span<unsigned char> secret, std::optional<std::uint64_t> seed) noexcept {
  if (seed) {
    std::uint64_t state = *seed;
    for (unsigned char& byte : secret) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      byte = static_cast<unsigned char>(state >> 56);
    }
    return;
  }
  base::fill_random(secret);
}

}  // namespace

KeySpace::KeySpace(const Region& region, const Options& options)
    : region_(region),
      base_(static_cast<const std::byte*>(region.at(0))),
      key_bytes_max_(options.key_bytes_max),
      shard_count_max_(options.shard_count) {
  // Ranks must mean the same in every life of a cold store.
  fill_secret(secret_, options.cold != nullptr ? options.cold->hash_seed() : options.hash_seed);
}

KeySpace::~KeySpace() {
  if (directories_ == nullptr) return;
  std::destroy_n(shards_, shard_count_);
  std::allocator<Shard>{}.deallocate(shards_, shard_count_max_);
  munmap(directories_, directory_bytes * shard_count_max_);
}

[[gnu::cold]] Status KeySpace::start(Region& region, Threads& threads) {
  SEMEL_ASSERT(directories_ == nullptr && &region == &region_);
  const unsigned count = shard_count_max_;
  void* memory = mmap(nullptr, directory_bytes * count, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return Error{ErrorCode::out_of_address_space, "table directory"};
  directories_ = static_cast<ShardTable::Word*>(memory);
  shard_mask_ = count - 1;
  shards_ = std::allocator<Shard>{}.allocate(count);
  for (unsigned i = 0; i < count; ++i) {
    ShardTable::Word* const directory = directories_ + (std::size_t{i} << depth_max);
    new (&shards_[i]) Shard{region, threads, line_count_of(i, count), directory};
    ++shard_count_;
    if (!shards_[i].table.start()) {
      return Error{ErrorCode::bad_option, "memory_bytes = " + std::to_string(region.limit_bytes()) +
                                              " bytes: holds no table of " + std::to_string(count) +
                                              " shards"};
    }
  }
  return Done{};
}

void KeySpace::reuse_segment(void* segment) noexcept {
  static_cast<ShardTable::Segment*>(segment)->source->release_segment(segment);
}

[[gnu::flatten]] std::uint64_t hash_by_library(Bytes key, const unsigned char* secret) noexcept {
  return XXH3_64bits_withSecret(key.data(), key.size(), secret, secret_bytes);
}

std::uint64_t KeySpace::hash64_of(std::uint8_t db, Bytes key) const noexcept {
  return key_hash(db, key, secret_);
}

std::uint64_t KeySpace::rank_of(std::uint8_t db, Bytes key) const noexcept {
  return engine::rank_of(hash64_of(db, key), shard_bits());
}

unsigned KeySpace::shard_bits() const noexcept {
  SEMEL_ASSERT(std::has_single_bit(shard_count_max_));
  return static_cast<unsigned>(std::countr_zero(shard_count_max_));
}

void KeySpace::help_growth(Shard& shard, HashBits hash, Handle stuck) {
  // Just this record: an earlier one of the same bits may lie in a line that is not frozen yet.
  help_growth(shard, hash,
              shard.table.find(hash, [stuck](Handle handle) { return handle == stuck; }));
}

void KeySpace::help_growth(Shard& shard, HashBits hash, const TableProbe& probe) {
  if (!ShardTable::is_frozen(probe)) return;
  // Without memory for a copy of our own, the thread that froze the segment has it: let it run.
  if (!shard.table.grow(hash, probe.segment)) std::this_thread::yield();
}

const char* KeySpace::line_broken_by(const KeyLocation& location,
                                     const TableProbe& probe) const noexcept {
  // Others change this line meanwhile, but each of them puts a record where its key leads.
  const ShardTable& table = location.shard->table;
  auto* const segment = static_cast<const ShardTable::Segment*>(probe.segment);
  const auto index =
      static_cast<std::uint32_t>(probe.slot - const_cast<ShardTable::Segment*>(segment)->slots());
  const std::uint32_t line = index / slots_per_line;
  if (line >= table.line_count()) return "a slot lies outside of its segment";
  ShardTable::Word* const slots = probe.slot - index % slots_per_line;
  for (std::uint32_t i = 0; i < slots_per_line; ++i) {
    // mo: acquire [table.publish]: the key is read.
    const SlotWord word = slots[i].load(std::memory_order_acquire);
    if (!slot::is_record(word)) continue;
    const Entry& record = entry(word);
    const HashBits hash = hash_of(record.db(), record.key());
    if (hash.tag() != slot::tag(word)) return "a slot has another tag than its record's key";
    if (&shards_[hash.shard() & shard_mask_] != location.shard)
      return "a record in the wrong shard";
    const std::uint32_t steps = slot::step(hash.tag()) * slot::distance(word);
    if ((hash.line(table.line_count()) + steps) % table.line_count() != line) {
      return "a slot is not as far from its home line as it says";
    }
  }
  return nullptr;
}

}  // namespace semel::engine
