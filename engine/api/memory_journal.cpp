#include "semel/memory_journal.hpp"

#include <deque>

#include "base/mutex.hpp"
#include "engine/api/owned_mutation.hpp"

namespace semel {

namespace {

struct Kept {
  Ticket ticket;
  engine::OwnedMutation mutation;
};

}  // namespace

struct MemoryJournal::Impl {
  mutable base::Mutex mutex;
  std::deque<Kept> kept SEMEL_GUARDED_BY(mutex);
  Ticket newest SEMEL_GUARDED_BY(mutex) = 0;
  // [memory_journal.accepts]  release store of the test, acquire load of the engine.
  std::atomic<bool> accepts{true};
  std::atomic<bool> accepts_frees{false};  // the same pair
};

MemoryJournal::MemoryJournal() : impl_(std::make_unique<Impl>()) {}
MemoryJournal::~MemoryJournal() = default;

Ticket MemoryJournal::append(std::span<const Mutation> group) {
  const base::MutexLock lock{impl_->mutex};
  ++impl_->newest;
  for (const Mutation& mutation : group)
    impl_->kept.push_back({impl_->newest, engine::OwnedMutation{mutation}});
  return impl_->newest;
}

Status MemoryJournal::wait(Ticket, Durability level) {
  if (level == Durability::memory) return Done{};
  return Error{ErrorCode::refused, "a journal in memory survives nothing"};
}

Ticket MemoryJournal::newest() const {
  const base::MutexLock lock{impl_->mutex};
  return impl_->newest;
}

bool MemoryJournal::accepts_writes() const noexcept {
  return impl_->accepts.load(std::memory_order_acquire);  // mo: acquire [memory_journal.accepts]
}

void MemoryJournal::set_accepts_writes(bool accepts) noexcept {
  // mo: release [memory_journal.accepts]
  impl_->accepts.store(accepts, std::memory_order_release);
}

bool MemoryJournal::accepts_frees() const noexcept {
  // mo: acquire [memory_journal.accepts]
  return accepts_writes() || impl_->accepts_frees.load(std::memory_order_acquire);
}

void MemoryJournal::set_accepts_frees(bool accepts) noexcept {
  // mo: release [memory_journal.accepts]
  impl_->accepts_frees.store(accepts, std::memory_order_release);
}

std::size_t MemoryJournal::size() const {
  const base::MutexLock lock{impl_->mutex};
  return impl_->kept.size();
}

void MemoryJournal::replay(const std::function<void(Ticket, const Mutation&)>& visit) const {
  const base::MutexLock lock{impl_->mutex};
  for (const Kept& kept : impl_->kept) visit(kept.ticket, kept.mutation.view());
}

}  // namespace semel
