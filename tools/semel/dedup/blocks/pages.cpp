#include "tools/semel/dedup/blocks/pages.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace semel::tool {
namespace {

constexpr std::size_t page = std::size_t{4} << 10;
constexpr std::size_t huge_page = std::size_t{2} << 20;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

bool Pages::reserve(std::size_t most) {
  // Addresses without rights count towards no limit of memory. Halved, because nothing tells how
  // many there are.
  for (std::size_t size = round_up(most, huge_page); size >= page; size /= 2) {
    void* const got =
        mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) continue;
    if (size < most && size > huge_page) {
      // The blocks and the other parts need addresses too.
      const std::size_t less = round_up(size / 16, huge_page);
      munmap(static_cast<char*>(got) + less, size - less);
      size = less;
    }
    data_ = static_cast<char*>(got);
    reserved_ = size;
    // Only a hint: without huge pages the run is slower, not wrong.
    static_cast<void>(madvise(data_, reserved_, MADV_HUGEPAGE));
    return true;
  }
  return false;
}

bool Pages::grow_to(std::size_t bytes) {
  if (bytes <= usable_) return true;
  // An eighth more at a time; a huge page is only used where all of it is usable.
  const std::size_t unit = usable_ < 4 * huge_page ? 16 * page : huge_page;
  const std::size_t most = std::min(reserved_, usable_ + std::size_t{64} * huge_page);
  std::size_t wanted = std::min(round_up(std::max(bytes, usable_ + usable_ / 8), unit),
                                std::max(most, round_up(bytes, page)));
  if (wanted > reserved_) return false;
  if (!budget_->take(wanted - usable_)) {
    wanted = round_up(bytes, page);
    if (wanted > reserved_ || !budget_->take(wanted - usable_)) return false;
  }
  if (mprotect(data_ + usable_, wanted - usable_, PROT_READ | PROT_WRITE) != 0) {
    budget_->give_back(wanted - usable_);
    return false;
  }
  usable_ = wanted;
  return true;
}

void Pages::release() {
  if (data_ == nullptr) return;
  munmap(data_, reserved_);
  budget_->give_back(usable_);
  data_ = nullptr;
  reserved_ = usable_ = 0;
}

}  // namespace semel::tool
