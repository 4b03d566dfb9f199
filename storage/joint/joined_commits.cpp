#include "storage/joint/joined_commits.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace semel::storage {
namespace {

/// A thread is in one joined commit at a time, of any storage.
constinit thread_local JoinedCommit* joining = nullptr;

}  // namespace

bool JoinedCommit::has_changed(Version version) const noexcept {
  return std::any_of(changes_.begin(), changes_.end(),
                     [&](const Change& change) { return change.version == version; });
}

bool JoinedCommits::is_joining() noexcept {
  return joining != nullptr;
}

JoinedCommit* JoinedCommits::own() const noexcept {
  return joining != nullptr && joining->of_ == this ? joining : nullptr;
}

void JoinedCommits::publish() noexcept {
  Ticket oldest = none;
  for (const JoinedCommit* join : joined_commits_) {
    if (join->ticket != 0) oldest = std::min(oldest, join->ticket);
  }
  // mo: release [joined.unsynced] [joined.oldest] [joined.count], in this order: see hold() and
  // any()
  unsynced_.store(std::min(written_, syncing_), std::memory_order_release);
  oldest_.store(oldest, std::memory_order_release);
  count_.store(static_cast<std::uint32_t>(joined_commits_.size()), std::memory_order_release);
}

bool JoinedCommits::begin(JoinedCommit& join) {
  if (joining != nullptr) return false;
  join.of_ = this;
  joining = &join;
  const base::MutexLock lock{mutex_};
  SEMEL_ASSERT(join.ticket == 0 && join.changes_.empty() && join.followers_.empty());
  joined_commits_.push_back(&join);
  publish();
  return true;
}

void JoinedCommits::add(JoinedCommit& join, Ticket ticket, std::span<const Mutation> group) {
  SEMEL_ASSERT(joining == &join && join.of_ == this);
  SEMEL_ASSERT(join.ticket < ticket);
  const base::MutexLock lock{mutex_};
  if (join.ticket == 0) join.ticket = ticket;
  for (const Mutation& mutation : group) {
    join.changes_.push_back({mutation.db, std::string{mutation.key}, mutation.version});
  }
  publish();
}

void JoinedCommits::leave(JoinedCommit& join) noexcept {
  if (joining == &join) joining = nullptr;
}

void JoinedCommits::end(JoinedCommit& join, bool synced,
                        const std::function<void(std::string_view, Timestamp)>& append) {
  base::MutexLock lock{mutex_};
  while (
      !join.followers_.empty()) {  // bounded: their threads wait, or followers_bytes_max is reached
    std::vector<JoinedCommit::Follower> followers;
    followers.swap(join.followers_);
    lock.unlock();
    for (const JoinedCommit::Follower& follower : followers)
      append(follower.mutations, follower.when);
    // Their tickets are larger than the commit's: only a sync that begins from now on covers both.
    synced = false;
    lock.lock();
  }
  if (join.ticket != 0 && !synced) written_ = std::min(written_, join.ticket);
  const auto own = std::find(joined_commits_.begin(), joined_commits_.end(), &join);
  SEMEL_ASSERT(own != joined_commits_.end());
  joined_commits_.erase(own);
  publish();
}

JoinedCommits::Follow JoinedCommits::follow(std::span<const Mutation> group, Timestamp when,
                                            const std::function<std::string()>& encode) {
  const base::MutexLock lock{mutex_};
  for (JoinedCommit* join : joined_commits_) {
    const auto changes = [&](const Mutation& mutation) {
      return std::any_of(join->changes_.begin(), join->changes_.end(), [&](const auto& change) {
        return change.db == mutation.db && change.key == mutation.key;
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

bool JoinedCommits::begin_sync() {
  const base::MutexLock lock{mutex_};
  requested_.store(false, std::memory_order_release);  // mo: release [joined.wanted]
  syncing_ = std::min(syncing_, written_);
  written_ = none;
  return syncing_ != none;
}

void JoinedCommits::end_sync() {
  const base::MutexLock lock{mutex_};
  SEMEL_ASSERT(syncing_ != none);
  syncing_ = none;
  publish();
}

}  // namespace semel::storage
