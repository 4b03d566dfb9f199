// Joined commits pass a gate. A backup closes it for a moment: then no commit is between its place
// in the journal and its write to RocksDB, and what a commit depends on was appended before.
#pragma once

#include <cstdint>

#include "base/assert.hpp"
#include "base/mutex.hpp"

namespace semel::storage {

class JoinedGate {
 public:
  /// A commit is inside while this exists, or until leave(). Blocks while the gate is closed.
  class Pass {
   public:
    explicit Pass(JoinedGate& gate) : gate_(&gate) { gate.enter(); }
    ~Pass() { leave(); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    void leave() {
      if (gate_ != nullptr) gate_->leave();
      gate_ = nullptr;
    }

   private:
    JoinedGate* gate_;
  };
  /// The gate is closed while this exists. Its constructor blocks until no thread is inside and no
  /// other Closed exists.
  class Closed {
   public:
    explicit Closed(JoinedGate& gate) : gate_(gate) { gate.close(); }
    ~Closed() { gate_.open(); }
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;

   private:
    JoinedGate& gate_;
  };

 private:
  void enter() {
    base::MutexLock lock{mutex_};
    while (is_closed_) changed_.wait(lock);
    ++inside_;
  }
  void leave() {
    const base::MutexLock lock{mutex_};
    SEMEL_ASSERT(inside_ > 0);
    if (--inside_ == 0 && is_closed_) changed_.notify_all();
  }
  void close() {
    base::MutexLock lock{mutex_};
    while (is_closed_) changed_.wait(lock);
    is_closed_ = true;
    while (inside_ > 0) changed_.wait(lock);
  }
  void open() {
    const base::MutexLock lock{mutex_};
    is_closed_ = false;
    changed_.notify_all();
  }

  base::Mutex mutex_;
  base::Condition changed_;
  std::uint32_t inside_ SEMEL_GUARDED_BY(mutex_) = 0;
  bool is_closed_ SEMEL_GUARDED_BY(mutex_) = false;
};

}  // namespace semel::storage
