#include "tools/semel/dedup/blocks/key_set.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace semel::tool {
namespace {

constexpr unsigned place_bits = 40;
constexpr std::uint64_t place_mask = (std::uint64_t{1} << place_bits) - 1;
constexpr std::size_t slots_min = 1024;
constexpr std::size_t group_keys = 32;
constexpr std::size_t note_bytes = sizeof(KeyNote);
constexpr std::size_t size_bytes_max = 4;
static_assert(line_max_most < std::size_t{1} << (7 * size_bytes_max));

// The table's place comes from the low bits, the part (exact_dedup.cpp) from the highest.
constexpr std::uint64_t tag_of(std::uint64_t hash) {
  return (hash >> 34) << place_bits;
}

/// Reads the size of a key and moves on to its bytes.
std::size_t read_size(const char*& at) noexcept {
  std::size_t size = static_cast<unsigned char>(*at++);
  if (size < 0x80) return size;
  size &= 0x7f;
  for (unsigned shift = 7;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    size |= static_cast<std::size_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return size;
  }
}

void write_size(char*& at, std::size_t size) noexcept {
  for (; size >= 0x80; size >>= 7) *at++ = static_cast<char>(size | 0x80);
  *at++ = static_cast<char>(size);
}

/// 5 of 8 slots: with more, the keys that are new look through too many.
constexpr std::size_t comfortable(std::size_t slots) {
  return slots / 8 * 5;
}

}  // namespace

KeySet::KeySet(const KeyHash& hash, MemoryBudget& budget, Options options)
    : hash_(hash), budget_(budget), options_(options), table_(budget), records_(budget) {}

bool KeySet::open() {
  return records_.reserve(std::min<std::size_t>(budget_.limit(), place_mask)) && resize(slots_min);
}

// The following two return the prefetched address and do not prefetch themselves: g++ 12 takes a
// function that only reads and prefetches for one without effects, and removes its calls.

const std::uint64_t* KeySet::first_slot(const KeyRef& key) const noexcept {
  return reinterpret_cast<const std::uint64_t*>(table_.data()) + (key.hash & (slots_ - 1));
}

const char* KeySet::likely_record(const KeyRef& key) const noexcept {
  const auto* const slots = reinterpret_cast<const std::uint64_t*>(table_.data());
  const std::uint64_t tag = tag_of(key.hash);
  // Searches only the prefetched line; later lines are fetched on demand.
  for (std::size_t at = key.hash & (slots_ - 1);; ++at) {
    const std::uint64_t slot = slots[at];
    if (slot == 0) return nullptr;
    if ((slot & ~place_mask) == tag) return records_.data() + (slot & place_mask) - 1;
    if (at % 8 == 7) return nullptr;
  }
}

template <bool is_counted>
std::uint64_t* KeySet::find(const KeyRef& key, bool& found) const noexcept {
  auto* const slots = reinterpret_cast<std::uint64_t*>(table_.data());
  const std::uint64_t tag = tag_of(key.hash);
  // Ends: a table always has free slots (grow()).
  for (std::size_t at = key.hash & (slots_ - 1);; at = (at + 1) & (slots_ - 1)) {
    const std::uint64_t slot = slots[at];
    if (slot == 0) {
      found = false;
      return slots + at;
    }
    if ((slot & ~place_mask) != tag) continue;
    const char* record = records_.data() + (slot & place_mask) - 1;
    if (is_counted) record += note_bytes;
    if (read_size(record) == key.size && std::memcmp(record, key.data, key.size) == 0) {
      found = true;
      return slots + at;
    }
  }
}

bool KeySet::append(const KeyRef& key, std::uint64_t line, std::uint64_t& slot) {
  const std::size_t note = options_.is_counted ? note_bytes : 0;
  const std::size_t end_max = end_ + note + size_bytes_max + key.size;
  if (end_max > records_.size() && (end_max > place_mask || !records_.grow_to(end_max)))
    return false;
  char* at = records_.data() + end_;
  if (options_.is_counted) {
    const KeyNote first{line, 1};
    std::memcpy(at, &first, sizeof first);
    at += note_bytes;
  }
  write_size(at, key.size);
  std::memcpy(at, key.data, key.size);
  slot = tag_of(key.hash) | (end_ + 1);
  end_ = static_cast<std::size_t>(at + key.size - records_.data());
  ++keys_;
  return true;
}

