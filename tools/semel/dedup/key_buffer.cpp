#include "tools/semel/dedup/key_buffer.hpp"

#include <algorithm>
#include <cstring>

namespace semel::tool {

void KeyBuffer::append(Bytes bytes) {
  const std::size_t room = std::min(bytes.size(), capacity_ - size_);
  if (room > 0) std::memcpy(data_ + size_, bytes.data(), room);
  size_ += room;
  lost_ += bytes.size() - room;
}

}  // namespace semel::tool
