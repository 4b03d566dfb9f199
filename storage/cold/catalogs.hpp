// The catalog of a cold store that counts, and older ones until no lookup uses them.
//
// Concurrency
//   [cold_store.catalog]  release store of a new catalog by the spiller, acquire load by lookups.
//                         An old one is kept until reclaim(), which the engine calls when no lookup
//                         uses it.
//
// Invariant, with the mutex held: current_ == shared_.get().
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "storage/cold/cold_parts.hpp"

namespace semel::storage {

class Catalogs {
 public:
  /// Valid as long as its holder likes.
  [[nodiscard]] std::shared_ptr<const Catalog> now() const {
    const base::MutexLock lock{mutex_};
    return shared_;
  }
  /// Valid until reclaim().
  [[nodiscard]] const Catalog& current() const noexcept {
    return *current_.load(std::memory_order_acquire);  // mo: acquire [cold_store.catalog]
  }

  // --- the spiller -------------------------------------------------------------------------------
  void publish(std::shared_ptr<const Catalog> fresh);
  /// Publishes the catalog before the newest again. Needs no memory: it is called for want of it.
  /// Once until reclaim().
  void take_back(std::shared_ptr<const Catalog> before) noexcept;
  /// No lookup uses an older catalog.
  void reclaim() noexcept;

 private:
  void set_current() noexcept SEMEL_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  std::shared_ptr<const Catalog> shared_ SEMEL_GUARDED_BY(mutex_) = std::make_shared<Catalog>();
  std::vector<std::shared_ptr<const Catalog>> retired_ SEMEL_GUARDED_BY(mutex_);
  std::shared_ptr<const Catalog> abandoned_ SEMEL_GUARDED_BY(mutex_);  // retired as well
  std::atomic<const Catalog*> current_{shared_.get()};                 // [cold_store.catalog]
};

}  // namespace semel::storage
