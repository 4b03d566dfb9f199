#include "net/session/client_handle.hpp"

#include <utility>

#include "base/assert.hpp"

namespace semel::net {

/// One call wakes for all that comes until it is collected.
void ClientHandle::wake() {
  if (host_ == nullptr || std::exchange(woken_, true)) return;
  host_->wake();
}

namespace {

/// The room that a text and its list take up; it grows only.
std::size_t held_of(const std::string& text, const Splices& large) noexcept {
  return (text.empty() ? 0 : text.capacity()) + large.capacity() * sizeof(Splice);
}

void append_to(std::string& out, LargeReplies& large, const SharedBytes& bytes) {
  if (large.is_enabled() && bytes->size() >= LargeReplies::push_bytes_min) {
    large.add(out.size(), bytes);
  } else {
    out.append(bytes->view());
  }
}

}  // namespace

/// A reply that was left here counts as what was pushed does.
void ClientHandle::count_reply() noexcept {
  if (memory_ != nullptr) memory_->add(reply_.size());
  reply_bytes_ = reply_.size();
  show_pushed();
}

void ClientHandle::forget_reply() noexcept {
  if (memory_ != nullptr) memory_->remove(reply_bytes_);
  reply_bytes_ = 0;
  reply_ = std::string{};
  show_pushed();
}

void ClientHandle::show_pushed() noexcept {
  // mo: relaxed: for people and eviction
  shown.pushed.store(pushed_bytes_ + reply_bytes_, std::memory_order_relaxed);
}

void ClientHandle::forget_pushed() noexcept {
  if (memory_ != nullptr) memory_->remove(held_of(pushed_, pushed_large_));
  pushed_ = std::string{};
  pushed_large_ = Splices{};
  pushed_bytes_ = 0;
  show_pushed();
}

/// Appends what others have pushed.
void ClientHandle::move_pushed(std::string& out, LargeReplies& large) {
  if (pushed_bytes_ == 0) return;
  std::size_t from = 0;
  for (const Splice& each : pushed_large_) {
    out.append(pushed_, from, each.at - from);
    from = each.at;
    append_to(out, large, each.bytes);
  }
  out.append(pushed_, from);
  forget_pushed();
}

template <class Append>
bool ClientHandle::push_bytes(std::size_t size, Append&& append) {
  base::MutexLock lock{mutex_};
  if (ended_ || killed_) return false;
  if (direct_ != nullptr && direct_thread_ == std::this_thread::get_id()) {
    move_pushed(*direct_, *direct_large_);
    append(*direct_, direct_large_);
    return true;
  }
  if (pushed_bytes_ + size > push_bytes_max) {
    killed_ = true;
    is_killed_.store(true, std::memory_order_relaxed);  // mo: relaxed: as in is_killed()
    forget_pushed();
  } else {
    const std::size_t before = held_of(pushed_, pushed_large_);
    append(pushed_, nullptr);
    pushed_bytes_ += size;
    if (memory_ != nullptr) memory_->add(held_of(pushed_, pushed_large_) - before);
    show_pushed();
  }
  wake();
  return !killed_;
}

bool ClientHandle::push(std::string_view bytes) {
  return push_bytes(bytes.size(), [&](std::string& out, LargeReplies*) { out.append(bytes); });
}

bool ClientHandle::push(const SharedBytes& bytes) {
  return push_bytes(bytes->size(),
                    [&](std::string& out, LargeReplies* large) SEMEL_REQUIRES(mutex_) {
                      if (large != nullptr) {
                        append_to(out, *large, bytes);
                      } else if (bytes->size() >= LargeReplies::push_bytes_min) {
                        pushed_large_.push_back({out.size(), bytes});
                      } else {
                        out.append(bytes->view());
                      }
                    });
}

void ClientHandle::reply(std::uint64_t wait, std::string bytes, std::function<void()> lost) {
  base::MutexLock lock{mutex_};
  if (!waits_ || wait != wait_) {
    lock.unlock();
    if (lost) lost();
    return;
  }
  waits_ = false;
  replied_ = true;
  reply_ = std::move(bytes);
  lost_ = std::move(lost);
  count_reply();
  // What it holds is let go without the lock.
  const std::function<void()> not_needed = std::exchange(abandoned_, nullptr);
  wake();
  lock.unlock();
}

namespace {

bool call_if_any(const std::optional<std::function<void()>>& abandoned) {
  if (abandoned && *abandoned) (*abandoned)();
  return abandoned.has_value();
}

}  // namespace

bool ClientHandle::unblock(bool with_error) {
  if (with_error) return end_wait("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
  base::MutexLock lock{mutex_};
  const auto abandoned = answer_wait(std::move(timeout_reply_));
  lock.unlock();
  return call_if_any(abandoned);
}

bool ClientHandle::end_wait(std::string_view reply) {
  base::MutexLock lock{mutex_};
  const auto abandoned = answer_wait(std::string{reply});
  lock.unlock();
  return call_if_any(abandoned);
}

std::optional<std::function<void()>> ClientHandle::answer_wait(std::string&& reply) {
  if (!waits_ || works_) return std::nullopt;
  waits_ = false;
  replied_ = true;
  reply_ = std::move(reply);
  count_reply();
  std::function<void()> abandoned = std::exchange(abandoned_, nullptr);
  wake();
  return abandoned;
}

void ClientHandle::resume() {
  base::MutexLock lock{mutex_};
  resumed_ = true;
  wake();
}

void ClientHandle::kill() {
  base::MutexLock lock{mutex_};
  killed_ = true;
  is_killed_.store(true, std::memory_order_relaxed);  // mo: relaxed: as in is_killed()
  forget_pushed();
  wake();
}

void ClientHandle::review() {
  base::MutexLock lock{mutex_};
  reviewed_ = true;
  wake();
}

void ClientHandle::if_abandoned(std::uint64_t wait, std::function<void()> abandoned) {
  const base::MutexLock lock{mutex_};
  if (waits_ && wait == wait_) abandoned_ = std::move(abandoned);
}

std::uint64_t ClientHandle::begin_wait(std::string timeout_reply) {
  const base::MutexLock lock{mutex_};
  waits_ = true;
  works_ = false;
  timeout_reply_ = std::move(timeout_reply);
  return ++wait_;
}

std::uint64_t ClientHandle::begin_work() {
  const std::uint64_t wait = begin_wait();
  const base::MutexLock lock{mutex_};
  works_ = true;
  return wait;
}

ClientHandle::Collected ClientHandle::collect(std::string& out, LargeReplies& large) {
  const base::MutexLock lock{mutex_};
  woken_ = false;
  if (killed_) return {.killed = true};  // no more is sent; end() reports that the reply is lost
  const Collected found{.replied = std::exchange(replied_, false),
                        .resumed = std::exchange(resumed_, false),
                        .reviewed = std::exchange(reviewed_, false),
                        .reply_bytes = reply_.size()};
  lost_ = nullptr;
  out += reply_;
  forget_reply();
  move_pushed(out, large);
  return found;
}

void ClientHandle::direct(std::string* out, LargeReplies* large) {
  const base::MutexLock lock{mutex_};
  SEMEL_ASSERT((out == nullptr) == (large == nullptr));
  direct_ = out;
  direct_large_ = large;
  direct_thread_ = std::this_thread::get_id();
}

void ClientHandle::wake_host() {
  base::MutexLock lock{mutex_};
  wake();
}

void ClientHandle::end() {
  base::MutexLock lock{mutex_};
  ended_ = true;
  forget_pushed();
  forget_reply();
  host_ = nullptr;
  waits_ = false;
  direct_ = nullptr;
  const std::function<void()> lost = std::exchange(lost_, nullptr);
  const std::function<void()> abandoned = std::exchange(abandoned_, nullptr);
  lock.unlock();
  if (lost) lost();
  if (abandoned) abandoned();
}

}  // namespace semel::net
