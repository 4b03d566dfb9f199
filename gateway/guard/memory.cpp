#include "gateway/guard/memory.hpp"

#include <algorithm>

namespace semel::gateway {

bool CountedText::make_room(std::size_t more, std::size_t size_max) {
  const std::size_t needed = std::min(text_.size() + more, size_max);
  if (needed <= text_.capacity()) return true;
  const std::size_t wanted = std::min(std::max(needed, 2 * text_.capacity()), size_max);
  // Both copies exist while the text moves.
  if (!share_.hold(text_.capacity() + wanted)) return false;
  std::string moved;  // reserve() of a non-empty text may take more than requested
  moved.reserve(wanted);
  moved.append(text_);
  text_.swap(moved);
  std::string{}.swap(moved);
  static_cast<void>(share_.hold(text_.capacity()));  // less is always possible
  return true;
}

}  // namespace semel::gateway
