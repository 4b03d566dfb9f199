// What one exchange of HTTP/1.1 still owes on its connection, in both directions. A connection that
// owes anything would read the next request as the rest of this one, or take the rest of this reply
// for the next one (request smuggling, response splitting). Pure.
#pragma once

#include <cstdint>
#include <optional>

namespace semel::gateway {

/// Used by one thread. Not settled until all of the request was written and all of the reply read:
/// whoever forgets to report something gets a connection that is closed, never one that owes.
class ExchangeAccount {
 public:
  /// A request begins, of so many bytes with its head; none: its end is a last chunk.
  void begin(std::optional<std::uint64_t> bytes) noexcept {
    *this = ExchangeAccount{};
    is_chunked_ = !bytes;
    unsent_ = bytes.value_or(0);
    has_begun_ = true;
  }
  /// So many bytes were written, also by a write that failed.
  void sent(std::uint64_t bytes) noexcept {
    if (is_chunked_) return;
    is_overrun_ = is_overrun_ || bytes > unsent_;
    unsent_ -= is_overrun_ ? unsent_ : bytes;
  }
  /// The last chunk was written.
  void sent_last_chunk() noexcept { is_chunked_ = false; }
  /// The reply was read to its end. `persists`: by its head another one may follow.
  void reply_ended(bool persists) noexcept { is_reply_whole_ = persists; }
  /// Whether the connection may serve another request, as far as this exchange is concerned.
  [[nodiscard]] bool is_settled() const noexcept {
    return has_begun_ && !is_chunked_ && !is_overrun_ && unsent_ == 0 && is_reply_whole_;
  }

 private:
  std::uint64_t unsent_ = 0;
  bool has_begun_ = false;
  bool is_chunked_ = false;
  bool is_overrun_ = false;
  bool is_reply_whole_ = false;
};

}  // namespace semel::gateway
