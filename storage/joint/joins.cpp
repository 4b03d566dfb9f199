#include "storage/joint/joins.hpp"

#include <algorithm>

namespace semel::storage {
namespace {

/// A thread is in one join at a time, whichever storage's.
constinit thread_local Join* joining = nullptr;

}  // namespace

Join* Joins::own() const noexcept {
  return joining != nullptr && joining->of_ == this ? joining : nullptr;
}

void Joins::publish() noexcept {
  Ticket oldest = none;
  for (const Join* join : joins_) {
    if (join->ticket != 0) oldest = std::min(oldest, join->ticket);
  }
  // mo: release [joins.unsynced] [joins.oldest] [joins.count], in this order: see hold() and any()
  unsynced_.store(std::min(written_, syncing_), std::memory_order_release);
  oldest_.store(oldest, std::memory_order_release);
  count_.store(static_cast<std::uint32_t>(joins_.size()), std::memory_order_release);
}

bool Joins::begin(Join& join) {
  if (joining != nullptr) return false;
  join.of_ = this;
  joining = &join;
  const std::lock_guard lock{mutex_};
  joins_.push_back(&join);
  publish();
  return true;
}

void Joins::add(Join& join, Ticket ticket, std::span<const Mutation> group) {
  const std::lock_guard lock{mutex_};
  if (join.ticket == 0) join.ticket = ticket;
  for (const Mutation& mutation : group) join.keys_.emplace_back(mutation.db, mutation.key);
  publish();
}

void Joins::leave(Join& join) noexcept {
  if (joining == &join) joining = nullptr;
}

void Joins::end(Join& join, bool synced,
                const std::function<void(std::string_view, Timestamp)>& append) {
  std::unique_lock lock{mutex_};
  while (!join.followers_.empty()) {  // each of a thread that waits, or of a bounded sum
    std::vector<Join::Follower> followers;
    followers.swap(join.followers_);
    lock.unlock();
    for (const Join::Follower& follower : followers) append(follower.mutations, follower.when);
    // Appended after what the join's ticket covers: a sync that covers both must begin from now on.
    synced = false;
    lock.lock();
  }
  if (join.ticket != 0 && !synced) written_ = std::min(written_, join.ticket);
  joins_.erase(std::find(joins_.begin(), joins_.end(), &join));
  publish();
}

Joins::Follow Joins::follow(std::span<const Mutation> group, Timestamp when,
                            const std::function<std::string()>& encode) {
  const std::lock_guard lock{mutex_};
  for (Join* join : joins_) {
    const auto changes = [&](const Mutation& mutation) {
      return std::any_of(join->keys_.begin(), join->keys_.end(), [&](const auto& key) {
        return key.first == mutation.db && key.second == mutation.key;
      });
    };
    if (std::none_of(group.begin(), group.end(), changes)) continue;
    std::string bytes = encode();
    if (join->followers_bytes_ + bytes.size() > followers_bytes_max) return Follow::full;
    join->followers_bytes_ += bytes.size();
    join->followers_.push_back({std::move(bytes), when});
    return Follow::yes;
  }
  return Follow::no;
}

bool Joins::begin_sync() {
  const std::lock_guard lock{mutex_};
  wanted_.store(false, std::memory_order_release);  // mo: release: with the signal
  syncing_ = std::min(syncing_, written_);
  written_ = none;
  return syncing_ != none;
}

void Joins::end_sync() {
  const std::lock_guard lock{mutex_};
  syncing_ = none;
  publish();
}

}  // namespace semel::storage
