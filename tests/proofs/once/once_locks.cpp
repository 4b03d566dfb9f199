#include "tests/proofs/once/once_locks.hpp"

#include <algorithm>

namespace semel::proofs {

std::string LockStory::play() {
  begin();
  for (std::uint64_t left = random_.between(6, 24); left > 0; --left) {
    if (!complaint_.empty() || !process_.alive()) break;
    step(random_.below(owners_.size()));
  }
  const bool ends = process_.alive();
  const bool full = process_.is_filled();
  for (Owner& owner : owners_) {
    owner.lock.reset();  // gives it back
    owner.watchdog.reset();
    owner.holds = 0;
  }
  if (ends && process_.alive() && !full) has_it_.reset();
  return complaint_;
}

void LockStory::begin() {
  Claims claims = process_.claims("locks", policy_);
  // Of the last story's owners one may have it yet, if there was no memory to give it back.
  if (has_it_) has_it_->at_least = Timestamp::min();
  for (Owner& owner : owners_) {
    if (random_.chance(1, 3)) owner.watchdog.emplace(process_.engine());
    owner.lock.emplace(claims, "printer",
                       LockOptions{.watchdog = owner.watchdog ? &*owner.watchdog : nullptr});
  }
}

void LockStory::step(std::size_t owner) {
  switch (random_.below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      take(owner);
      break;
    case 4:
    case 5:
      give(owner);
      break;
    case 6:
      renew(owner);
      break;
    case 7:
    case 8:
      write(owner);
      break;
    default:
      pass_time();
      break;
  }
  count_holders();
}

void LockStory::take(std::size_t which) {
  Owner& owner = owners_[which];
  const bool taken = owner.lock->try_lock();
  if (!counts()) return;
  if (owner.holds > 0) return take_again(which, taken);
  if (!taken) {
    const ErrorCode why = owner.lock->why_not().code;
    if (why == ErrorCode::memory_full && !process_.is_filled()) complain("there was memory");
    const bool is_free = !has_it_ || now() >= has_it_->at_most;
    if (is_free && !process_.is_filled()) complain("a lock that was free was not given");
    return;
  }
  if (has_it_ && now() < has_it_->at_least) complain("a lock was given while another had it");
  const Epoch token = owner.lock->fencing_token();
  if (token <= newest_token_) complain("a token was not larger than the one before");
  newest_token_ = std::max(newest_token_, token);
  owner.token = token;
  owner.holds = 1;
  has_it_ = Holder{which, now() + lease, now() + lease};
  ++taken_;
}

/// An owner that believes that it holds the lock gets one error if it has lost it.
void LockStory::take_again(std::size_t which, bool taken) {
  Owner& owner = owners_[which];
  if (taken && !perhaps_has(which)) complain("an owner took again what it had lost");
  if (!taken && surely_has(which)) complain("an owner has lost what was its own");
  owner.holds = taken ? owner.holds + 1 : 0;
}

void LockStory::give(std::size_t which) {
  Owner& owner = owners_[which];
  const bool had_it = owner.holds > 0;
  const bool was_held = owner.lock->unlock();
  if (!counts()) return;
  if (was_held && !(had_it && perhaps_has(which))) complain("a lock was given back by another");
  if (!was_held && had_it && surely_has(which) && !process_.is_filled()) {
    complain("a lock that was held could not be given back");
  }
  if (!had_it || --owner.holds > 0) return;
  if (!has_it_ || has_it_->owner != which) return;
  if (was_held || !process_.is_filled()) {
    has_it_.reset();
  } else {
    has_it_->at_least = Timestamp::min();
  }
}

void LockStory::renew(std::size_t which) {
  Owner& owner = owners_[which];
  const bool renewed = owner.lock->renew();
  if (!counts()) return;
  if (renewed && !(owner.holds > 0 && perhaps_has(which))) {
    complain("a lock was renewed that was lost");
  }
  if (!renewed && owner.holds > 0 && surely_has(which) && !process_.is_filled()) {
    complain("a lock that was held could not be renewed");
  }
  if (renewed && has_it_) has_it_ = Holder{which, now() + lease, now() + lease};
}

/// An owner that believes that it holds the lock writes; the target has a fence.
void LockStory::write(std::size_t which) {
  Owner& owner = owners_[which];
  if (owner.holds == 0) {
    if (owner.lock->fencing_token() == 0 && fence_.admit(0)) complain("nobody could write");
    return;
  }
  const bool admitted = fence_.admit(owner.lock->fencing_token());
  if (admitted && owner.token < newest_write_) complain("an owner wrote behind its successor");
  if (!admitted && surely_has(which)) complain("the owner of a lock could not write");
  if (admitted) newest_write_ = std::max(newest_write_, owner.token);
}

void LockStory::pass_time() {
  for (std::uint64_t left = random_.between(1, 8); left > 0; --left) {
    process_.clock().advance(Millis{5'000});
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      Owner& owner = owners_[i];
      if (!owner.watchdog) continue;
      static_cast<void>(owner.watchdog->poll());
      if (owner.holds == 0 || !perhaps_has(i)) continue;
      // Renewed when a third of it had passed, if there was memory: two thirds less one look are
      // left.
      has_it_->at_most = now() + lease;
      if (!process_.is_filled() && surely_has(i)) {
        has_it_->at_least = std::max(has_it_->at_least, now() + lease / 2);
      }
    }
  }
}

void LockStory::count_holders() {
  std::size_t count = 0;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    const bool held = owners_[i].lock->is_held();
    count += held ? 1 : 0;
    if (!counts()) return;
    if (held && !perhaps_has(i)) complain("a lock is held by one who has lost it");
    if (!held && owners_[i].holds > 0 && surely_has(i)) complain("a lock was lost too early");
  }
  if (count > 1) complain("two have one lock");
}

}  // namespace semel::proofs
