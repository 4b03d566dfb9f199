// The cut of a running snapshot, and the records of it that were replaced since.
//
//   [core.snapshot]  cut_ is stored inside a section over everything (begin) or before a wait for
//                    all operations (end), so no operation sees it change; release and acquire.
#pragma once

#include <atomic>
#include <new>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "engine/table/slot.hpp"

namespace semel::engine {

class SnapshotCut {
 public:
  /// Records that were replaced while the snapshot ran, which now belong to the caller.
  struct Preserved {
    std::vector<Handle> handles;
    bool is_complete = true;  ///< false: there was no memory to note them all
  };

  /// Versions below `cut` belong to the snapshot. Inside a section over everything.
  void begin(Version cut) noexcept {
    cut_.store(cut, std::memory_order_release);  // mo: release [core.snapshot]
  }
  /// Then wait for all operations, and take() the preserved records.
  void end() noexcept {
    cut_.store(0, std::memory_order_release);  // mo: release [core.snapshot]
  }
  [[nodiscard]] bool is_running() const noexcept {
    // mo: acquire [core.snapshot]: set inside a section, so it cannot change under an operation.
    return cut_.load(std::memory_order_acquire) != 0;
  }
  /// Of a record that was just replaced, inside an operation. True: the running snapshot needs it,
  /// and frees it when it has ended.
  [[nodiscard]] bool preserve(Version version, Handle handle) noexcept {
    // mo: acquire [core.snapshot]: set inside a section, so it cannot change under an operation.
    const Version cut = cut_.load(std::memory_order_acquire);
    if (version >= cut) [[likely]]
      return false;
    keep(handle);
    return true;
  }
  [[nodiscard]] Preserved take() {
    const base::MutexLock lock{mutex_};
    return std::exchange(preserved_, {});
  }

 private:
  [[gnu::noinline]] void keep(Handle handle) noexcept {
    const base::MutexLock lock{mutex_};
    // Without memory to keep it for the snapshot, that ends with an error.
    try {
      preserved_.handles.push_back(handle);
    } catch (const std::bad_alloc&) {
      preserved_.is_complete = false;  // and its memory with it, as long as the engine lives
    }
  }

  std::atomic<Version> cut_{0};  // 0: none runs
  base::Mutex mutex_;
  Preserved preserved_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::engine
