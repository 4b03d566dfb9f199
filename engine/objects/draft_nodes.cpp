#include "engine/objects/draft_nodes.hpp"

#include <new>

namespace semel::engine {

Handle DraftNodes::allocate(std::size_t bytes) noexcept {
  made_bytes_ += bytes;
  try {
    if (made_.size() == made_.capacity()) made_.reserve(made_.size() * 2 + 16);
    Handle handle = has_failed_ ? 0 : pool_.allocate(bytes);
    if (handle != 0) {
      set_link(handle, made_.size());
      made_.push_back(handle);
      return handle;
    }
    has_failed_ = true;
    heap_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>((bytes + 7) / 8));
    handle = reinterpret_cast<std::uintptr_t>(heap_.back().get()) / 8;
    set_link(handle, ~std::uint64_t{0});
    return handle;
  } catch (const std::bad_alloc&) {
    has_failed_ = true;
    return 0;
  }
}

void DraftNodes::free(Handle handle) noexcept {
  const std::uint64_t place = link(handle);
  if (place == ~std::uint64_t{0}) return;  // of the heap: it goes with the others
  SEMEL_ASSERT(place < made_.size() && made_[place] == handle);
  const Handle last = made_.back();
  made_[place] = last;
  set_link(last, place);
  made_.pop_back();
  pool_.free(handle);
}

void DraftNodes::abandon() noexcept {
  for (const Handle handle : made_) pool_.free(handle);
  made_.clear();
  heap_.clear();
}

}  // namespace semel::engine
