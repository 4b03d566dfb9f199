#include "tests/proofs/once/once_semaphores.hpp"

#include <algorithm>

namespace semel::proofs {

std::string SemaphoreStory::play() {
  for (std::uint64_t left = random_.between(8, 30); left > 0; --left) {
    if (!complaint_.empty() || !process_.alive()) break;
    step(owners_[random_.below(owners_.size())]);
  }
  for (Owner& owner : owners_) {
    owner.semaphore.reset();  // gives it back, if there is memory
    owner.watchdog.reset();
    owner.holds = false;
    if (process_.is_filled()) leftover_ = std::max(leftover_, owner.at_most);
    owner.at_least = owner.at_most = Timestamp::min();
  }
  return complaint_;
}

/// With another number of permits than before, perhaps.
void SemaphoreStory::open(Owner& owner) {
  Claims claims = process_.claims("pools", policies::lock);
  owner.semaphore.reset();
  owner.watchdog.reset();
  if (random_.chance(1, 3)) owner.watchdog.emplace(process_.engine());
  owner.permits = static_cast<std::uint32_t>(random_.between(1, 4));
  owner.semaphore.emplace(
      claims, "seat",
      SemaphoreOptions{.permits = owner.permits,
                       .watchdog = owner.watchdog ? &*owner.watchdog : nullptr});
}

void SemaphoreStory::step(Owner& owner) {
  switch (random_.below(10)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      if (!owner.holds) take(owner);
      break;
    case 5:
    case 6:
      give(owner);
      break;
    case 7:
      renew(owner);
      break;
    default:
      pass_time();
      break;
  }
  look();
}

void SemaphoreStory::take(Owner& owner) {
  if (!owner.semaphore || random_.chance(1, 2)) open(owner);
  const bool taken = owner.semaphore->try_acquire();
  if (!counts()) return;
  if (taken) return judge_grant(owner);
  // What it had claimed may still be held, if there was no memory to give it back.
  if (process_.is_filled()) leftover_ = std::max(leftover_, now() + lease);
  const auto others = std::count_if(owners_.begin(), owners_.end(),
                                    [&](const Owner& each) { return perhaps_has(each); });
  const bool is_full = others >= static_cast<std::ptrdiff_t>(owner.permits) || now() < leftover_;
  if (!is_full && !process_.is_filled()) complain("a permit that was free was not given");
  if (is_full && owner.semaphore->why_not().code == ErrorCode::ok) complain("no reason was given");
}

void SemaphoreStory::judge_grant(Owner& owner) {
  const std::uint32_t slot = owner.semaphore->slot();
  const Epoch token = owner.semaphore->fencing_token();
  std::uint32_t others = 0;
  for (const Owner& each : owners_) {
    if (&each == &owner || !surely_has(each)) continue;
    ++others;
    if (each.slot == slot) complain("two have one slot");
  }
  if (others >= owner.permits) complain("a permit was given while as many were held");
  if (slot >= owner.permits) complain("a slot beyond the permits was given");
  if (token <= newest_[slot]) complain("a token of a slot was not larger than the one before");
  newest_[slot] = std::max(newest_[slot], token);
  owner.holds = true;
  owner.slot = slot;
  owner.at_least = owner.at_most = now() + lease;
  ++taken_;
}

void SemaphoreStory::give(Owner& owner) {
  const bool was_held = owner.semaphore && owner.semaphore->release();
  if (!counts()) return;
  if (was_held && !(owner.holds && perhaps_has(owner))) complain("another's permit was given back");
  if (!was_held && surely_has(owner) && !process_.is_filled()) {
    complain("a permit that was held could not be given back");
  }
  if (!was_held && process_.is_filled()) leftover_ = std::max(leftover_, owner.at_most);
  owner.holds = false;
  owner.at_least = owner.at_most = Timestamp::min();
}

void SemaphoreStory::renew(Owner& owner) {
  const bool renewed = owner.semaphore && owner.semaphore->renew();
  if (!counts()) return;
  if (renewed && !(owner.holds && perhaps_has(owner))) complain("a lost permit was renewed");
  if (!renewed && surely_has(owner) && !process_.is_filled()) {
    complain("a permit that was held could not be renewed");
  }
  if (renewed) owner.at_least = owner.at_most = now() + lease;
}

void SemaphoreStory::pass_time() {
  for (std::uint64_t left = random_.between(1, 8); left > 0; --left) {
    process_.clock().advance(Millis{5'000});
    for (Owner& owner : owners_) {
      if (!owner.watchdog) continue;
      static_cast<void>(owner.watchdog->poll());
      if (!owner.holds || !perhaps_has(owner)) continue;
      owner.at_most = now() + lease;
      // Renewed when a third of it had passed, if there was memory.
      if (!process_.is_filled() && surely_has(owner)) {
        owner.at_least = std::max(owner.at_least, now() + lease / 2);
      }
    }
  }
}

void SemaphoreStory::look() {
  for (Owner& owner : owners_) {
    if (!owner.semaphore) continue;
    const bool held = owner.semaphore->is_held();
    if (!counts()) return;
    if (held && !(owner.holds && perhaps_has(owner))) complain("a permit is held that was lost");
    if (!held && surely_has(owner)) complain("a permit was lost too early");
  }
}

}  // namespace semel::proofs
