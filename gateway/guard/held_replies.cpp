#include "gateway/guard/held_replies.hpp"

#include <utility>

#include "base/assert.hpp"
#include "gateway/guard/request_rules.hpp"

namespace semel::gateway {

struct HeldReplies::Held {
  Held(HeldReplies& owner, std::string called, Bytes bytes)
      : all(owner), name(std::move(called)), record(std::move(bytes)), share(owner.budget_) {}
  ~Held() { all.forget(name); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  HeldReplies& all;
  const std::string name;
  const Bytes record;
  MemoryShare share;
};

HeldReplies::Bytes HeldReplies::hold(const Work& work, Bytes record) {
  std::string name = work.route->name + "\n" + work.key;
  std::shared_ptr<Held> held;
  {
    const base::MutexLock lock{mutex_};
    if (const auto found = held_.find(name); found != held_.end()) held = found->second.lock();
  }
  // Equal bytes are the same reply, even if the key has another record by now.
  if (held == nullptr || *held->record != *record) {
    held = std::make_shared<Held>(*this, std::move(name), std::move(record));
    if (!held->share.hold(held->record->capacity() + held->name.capacity())) return nullptr;
    const base::MutexLock lock{mutex_};
    held_.insert_or_assign(held->name, held);
  }
  const std::string* const bytes = held->record.get();
  return Bytes{std::move(held), bytes};
}

/// Removes a reply that ends; another reply may have its name by now.
void HeldReplies::forget(const std::string& name) noexcept {
  const base::MutexLock lock{mutex_};
  const auto found = held_.find(name);
  if (found != held_.end() && found->second.expired()) held_.erase(found);
}

bool HeldReplies::share(const Work& work, RecordedReply& reply) {
  SEMEL_ASSERT(reply.held_here != nullptr);
  Bytes shared = hold(work, std::move(reply.held_here));
  if (shared == nullptr) return false;
  Result<RecordedReply> again = decode_reply(*shared);
  SEMEL_ASSERT(again.ok());  // so were the same bytes
  reply = *std::move(again);
  reply.held_here = std::move(shared);
  return true;
}

void HeldReplies::share(const Work& work, Admission& admission) {
  if (admission.outcome != Outcome::replayed || share(work, admission.reply)) return;
  admission = {.outcome = Outcome::gateway_busy, .refusal = busy(budget_)};
}

}  // namespace semel::gateway
