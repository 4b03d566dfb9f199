// The wait of a connection's present command, and the reply that ends it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "net/resp/client_memory.hpp"

namespace semel::net {

/// Under the lock of its owner, which calls the functions that this returns without it. The reply
/// is counted in a ClientMemory, if there is one.
class ClientWait {
 public:
  using Call = std::function<void()>;

  explicit ClientWait(std::shared_ptr<ClientMemory> memory) : memory_(std::move(memory)) {}
  ~ClientWait() { forget_reply(); }
  ClientWait(const ClientWait&) = delete;
  ClientWait& operator=(const ClientWait&) = delete;

  /// Returns the number of the wait that begins now. `is_work`: only reply() ends it.
  [[nodiscard]] std::uint64_t begin(std::string timeout_reply, bool is_work) {
    waits_ = true;
    is_work_ = is_work;
    timeout_reply_ = std::move(timeout_reply);
    return ++number_;
  }
  [[nodiscard]] bool is_for(std::uint64_t number) const noexcept {
    return waits_ && number == number_;
  }
  /// `abandoned` is returned once, if this wait ends by anything but reply().
  void if_abandoned(Call abandoned) { abandoned_ = std::move(abandoned); }

  /// Ends the wait. `lost` is returned by end(), if the reply has not been taken by then. Returns
  /// the function of if_abandoned(), which is not to be called.
  [[nodiscard]] Call reply(std::string bytes, Call lost) {
    lost_ = std::move(lost);
    return answer(std::move(bytes));
  }
  /// Ends the wait with a reply of somebody else's. None: it does not wait, or works.
  [[nodiscard]] std::optional<Call> abandon(std::string bytes) {
    if (!waits_ || is_work_) return std::nullopt;
    return answer(std::move(bytes));
  }
  /// The same with the reply of its timeout.
  [[nodiscard]] std::optional<Call> time_out() { return abandon(timeout_reply_); }

  [[nodiscard]] std::size_t reply_bytes() const noexcept { return reply_.size(); }
  /// Appends the reply. False: the wait has not been answered.
  bool take_reply(std::string& out) {
    lost_ = nullptr;
    out += reply_;
    forget_reply();
    return std::exchange(is_answered_, false);
  }
  /// The connection ends. Returns what its end means to others: the reply is lost, the wait is
  /// abandoned.
  [[nodiscard]] std::pair<Call, Call> end() {
    waits_ = false;
    forget_reply();
    return {std::exchange(lost_, nullptr), std::exchange(abandoned_, nullptr)};
  }

 private:
  [[nodiscard]] Call answer(std::string&& bytes) {
    SEMEL_ASSERT(waits_);
    waits_ = false;
    is_answered_ = true;
    reply_ = std::move(bytes);
    if (memory_ != nullptr) memory_->add(reply_.size());
    return std::exchange(abandoned_, nullptr);
  }
  void forget_reply() noexcept {
    if (memory_ != nullptr) memory_->remove(reply_.size());
    reply_ = std::string{};
  }

  const std::shared_ptr<ClientMemory> memory_;
  std::string reply_;
  std::string timeout_reply_;
  Call lost_;
  Call abandoned_;
  std::uint64_t number_ = 0;
  bool waits_ = false;
  bool is_work_ = false;
  bool is_answered_ = false;
};

}  // namespace semel::net
