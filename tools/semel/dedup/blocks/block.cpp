#include "tools/semel/dedup/blocks/block.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace semel::tool {

void RawBuffer::grow_to(std::size_t capacity) {
  if (capacity <= capacity_) return;
  std::unique_ptr<char[]> larger{new char[capacity]};
  if (size > 0) std::memcpy(larger.get(), data_.get(), size);
  data_ = std::move(larger);
  capacity_ = capacity;
}

void RawBuffer::shrink_to(std::size_t capacity) {
  if (capacity_ <= capacity) return;
  data_.reset();
  capacity_ = size = 0;
}

void RawBuffer::append(Bytes more) {
  if (more.empty()) return;
  if (more.size() > capacity_ - size) grow_to(std::max(size + more.size(), capacity_ * 2));
  std::memcpy(data_.get() + size, more.data(), more.size());
  size += more.size();
}

char* KeyChunks::space(std::size_t bytes) {
  SEMEL_ASSERT(chunks_.empty() || bytes <= bytes_max_);
  if (chunk_ < chunks_.size() && used_ > chunk_bytes) {
    ++chunk_;
    used_ = 0;
  }
  if (chunks_.empty()) bytes_max_ = bytes;
  if (chunk_ == chunks_.size()) chunks_.emplace_back(new char[chunk_bytes + bytes_max_]);
  return chunks_[chunk_].get() + used_;
}

void Block::reset(std::size_t parts) {
  begin = rest = 0;
  begins_input = carries_header = is_long_part = begins_inside = is_whole = false;
  newlines = first_line = 0;
  bytes.size = first.size = duplicates.size = 0;
  // One long line must not keep its memory in each block for the rest of the run.
  for (RawBuffer* const buffer : {&bytes, &first, &duplicates}) buffer->shrink_to(4 * block_bytes);
  ends.clear();
  fates.clear();
  keys.resize(parts);
  for (std::vector<KeyRef>& part : keys) part.clear();
  added.assign(parts, 0);
  key_bytes.clear();
  fault.reset();
  counts = {};
}

}  // namespace semel::tool
