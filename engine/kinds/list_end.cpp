#include "engine/kinds/list_end.hpp"

namespace semel::engine {

unsigned EndDraft::begin_of(unsigned index) const noexcept {
  unsigned begin = 0;
  for (unsigned i = 0; i < index; ++i) begin += lengths_[i];
  return begin;
}

void EndDraft::assign(const EndElements& from, unsigned bytes) noexcept {
  SEMEL_ASSERT(from.size() <= list_end_elements_max && bytes <= list_end_bytes_max);
  count_ = from.size();
  bytes_ = bytes;
  if (count_ == 0) return;
  const Bytes first = from.at(0);
  std::memcpy(lengths_.data(), from.lengths(), count_);
  std::memcpy(all_.data(), first.data(), bytes);
}

void EndDraft::insert(unsigned index, Bytes value) noexcept {
  SEMEL_ASSERT(index <= count_ && has_room(value.size()));
  const unsigned begin = begin_of(index);
  char* const at = all_.data() + begin;
  std::memmove(at + value.size(), at, bytes_ - begin);
  if (!value.empty()) std::memcpy(at, value.data(), value.size());
  std::memmove(lengths_.data() + index + 1, lengths_.data() + index, count_ - index);
  lengths_[index] = static_cast<std::uint8_t>(value.size());
  ++count_;
  bytes_ += static_cast<unsigned>(value.size());
}

void EndDraft::erase(unsigned from, unsigned to) noexcept {
  SEMEL_ASSERT(from <= to && to <= count_);
  const unsigned begin = begin_of(from);
  const unsigned end = begin_of(to);
  std::memmove(all_.data() + begin, all_.data() + end, bytes_ - end);
  std::memmove(lengths_.data() + from, lengths_.data() + to, count_ - to);
  count_ -= to - from;
  bytes_ -= end - begin;
}

}  // namespace semel::engine
