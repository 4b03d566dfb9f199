#include "net/session/client_handle.hpp"

#include <utility>

#include "base/assert.hpp"

namespace semel::net {

/// One call wakes for all that comes until it is collected.
void ClientHandle::wake() {
  if (host_ == nullptr || std::exchange(woken_, true)) return;
  host_->wake();
}

void ClientHandle::show_pushed() noexcept {
  // mo: relaxed: for people and eviction
  shown.pushed.store(pushed_.size() + wait_.reply_bytes(), std::memory_order_relaxed);
}

template <class Bytes>
bool ClientHandle::push_bytes(const Bytes& bytes, std::size_t size) {
  base::MutexLock lock{mutex_};
  if (ended_ || killed_) return false;
  if (direct_.out != nullptr && direct_.thread == std::this_thread::get_id()) {
    if (pushed_.size() != 0) {
      pushed_.move_to(*direct_.out, *direct_.large);
      show_pushed();
    }
    append_to(*direct_.out, *direct_.large, bytes);
    return true;
  }
  if (pushed_.size() + size > push_bytes_max) {
    killed_ = true;
    is_killed_.store(true, std::memory_order_relaxed);  // mo: relaxed: as in is_killed()
    pushed_.clear();
  } else {
    pushed_.add(bytes);
  }
  show_pushed();
  wake();
  return !killed_;
}

bool ClientHandle::push(std::string_view bytes) {
  return push_bytes(bytes, bytes.size());
}

bool ClientHandle::push(const SharedBytes& bytes) {
  return push_bytes(bytes, bytes->size());
}

void ClientHandle::reply(std::uint64_t wait, std::string bytes, std::function<void()> lost) {
  base::MutexLock lock{mutex_};
  if (!wait_.is_for(wait)) {
    lock.unlock();
    if (lost) lost();
    return;
  }
  // What it holds is released without the lock.
  const ClientWait::Call not_needed = wait_.reply(std::move(bytes), std::move(lost));
  show_pushed();
  wake();
  lock.unlock();
}

template <class End>
bool ClientHandle::end_wait_by(End&& end) {
  base::MutexLock lock{mutex_};
  const std::optional<ClientWait::Call> abandoned = end(wait_);
  if (!abandoned) return false;
  show_pushed();
  wake();
  lock.unlock();
  if (*abandoned) (*abandoned)();
  return true;
}

bool ClientHandle::unblock(bool with_error) {
  if (with_error) return end_wait("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
  return end_wait_by([](ClientWait& wait) { return wait.time_out(); });
}

bool ClientHandle::end_wait(std::string_view reply) {
  return end_wait_by([reply](ClientWait& wait) { return wait.abandon(std::string{reply}); });
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
  pushed_.clear();
  show_pushed();
  wake();
}

void ClientHandle::review() {
  base::MutexLock lock{mutex_};
  reviewed_ = true;
  wake();
}

void ClientHandle::if_abandoned(std::uint64_t wait, std::function<void()> abandoned) {
  const base::MutexLock lock{mutex_};
  if (wait_.is_for(wait)) wait_.if_abandoned(std::move(abandoned));
}

std::uint64_t ClientHandle::begin_wait(std::string timeout_reply) {
  const base::MutexLock lock{mutex_};
  return wait_.begin(std::move(timeout_reply), false);
}

std::uint64_t ClientHandle::begin_work() {
  const base::MutexLock lock{mutex_};
  return wait_.begin({}, true);
}

ClientHandle::Collected ClientHandle::collect(std::string& out, LargeReplies& large) {
  const base::MutexLock lock{mutex_};
  woken_ = false;
  if (killed_) return {.killed = true};  // no more is sent; end() reports that the reply is lost
  Collected found{.resumed = std::exchange(resumed_, false),
                  .reviewed = std::exchange(reviewed_, false),
                  .reply_bytes = wait_.reply_bytes()};
  found.replied = wait_.take_reply(out);
  pushed_.move_to(out, large);
  show_pushed();
  return found;
}

void ClientHandle::direct(std::string* out, LargeReplies* large) {
  const base::MutexLock lock{mutex_};
  SEMEL_ASSERT((out == nullptr) == (large == nullptr));
  direct_ = {.out = out, .large = large, .thread = std::this_thread::get_id()};
}

void ClientHandle::wake_host() {
  base::MutexLock lock{mutex_};
  wake();
}

void ClientHandle::end() {
  base::MutexLock lock{mutex_};
  ended_ = true;
  pushed_.clear();
  host_ = nullptr;
  direct_ = {};
  const auto [lost, abandoned] = wait_.end();
  show_pushed();
  lock.unlock();
  if (lost) lost();
  if (abandoned) abandoned();
}

}  // namespace semel::net
