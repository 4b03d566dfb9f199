#include "storage/cold/catalogs.hpp"

#include <utility>

#include "base/assert.hpp"

namespace semel::storage {

void Catalogs::set_current() noexcept {
  SEMEL_ASSERT(shared_ != nullptr);
  current_.store(shared_.get(), std::memory_order_release);  // mo: release [cold_store.catalog]
}

void Catalogs::publish(std::shared_ptr<const Catalog> fresh) {
  const base::MutexLock lock{mutex_};
  retired_.push_back(shared_);  // the first, as there may be no memory for it
  shared_ = std::move(fresh);
  set_current();
}

void Catalogs::take_back(std::shared_ptr<const Catalog> before) noexcept {
  const base::MutexLock lock{mutex_};
  SEMEL_ASSERT(abandoned_ == nullptr);
  abandoned_ = std::move(shared_);
  shared_ = std::move(before);
  set_current();
}

void Catalogs::reclaim() noexcept {
  std::vector<std::shared_ptr<const Catalog>> gone;
  std::shared_ptr<const Catalog> abandoned;
  const base::MutexLock lock{mutex_};
  gone.swap(retired_);
  abandoned.swap(abandoned_);
}

}  // namespace semel::storage
