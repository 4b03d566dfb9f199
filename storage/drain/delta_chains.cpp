#include "storage/drain/delta_chains.hpp"

#include <xxhash.h>

#include <algorithm>
#include <new>

#include "base/random.hpp"

namespace semel::storage {

namespace {

/// What a delta takes besides its key and trail, about.
constexpr std::size_t delta_overhead = 24;
/// The deltas of a chain have so many times the bytes of its whole record. So the whole records
/// add a third to what the deltas take in the journal, and a start reads four times what lives.
constexpr std::size_t chain_share = 3;

[[nodiscard]] std::size_t bytes_of(const Mutation& delta) noexcept {
  return delta.key.size() + delta.trail.size() + delta_overhead;
}

}  // namespace

DeltaChains::DeltaChains() : seed_(base::random_number()) {}

void DeltaChains::begin(bool may_write) {
  auto fresh = std::make_unique<Set[]>(set_count);
  const base::MutexLock lock{mutex_};
  sets_.swap(fresh);
  may_write_ = may_write;
}

void DeltaChains::end() noexcept {
  const base::MutexLock lock{mutex_};
  sets_.reset();
}

std::uint64_t DeltaChains::hash_of(std::uint8_t db, Bytes key) const noexcept {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed_ + db);
}

bool DeltaChains::follow(const Mutation& mutation) {
  const std::uint64_t key = hash_of(mutation.db, mutation.key);
  Set& set = sets_[key % set_count];
  auto chain = std::find_if(set.begin(), set.end(),
                            [&](const Chain& each) { return each.newest != 0 && each.key == key; });
  const std::size_t bytes = bytes_of(mutation);
  if (is_delta(mutation)) {  // takes() has promised it
    if (chain != set.end()) {
      chain->room = chain->newest == mutation.base ? chain->room - std::min(chain->room, bytes) : 0;
      chain->newest = mutation.version;
    }
    return false;
  }
  if (!may_be_base(mutation)) {  // short, of another kind, or an erase
    if (chain != set.end()) chain->newest = chain->whole = mutation.version;
    return false;
  }
  if (may_write_ && chain != set.end() && !mutation.trail.empty() &&
      chain->newest == mutation.base && bytes <= chain->room) {
    chain->newest = mutation.version;
    chain->room -= bytes;
    return true;
  }
  if (chain == set.end()) {  // in the place of the one that has not changed for longest, about
    chain = std::min_element(set.begin(), set.end(),
                             [](const Chain& a, const Chain& b) { return a.newest < b.newest; });
  }
  *chain = {key, mutation.version, mutation.version, chain_share * mutation.value.size()};
  return false;
}

bool DeltaChains::takes(const Mutation& delta) const noexcept {
  const base::MutexLock lock{mutex_};
  if (sets_ == nullptr || !may_write_) return false;
  const std::uint64_t key = hash_of(delta.db, delta.key);
  for (const Chain& chain : sets_[key % set_count]) {
    if (chain.newest != 0 && chain.key == key) {
      return chain.newest == delta.base && bytes_of(delta) <= chain.room;
    }
  }
  return false;
}

bool DeltaChains::shorten(std::span<const Mutation> group, std::vector<Mutation>& to) {
  try {
    to.assign(group.begin(), group.end());
  } catch (const std::bad_alloc&) {
    return false;  // whole; their chains have ended, as no base fits them now
  }
  bool is_shorter = false;
  const base::MutexLock lock{mutex_};
  if (sets_ == nullptr) return false;
  for (Mutation& mutation : to) {
    if (!concerns(mutation) || !follow(mutation)) continue;
    mutation.value = {};
    is_shorter = true;
  }
  return is_shorter;
}

Version DeltaChains::whole_version(std::uint8_t db, Bytes key) const noexcept {
  const base::MutexLock lock{mutex_};
  if (sets_ == nullptr) return 0;
  const std::uint64_t hash = hash_of(db, key);
  for (const Chain& chain : sets_[hash % set_count]) {
    if (chain.newest != 0 && chain.key == hash) return chain.whole;
  }
  return 0;
}

}  // namespace semel::storage
