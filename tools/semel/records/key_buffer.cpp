#include "tools/semel/records/key_buffer.hpp"

#include <algorithm>
#include <cstring>

namespace semel::tool {

void KeyBuffer::append(Bytes bytes) {
  SEMEL_ASSERT(size_ <= capacity_);
  const std::size_t fitting = std::min(bytes.size(), capacity_ - size_);
  if (fitting > 0) std::memcpy(data_ + size_, bytes.data(), fitting);
  size_ += fitting;
  lost_ += bytes.size() - fitting;
}

}  // namespace semel::tool
