#include "net/client_handle.hpp"

#include <utility>

namespace semel::net {

void ClientHandle::wake(std::unique_lock<std::mutex>& lock) {
  // Under the lock: end() may be waiting to take the host away. One call wakes for all that comes
  // until it is collected.
  static_cast<void>(lock);
  if (host_ == nullptr || std::exchange(woken_, true)) return;
  host_->wake();
}

bool ClientHandle::push(std::string_view bytes) {
  std::unique_lock lock{mutex_};
  if (ended_ || killed_) return false;
  if (direct_ != nullptr && direct_thread_ == std::this_thread::get_id()) {
    direct_->append(pushed_).append(bytes);
    pushed_.clear();
    return true;
  }
  if (pushed_.size() + bytes.size() > push_bytes_max) {
    killed_ = true;
    pushed_.clear();
  } else {
    pushed_.append(bytes);
  }
  wake(lock);
  return !killed_;
}

void ClientHandle::reply(std::uint64_t wait, std::string bytes, std::function<void()> lost) {
  std::unique_lock lock{mutex_};
  if (!waits_ || wait != wait_) {
    lock.unlock();
    if (lost) lost();
    return;
  }
  waits_ = false;
  replied_ = true;
  reply_ = std::move(bytes);
  lost_ = std::move(lost);
  // What it holds is let go without the lock.
  const std::function<void()> not_needed = std::exchange(abandoned_, nullptr);
  wake(lock);
  lock.unlock();
}

bool ClientHandle::unblock(bool with_error) {
  if (with_error) return end_wait("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
  std::unique_lock lock{mutex_};
  return end_wait_locked(lock, std::move(timeout_reply_));
}

bool ClientHandle::end_wait(std::string_view reply) {
  std::unique_lock lock{mutex_};
  return end_wait_locked(lock, std::string{reply});
}

bool ClientHandle::end_wait_locked(std::unique_lock<std::mutex>& lock, std::string&& reply) {
  if (!waits_ || works_) return false;
  waits_ = false;
  replied_ = true;
  reply_ = std::move(reply);
  const std::function<void()> abandoned = std::exchange(abandoned_, nullptr);
  wake(lock);
  lock.unlock();
  if (abandoned) abandoned();
  return true;
}

void ClientHandle::resume() {
  std::unique_lock lock{mutex_};
  resumed_ = true;
  wake(lock);
}

void ClientHandle::kill() {
  std::unique_lock lock{mutex_};
  killed_ = true;
  wake(lock);
}

void ClientHandle::review() {
  std::unique_lock lock{mutex_};
  reviewed_ = true;
  wake(lock);
}

void ClientHandle::if_abandoned(std::uint64_t wait, std::function<void()> abandoned) {
  const std::lock_guard lock{mutex_};
  if (waits_ && wait == wait_) abandoned_ = std::move(abandoned);
}

std::uint64_t ClientHandle::begin_wait(std::string timeout_reply) {
  const std::lock_guard lock{mutex_};
  waits_ = true;
  works_ = false;
  timeout_reply_ = std::move(timeout_reply);
  return ++wait_;
}

std::uint64_t ClientHandle::begin_work() {
  const std::uint64_t wait = begin_wait();
  const std::lock_guard lock{mutex_};
  works_ = true;
  return wait;
}

ClientHandle::Collected ClientHandle::collect(std::string& out) {
  const std::lock_guard lock{mutex_};
  woken_ = false;
  if (killed_) return {.killed = true};  // no more is sent; end() tells that the reply is lost
  const Collected found{.replied = std::exchange(replied_, false),
                        .resumed = std::exchange(resumed_, false),
                        .reviewed = std::exchange(reviewed_, false),
                        .reply_bytes = reply_.size()};
  lost_ = nullptr;
  out += std::exchange(reply_, {});
  out += std::exchange(pushed_, {});
  return found;
}

void ClientHandle::direct(std::string* out) {
  const std::lock_guard lock{mutex_};
  direct_ = out;
  direct_thread_ = std::this_thread::get_id();
}

void ClientHandle::wake_host() {
  std::unique_lock lock{mutex_};
  wake(lock);
}

void ClientHandle::end() {
  std::unique_lock lock{mutex_};
  ended_ = true;
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
