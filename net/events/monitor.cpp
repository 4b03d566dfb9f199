#include "net/events/monitor.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "net/events/pubsub.hpp"
#include "net/session/client_state.hpp"

namespace semel::net {

void Monitors::add(ClientState& client) {
  SEMEL_ASSERT(!client.monitors);
  client.monitors = true;
  client.handle->shown.monitors.store(true, std::memory_order_relaxed);  // mo: relaxed: shown only
  const base::MutexLock lock{mutex_};
  handles_.push_back(client.handle);
  count_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in any()
}

void Monitors::remove(ClientState& client) {
  if (!client.monitors) return;
  client.monitors = false;
  client.handle->shown.monitors.store(false, std::memory_order_relaxed);  // mo: relaxed: shown only
  const base::MutexLock lock{mutex_};
  std::erase(handles_, client.handle);
  count_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: as in any()
}

void Monitors::send(ClientState& from, std::string line,
                    const std::shared_ptr<ClientMemory>& memory) {
  const bool is_within = from.context->is_part() || from.held != nullptr;
  const auto shared = std::make_shared<const LargeBytes>(std::move(line), memory);
  const base::MutexLock lock{mutex_};
  for (const auto& handle : handles_) {
    if (is_within && handle == from.handle) {
      PubSub::hold_own(from, shared->view());
    } else {
      static_cast<void>(handle->push(shared));  // false: it is being closed
    }
  }
}

}  // namespace semel::net