template <bool is_counted>
std::size_t KeySet::add_all(const Batch& batch, Fate* fates) {
  constexpr std::size_t before_key = is_counted ? note_bytes : 0;
  const std::span<const KeyRef> keys = batch.keys;
  const auto group = [&](std::size_t begin) {
    begin = std::min(begin, keys.size());
    return keys.subspan(begin, std::min(group_keys, keys.size() - begin));
  };
  for (const KeyRef& key : keys.first(std::min(2 * group_keys, keys.size()))) {
    __builtin_prefetch(first_slot(key), 1);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % group_keys == 0) {
      // One loop for each step: a fetch occupies the processor until its address is translated, and
      // a short loop brings more of them on their way at once.
      for (const KeyRef& key : group(i + 2 * group_keys)) __builtin_prefetch(first_slot(key), 1);
      for (const KeyRef& key : group(i + group_keys)) {
        const char* const record = likely_record(key);
        if (record == nullptr) continue;
        __builtin_prefetch(record, is_counted);
        __builtin_prefetch(record + before_key + key.size);  // most records lie in two lines
      }
    }
    if (keys_ >= keys_max_ && !grow(batch.share)) return i;
    const KeyRef& key = keys[i];
    bool found = false;
    std::uint64_t* const slot = find<is_counted>(key, found);
    if (!found) {
      if (!append(key, batch.first_line + key.line, *slot)) return i;
      fates[key.line] = Fate::first;
      continue;
    }
    fates[key.line] = Fate::repeat;
    if constexpr (is_counted) {
      char* const record = records_.data() + (*slot & place_mask) - 1;
      KeyNote note;
      std::memcpy(&note, record, sizeof note);
      ++note.count;
      if (options_.keeps_last) note.line = batch.first_line + key.line;
      std::memcpy(record, &note, sizeof note);
    }
  }
  return keys.size();
}

std::size_t KeySet::add(const Batch& batch, Fate* fates) {
  return options_.is_counted ? add_all<true>(batch, fates) : add_all<false>(batch, fates);
}

/// False: there is no memory for a larger table, and this one is too full.
bool KeySet::grow(double share) {
  // Where it is known how much of the input is left, the table grows once to what the whole input
  // will need if it goes on as it began. Not beyond an eighth of the limit: it may not go on so.
  std::size_t wanted = slots_ * 2;
  const double expected = share > 0.001 ? static_cast<double>(keys_) / share : 0;
  while (wanted < slots_ * 64 && static_cast<double>(comfortable(wanted)) < expected &&
         wanted * sizeof(std::uint64_t) * 2 < budget_.limit() / 8) {
    wanted *= 2;
  }
  for (; wanted > slots_; wanted /= 2) {
    if (resize(wanted)) return true;
  }
  // Full tables are slow, but right.
  const std::size_t last = slots_ / 16 * 15;
  if (keys_ >= last) return false;
  keys_max_ = std::min<std::size_t>(keys_max_ + slots_ / 16, last);
  return true;
}

bool KeySet::resize(std::size_t slots) {
  Pages table{budget_};
  const std::size_t bytes = slots * sizeof(std::uint64_t);
  if (!table.reserve(bytes) || !table.grow_to(bytes)) return false;
  auto* const into = reinterpret_cast<std::uint64_t*>(table.data());
  // The records are read from their beginning, which costs less than to follow the slots to them.
  struct Waiting {
    std::uint64_t slot;
    std::uint64_t hash;
  };
  constexpr std::size_t ahead = 16;
  Waiting waiting[ahead] = {};
  const auto place = [&](const Waiting& one) {
    std::size_t at = one.hash & (slots - 1);
    while (into[at] != 0) at = (at + 1) & (slots - 1);
    into[at] = one.slot;
  };
  const std::size_t note = options_.is_counted ? note_bytes : 0;
  std::size_t count = 0;
  for (const char *at = records_.data(), *const end = at + end_; at != end; ++count) {
    const auto begin = static_cast<std::size_t>(at - records_.data());
    at += note;
    const std::size_t size = read_size(at);
    Waiting& one = waiting[count % ahead];
    if (count >= ahead) place(one);
    one.hash = hash_({at, size});
    one.slot = tag_of(one.hash) | (begin + 1);
    __builtin_prefetch(into + (one.hash & (slots - 1)), 1);
    at += size;
  }
  for (std::size_t i = count - std::min(count, ahead); i < count; ++i) place(waiting[i % ahead]);
  SEMEL_ASSERT(count == keys_);
  table_ = std::move(table);
  slots_ = slots;
  keys_max_ = comfortable(slots);
  return true;
}

bool KeySet::Notes::next(KeyNote& note) noexcept {
  if (at_ == set_->end_) return false;
  const char* at = set_->records_.data() + at_;
  std::memcpy(&note, at, sizeof note);
  at += note_bytes;
  const std::size_t size = read_size(at);
  at_ = static_cast<std::size_t>(at + size - set_->records_.data());
  return true;
}

}  // namespace semel::tool
