#include "engine/kinds/list_leaf.hpp"

#include <algorithm>

namespace semel::engine {

ListValues ListLeafDraft::values(unsigned from, unsigned to) const noexcept {
  SEMEL_ASSERT(from <= to && to <= count_);
  std::size_t begin = 0;
  for (unsigned i = 0; i < from; ++i) begin += list_stored_bytes(lengths_[i]);
  std::size_t end = stored_;
  for (unsigned i = count_; i > to; --i) end -= list_stored_bytes(lengths_[i - 1]);
  return {lengths_.data() + from, bytes_.data() + begin, to - from, end - begin, has_runs_};
}

void ListLeafDraft::add(const ListValues& values) noexcept {
  if (values.count == 0) return;
  SEMEL_ASSERT(count_ + values.count <= lengths_.size());
  SEMEL_ASSERT(stored_ + values.stored <= bytes_.size());
  std::memcpy(lengths_.data() + count_, values.lengths, values.count);
  if (values.stored != 0) std::memcpy(bytes_.data() + stored_, values.bytes, values.stored);
  count_ += values.count;
  stored_ += values.stored;
  has_runs_ = has_runs_ || values.has_runs;
}

void ListLeafDraft::add(std::uint8_t length, const char* stored) noexcept {
  add({&length, stored, 1, list_stored_bytes(length), length == list_run_length});
}

unsigned ListLeafDraft::first_of_full() const noexcept {
  unsigned count = 0;
  for (std::size_t stored = 0; count < std::min(count_, list_leaf_entries_max); ++count) {
    stored += list_stored_bytes(lengths_[count]);
    if (bytes_of(count + 1, stored) > bytes_max) break;
  }
  return count;
}

unsigned ListLeafDraft::last_of_full() const noexcept {
  unsigned count = 0;
  for (std::size_t stored = 0; count < std::min(count_, list_leaf_entries_max); ++count) {
    stored += list_stored_bytes(lengths_[count_ - 1 - count]);
    if (bytes_of(count + 1, stored) > bytes_max) break;
  }
  return count;
}

unsigned ListLeafDraft::half() const noexcept {
  SEMEL_ASSERT(count_ >= 2);
  unsigned count = 1;
  // Of a value and its length.
  for (std::size_t bytes = list_stored_bytes(lengths_[0]) + 1;
       count < count_ - 1 && bytes * 2 < stored_ + count_; ++count) {
    bytes += list_stored_bytes(lengths_[count]) + 1;
  }
  return std::clamp(count, count_ > list_leaf_entries_max ? count_ - list_leaf_entries_max : 1,
                    list_leaf_entries_max);
}

void ListLeafDraft::write(const ListValues& values, char* to) noexcept {
  std::size_t begin = 0;
  for (unsigned i = 0; i < values.count; i += ListLeaf::block) {
    SEMEL_ASSERT_SLOW(begin < list_leaf_bytes);
    const auto noted = static_cast<std::uint16_t>(begin);
    std::memcpy(to, &noted, sizeof noted);
    to += sizeof noted;
    const unsigned end = std::min(i + ListLeaf::block, values.count);
    if (!values.has_runs && end - i == ListLeaf::block) {
      std::array<std::uint64_t, 2> words;
      std::memcpy(words.data(), values.lengths + i, sizeof words);
      begin += sum_of_bytes(words[0]) + sum_of_bytes(words[1]);
      continue;
    }
    for (unsigned at = i; at < end; ++at) begin += list_stored_bytes(values.lengths[at]);
  }
  SEMEL_ASSERT(begin == values.stored);
  std::memcpy(to, values.lengths, values.count);
  if (values.stored != 0) std::memcpy(to + values.count, values.bytes, values.stored);
}

}  // namespace semel::engine
